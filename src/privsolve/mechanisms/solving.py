"""One noise, one answer: the oracle is asked, held to its certificate, and asked again only with the same noise."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from privsolve import oracles
from privsolve.engines.coordinates.minimise import ProgressCallback
from privsolve.errors import OracleFailed, OracleNotCertified, PrivsolveError, SolveInterrupted
from privsolve.oracles.base import Oracle, Solution, Solve, as_oracle, oracle_tolerance, verified
from privsolve.problems.perturbation import Perturbation
from privsolve.problems.problem import BaseProblem
from privsolve.releases import Diagnostics, Run


def resolve_oracle(oracle: str | Oracle) -> Oracle:
    """The named oracle, or the object itself if it can minimise."""
    return oracles.get(oracle) if isinstance(oracle, str) else as_oracle(oracle)


def solve(
    oracle: Oracle,
    prepared: Solve,
    problem: BaseProblem,
    perturbation: Perturbation,
    progress: ProgressCallback | None,
) -> tuple[Solution, Diagnostics]:
    """One call of the oracle on the problem as it has `prepared` it, held to its certificate."""
    start = time.perf_counter()
    solution = verified(prepared(perturbation, progress), problem, perturbation, oracle)
    return solution, Diagnostics(
        seconds=time.perf_counter() - start,
        quality=problem.quality(solution.weights),
        values={
            **solution.work,
            "oracle": oracle.name,
            "objective": solution.objective,
            "bound": solution.bound,
            "certified": solution.certified,
        },
    )


class PaidNoise:
    """Noise that has been drawn and paid for, and its one answer.

    Whatever goes wrong in a solve, the error that comes out has `retry`, which solves again with the same noise. A second
    answer from the same noise, by another oracle among several optimal members, would be a second release that nobody has
    paid for: once there is an answer, `retry` gives that run again.

    Args:
        admit: turns what a user passes into an oracle; refuses one that is less exact than the noise was calibrated for.
        release: solves with an oracle and makes the run.
    """

    def __init__(self, admit: Callable[[Any], Any], release: Callable[[Any], Run]) -> None:
        self._admit, self._release = admit, release
        self._lock, self._process = threading.RLock(), os.getpid()
        self._answer: Run | None = None

    def solve_with(self, oracle: Any) -> Run:
        """The one run of this noise, by this oracle if there is none yet."""
        if os.getpid() != self._process:
            raise PrivsolveError("the noise belongs to another process: retry there, a copy could answer differently")
        the_oracle = self._admit(oracle)
        with self._lock:
            if self._answer is None:
                run = self._attempt(the_oracle)
                self._answer = self._answer or run  # an oracle may itself have asked for a retry
            return self._answer

    def _attempt(self, oracle: Any) -> Run:
        def retry(another: Any) -> Run:  # a function: copies of the error share the noise and its answer
            return self.solve_with(another)

        try:
            return self._release(oracle)
        except OracleNotCertified as error:
            error.retry = retry
            raise
        except KeyboardInterrupt:
            interrupted = SolveInterrupted("interrupted while solving: nothing was released")
            interrupted.retry = retry
            raise interrupted from None
        except Exception as error:
            failed = OracleFailed(_words(oracle, error))
            failed.retry = retry
            raise failed from error


def exact_enough(tolerance: float) -> Callable[[str | Oracle], Oracle]:
    """Admits oracles, by name or as objects, that are as exact as noise for this `tolerance` needs."""

    def admit(oracle: str | Oracle) -> Oracle:
        the_oracle = resolve_oracle(oracle)
        if oracle_tolerance(the_oracle) > tolerance:
            raise ValueError(
                f"the noise was calibrated for a tolerance of {tolerance:g}: retry with an oracle at least as exact"
            )
        return the_oracle

    return admit


def _words(oracle: Any, error: Exception) -> str:
    """What failed; the message of a foreign error stays in the cause, since it may show anything."""
    why: Any = f"{type(error).__name__}: {error}" if isinstance(error, PrivsolveError) else type(error).__name__
    return (
        f"oracle {oracle.name!r} failed ({why}): nothing is released, and the noise is kept; solve again with the "
        "same noise by error.retry(oracle)"
    )
