"""What every oracle offers, and the check that every answer passes before it is used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from privsolve.checks import check_error, check_finite
from privsolve.data.patterns import Int64Array
from privsolve.errors import OracleNotCertified
from privsolve.problems.perturbation import OBJECTIVE_LIMIT, UNIT, AnyPerturbation, Perturbation
from privsolve.problems.problem import BaseProblem


@dataclass(frozen=True, eq=False)
class Solution:
    """A minimiser with its certificate. `value` and `lower` are exact integers in units of `2^-20` mistakes.

    `tolerance` is the gap, in mistakes, up to which the oracle calls its answer certified.
    """

    weights: Int64Array
    value: int
    lower: int
    tolerance: float = 0.0
    work: dict[str, Any] = field(default_factory=dict)

    @property
    def objective(self) -> float:
        """Perturbed loss of the weights, in mistakes."""
        return self.value / UNIT

    @property
    def bound(self) -> float:
        """Proved lower bound on the perturbed loss of every member, in mistakes."""
        return self.lower / UNIT

    @property
    def certified(self) -> bool:
        """Whether objective and bound are within the tolerance."""
        return self.value - self.lower <= math.floor(self.tolerance * UNIT)


@runtime_checkable
class Oracle(Protocol):
    """Anything with `minimise(problem, perturbation)` that returns an object with `weights` and a lower `bound`.

    Optional attributes: `name`, and `tolerance`, the additive error in mistakes that its answers may have beyond
    rounding (0 if missing). The mechanism pays for the tolerance in noise (theory, section 1), so it must be stated
    before the solve and hold for every answer.
    """

    def minimise(self, problem: Any, perturbation: Perturbation) -> Any:
        """A member of the domain whose perturbed loss is within the tolerance of the smallest."""
        ...


def oracle_name(oracle: Oracle) -> str:
    """The oracle's `name`, or its class."""
    return str(getattr(oracle, "name", type(oracle).__name__))


def oracle_tolerance(oracle: Oracle) -> float:
    """The oracle's stated additive error in mistakes, validated."""
    return check_error("oracle.tolerance", getattr(oracle, "tolerance", 0.0))


def verified(answer: Any, problem: BaseProblem, perturbation: AnyPerturbation, oracle: Oracle) -> Solution:
    """The answer of any oracle held to its certificate: membership, exact objective and gap are recomputed here."""
    name = oracle_name(oracle)
    weights = _member(answer, problem, name)
    value = problem.objective(weights, perturbation)
    lower = _lower_bound(answer, name)
    tolerance = oracle_tolerance(oracle)
    if lower > value + tolerance * UNIT + 1:
        raise OracleNotCertified(
            f"oracle {name!r} claims a bound of {lower / UNIT:.6g} above the objective {value / UNIT:.6g} of its own answer: "
            "its certificate is wrong and nothing is released"
        )
    work = getattr(answer, "work", None)
    solution = Solution(weights, value, min(lower, value), tolerance, dict(work) if isinstance(work, Mapping) else {})
    if not solution.certified:
        raise OracleNotCertified(
            f"oracle {name!r} left a gap of {(solution.value - solution.lower) / UNIT:.6g} mistakes, more than its "
            f"tolerance of {solution.tolerance:g}: nothing is released; give it more work on the same noise"
        )
    return solution


def _member(answer: Any, problem: BaseProblem, name: str) -> Int64Array:
    try:
        weights = np.asarray(getattr(answer, "weights", None))
    except ValueError:  # no array at all
        weights = np.empty(0)
    if weights.dtype.kind not in "iu" or not problem.domain.contains(weights):
        raise OracleNotCertified(
            f"oracle {name!r} returned weights outside the domain (or not integers): nothing is released"
        )
    return weights.astype(np.int64)


def _lower_bound(answer: Any, name: str) -> int:
    """The answer's bound in units: exact if it has `lower`, otherwise its float `bound` rounded down.

    Every wrong bound ends in `OracleNotCertified`, which carries the noise on to a retry: no other error may get out here.
    """
    lower = getattr(answer, "lower", None)
    if not isinstance(lower, int):
        try:
            lower = math.floor(Fraction(check_finite("bound", getattr(answer, "bound", None))) * UNIT)
        except ValueError:
            lower = None
    if lower is None or abs(lower) > OBJECTIVE_LIMIT:
        raise OracleNotCertified(
            f"oracle {name!r} gave no finite lower `bound` in the range of objectives: its answer cannot be certified"
        )
    return lower


def solution_of(
    problem: BaseProblem, perturbation: AnyPerturbation, weights: ArrayLike, lower: int, **work: Any
) -> Solution:
    """A solution with its objective recomputed from the table."""
    w = np.asarray(weights, dtype=np.int64)
    return Solution(w, problem.objective(w, perturbation), lower, work=work)
