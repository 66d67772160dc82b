"""What the oracle-based mechanisms share: choosing the oracle, checking it, and one certified solve."""

from __future__ import annotations

import inspect
import time

from privsolve import oracles
from privsolve.oracles.base import Oracle, Solution, oracle_name, verified
from privsolve.perturbation import Perturbation
from privsolve.problem import Problem
from privsolve.release import Diagnostics
from privsolve.tree.minimise import ProgressCallback


def resolve_oracle(oracle: str | Oracle) -> Oracle:
    """The named oracle, or the object itself if it can minimise."""
    if isinstance(oracle, str):
        return oracles.get(oracle)
    if not callable(getattr(oracle, "minimise", None)):
        raise ValueError(f"oracle must be a name or have a method minimise(problem, perturbation), got {oracle!r}")
    return oracle


def check_oracle(oracle: Oracle, problem: Problem, penalty: Perturbation | None) -> None:
    """Everything that can be refused before noise is drawn."""
    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be a Problem, got {type(problem).__name__}")
    if penalty is not None and penalty.domain != problem.domain:
        raise ValueError("penalty is a perturbation of another domain than the problem's")
    check = getattr(oracle, "check", None)
    if check is not None:
        check(problem)


def solve(
    oracle: Oracle, problem: Problem, perturbation: Perturbation, progress: ProgressCallback | None
) -> tuple[Solution, Diagnostics]:
    """One call of the oracle, held to its certificate; an interrupted or failed call releases nothing."""
    start = time.perf_counter()
    takes_progress = "progress" in inspect.signature(oracle.minimise).parameters
    options = {"progress": progress} if takes_progress else {}
    try:
        answer = oracle.minimise(problem, perturbation, **options)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted while solving: nothing was released") from None
    solution = verified(answer, problem, perturbation, oracle)
    mistakes = problem.table.mistakes(solution.weights)
    return solution, Diagnostics(
        seconds=time.perf_counter() - start,
        training_accuracy=1.0 - mistakes / problem.table.n,
        mistakes=mistakes,
        values={
            "oracle": oracle_name(oracle),
            "objective": solution.objective,
            "bound": solution.bound,
            "certified": solution.certified,
            **solution.work,
        },
    )
