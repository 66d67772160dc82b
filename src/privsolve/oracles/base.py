"""What every oracle offers, its entry in the catalogue, and the check that every answer passes before it is used."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.checks import check_between, check_finite
from privsolve.domains import Domain
from privsolve.engines.coordinates.minimise import ProgressCallback
from privsolve.errors import OracleNotCertified, PrivsolveError
from privsolve.losses import Loss
from privsolve.problems.perturbation import OBJECTIVE_LIMIT, UNIT, Perturbation
from privsolve.problems.problem import BaseProblem

EXACT = "integers, exact"
TRUSTED = "floating point, trusts the solver's bound"


class SolverUnavailable(PrivsolveError, ImportError):
    """A solver is not installed, or cannot be loaded into this process; the message says what to do."""


@dataclass(frozen=True)
class Solver:
    """The entry of an oracle, stated by its class (`Oracle.about`). `module` is the package to install, None if built in."""

    name: str
    licence: str
    arithmetic: str
    note: str
    module: str | None = None

    @property
    def installed(self) -> bool:
        """Whether its package can be found; nothing is imported."""
        return self.module is None or importlib.util.find_spec(self.module) is not None

    @property
    def status(self) -> str:
        """Built in, the installed version, or how to install it."""
        if self.module is None:
            return "built in"
        return importlib.metadata.version(self.module) if self.installed else f"missing: {self._install}"

    @property
    def _install(self) -> str:
        return f"pip install 'privsolve[{self.name}]'"

    def load(self) -> ModuleType:
        """Import the solver's module, or raise `SolverUnavailable` with what to do about it."""
        if self.module is None or not self.installed:
            raise SolverUnavailable(
                f"oracle {self.name!r} needs the package {self.module}, which is not installed: {self._install}, or use "
                "oracle='tree'"
            )
        try:
            return importlib.import_module(self.module)
        except ImportError as error:
            raise SolverUnavailable(
                f"{self.module} is installed but cannot be loaded here ({error}): reinstall it, or use oracle='tree'"
            ) from error


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


Solve = Callable[[Perturbation, ProgressCallback | None], Any]
"""Solves one problem that has been prepared, for a perturbation like the one it was prepared for."""


class Oracle(ABC):
    """Minimises a perturbed loss over a domain and proves its answer. Only `minimise` has to be written.

    Class attributes say what the oracle can do, by public facts alone: `problems`, `domains` and `losses` that it takes
    (classes), and `lists`, whether it also takes perturbations that are listed member by member. `about` is its entry in the
    catalogue, for those that come with the package. Any other object with `minimise(problem, perturbation)` will do as an
    oracle too, and is taken as one without the hooks below (`as_oracle`).
    """

    problems: ClassVar[tuple[type[BaseProblem], ...]] = (BaseProblem,)
    domains: ClassVar[tuple[type[Domain], ...]] = (Domain,)
    losses: ClassVar[tuple[type[Loss], ...]] = (Loss,)
    about: ClassVar[Solver | None] = None

    tolerance: float = 0.0
    """The additive error, in mistakes, that answers may have beyond rounding. The mechanism pays for it in noise (theory,
    section 1), so it must be stated before the solve and hold for every answer."""

    @property
    def name(self) -> str:
        """The word for it in the guarantee."""
        return self.about.name if self.about else type(self).__name__

    def unsupported(self, problem: BaseProblem) -> str:
        """Why the oracle cannot take a problem, by public facts; empty if it can."""
        for what, value, taken in (
            ("problems", problem, self.problems),
            ("domains", problem.domain, self.domains),
            ("losses", problem.loss, self.losses),
        ):
            if not isinstance(value, taken):
                names = ", ".join(cls.__name__ for cls in taken)
                return f"oracle {self.name!r} does not take {type(value).__name__}: it takes {what} of {names}"
        return ""

    def check(self, problem: Any) -> None:
        """Raise before any noise is drawn if the problem cannot be solved, or the solver cannot be used."""
        if why := self.unsupported(problem):
            raise ValueError(f"{why}; use another oracle, such as 'enumeration' (`privsolve solvers` lists them)")

    def prepare(self, problem: Any, template: Perturbation) -> Solve:
        """Check the problem and do all work that needs no noise: what is returned solves it.

        `template` has the tables that the perturbation will have. Called before the release is paid for, so whatever can be
        refused, laid out or compiled belongs here.
        """
        self.check(problem)
        return lambda perturbation, progress: self.minimise(problem, perturbation, progress)

    @abstractmethod
    def minimise(self, problem: Any, perturbation: Any, progress: ProgressCallback | None = None) -> Any:
        """A member of the domain whose perturbed loss is within the tolerance of the smallest.

        The answer has `weights`, and a lower `bound` in mistakes or an exact `lower` in units of `2^-20` mistakes. `progress`
        may be called now and then with the state of the search.
        """


class PlainOracle(Oracle):
    """Any object with `minimise(problem, perturbation)`, and perhaps `name`, `tolerance` and `check(problem)`."""

    name = ""

    def __init__(self, oracle: Any) -> None:
        self._oracle = oracle
        self.name = str(getattr(oracle, "name", type(oracle).__name__))
        self.tolerance = getattr(oracle, "tolerance", 0.0)

    def check(self, problem: Any) -> None:
        """Its own check, if it has one."""
        if callable(check := getattr(self._oracle, "check", None)):
            check(problem)

    def minimise(self, problem: Any, perturbation: Any, progress: ProgressCallback | None = None) -> Any:
        """Its answer; it is not asked to report progress."""
        return self._oracle.minimise(problem, perturbation)


def as_oracle(oracle: object) -> Oracle:
    """An `Oracle` itself, any other object that can minimise as one; an error otherwise."""
    if isinstance(oracle, Oracle):
        return oracle
    if not callable(getattr(oracle, "minimise", None)):
        raise ValueError(f"oracle must be a name or have a method minimise(problem, perturbation), got {oracle!r}")
    return PlainOracle(oracle)


def check_limits(oracle: Oracle, *options: str) -> None:
    """Raise unless each of these fields of an oracle is positive, or None for no limit."""
    for option in options:
        value = getattr(oracle, option)
        if value is not None and not value > 0:
            raise ValueError(f"{option} must be positive or None, got {value!r}")


def oracle_tolerance(oracle: Oracle) -> float:
    """The oracle's stated additive error in mistakes, validated."""
    return check_between("oracle.tolerance", oracle.tolerance, 0)


def verified(answer: Any, problem: BaseProblem, perturbation: Perturbation, oracle: object) -> Solution:
    """The answer of any oracle held to its certificate: membership, exact objective and gap are recomputed here."""
    held = as_oracle(oracle)
    name, tolerance = held.name, oracle_tolerance(held)
    weights = _member(answer, problem, name)
    value = problem.objective(weights, perturbation)
    lower = _lower_bound(answer, name)
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
