"""What the oracle-based mechanisms share: checking the oracle and the noise, paying, and one release."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from privsolve.engines.coordinates.minimise import ProgressCallback
from privsolve.errors import IntegerRangeError
from privsolve.mechanisms.solving import PaidNoise, solve
from privsolve.models.release import Release, Run
from privsolve.noise.accuracy import check_scipy
from privsolve.noise.draws import Randomness
from privsolve.oracles.base import Oracle, oracle_name, oracle_tolerance
from privsolve.privacy import calibration
from privsolve.privacy.accounting import Account, charged
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.guarantee import Guarantee, Proof
from privsolve.privacy.profiles import profile_of
from privsolve.problems.perturbation import OBJECTIVE_LIMIT, AnyPerturbation, Perturbation
from privsolve.problems.problem import BaseProblem

LARGEST_NORM = 2.0**26
"""Noise of this length is off by less than `2^-22` at a relative error of `2^-48`: within the margin (section 6)."""

NEGLIGIBLE = 2.0**-100
"""The probability that noise is longer than the length the range check allows for."""


@dataclass(frozen=True)
class NoiseLaw(ABC):
    """A calibrated noise law on `dim` coordinates, and what it proves by which section of the theory."""

    law: str
    dim: int
    scale: float
    epsilon: float
    delta: float
    proved: bool
    theory: str

    @abstractmethod
    def draw(self, rng: Randomness) -> NDArray[np.float64]:
        """One noise vector."""


def check_oracle(oracle: Oracle, problem: BaseProblem, penalty: Perturbation | None, *, with_norm: bool) -> None:
    """Everything that can be refused before noise is drawn; `with_norm`: the noise will have a table of norms."""
    if not isinstance(problem, BaseProblem):
        raise ValueError(f"problem must be a Problem, got {type(problem).__name__}")
    if penalty is not None and penalty.domain != problem.domain:
        raise ValueError("penalty is a perturbation of another domain than the problem's")
    check = getattr(oracle, "check", None)
    if check is None:
        return
    if "template" in inspect.signature(check).parameters:
        template = Perturbation.zero(problem.domain)
        if with_norm and not problem.domain.equal_norms:
            template = replace(template, norm=np.zeros(len(problem.domain.norms_sq), dtype=np.int64))
        check(problem, template=template)
    else:
        check(problem)


def check_penalty(penalty: Perturbation | None) -> None:
    """A penalty must leave room for the noise, which stays below `LARGEST_NORM`: found before any is drawn."""
    if penalty is None:
        return
    if not isinstance(penalty, Perturbation):
        raise ValueError(f"penalty must be a Perturbation of the problem's domain, got {type(penalty).__name__}")
    if penalty.largest >= OBJECTIVE_LIMIT // 4:
        raise IntegerRangeError("penalty leaves the exact integer range: use smaller prices")


def check_budget(
    epsilon: float, delta: float | None, law: str, laws: Sequence[str], pure: Sequence[str]
) -> tuple[float, float | None]:
    """Epsilon and delta as floats; raise unless they fit the noise law: pure laws take no delta, the others need one."""
    epsilon = calibration.check_epsilon(epsilon)
    if law not in laws:
        raise ValueError(f"noise must be one of {', '.join(laws)}, got {law!r}")
    if delta is not None:
        delta = calibration.check_delta(delta)
    if (law in pure) == (delta is not None):
        need = "is pure epsilon-DP: leave delta=None" if law in pure else "needs delta, for instance 1e-6"
        raise ValueError(f"noise={law!r} {need}")
    return epsilon, delta


def check_range(longest: float, epsilon: float) -> None:
    """Refuse an epsilon whose noise could leave the exact integer range."""
    if longest > LARGEST_NORM:
        raise ValueError(
            f"epsilon={epsilon:g} needs noise beyond the exact integer range: use "
            f"epsilon >= {epsilon * longest / LARGEST_NORM:.2g} or a domain with a smaller radius"
        )


def perturbed_run(
    problem: BaseProblem,
    oracle: Oracle,
    law: NoiseLaw,
    rng: Randomness,
    perturbation_of: Callable[[NDArray[np.float64]], AnyPerturbation],
    *,
    mechanism: str,
    adjacency: str,
    penalty: Perturbation | None,
    progress: ProgressCallback | None,
    budget: Account | None,
) -> Run:
    """Pay, draw the noise, solve once, release: the part that spends the budget, after everything has been checked."""
    check_scipy()
    paid_for = oracle_tolerance(oracle)

    def promise(with_oracle: Oracle) -> Guarantee:
        return Guarantee(
            profile_of(law.epsilon, law.delta), Adjacency.of(adjacency), mechanism, f"{law.law} noise",
            theory=law.theory, oracle=oracle_name(with_oracle), proof=Proof.COMPLETE if law.proved else Proof.NONE,
            seeded=rng.is_seeded, negligible=NEGLIGIBLE,
        )  # fmt: skip

    def release(with_oracle: Oracle, perturbation: AnyPerturbation) -> Run:
        solution, diagnostics = solve(with_oracle, problem, perturbation, progress)
        return Run(Release.of(problem, solution.weights, promise(with_oracle)), diagnostics)

    with charged(budget, promise(oracle)):
        perturbation = perturbation_of(law.draw(rng))
        if penalty is not None:
            perturbation = cast(Perturbation, perturbation) + penalty
        return PaidNoise(paid_for, lambda another: release(another, perturbation)).solve_with(oracle)
