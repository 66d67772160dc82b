"""Mechanisms as values: what each is called, what it takes, promises and may cost, and how it runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from numpy import float64
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.domains import Domain
from privsolve.losses import Loss
from privsolve.noise.entropy import Randomness
from privsolve.privacy.accounting import promised
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.guarantee import Guarantee
from privsolve.problems.problem import BaseProblem
from privsolve.registry import enter
from privsolve.releases import Run

ANY_MEMBER = "any points"

_MECHANISMS: dict[str, type[Mechanism]] = {}


@dataclass(frozen=True)
class Expectation:
    """With probability `1 - beta` a release costs at most `excess` more than the best of the members `compared_with`."""

    mechanism: str
    excess: float
    compared_with: str = ANY_MEMBER


@dataclass(frozen=True)
class Variant:
    """One way to run a mechanism that audits attack: in words, and as options of `run`."""

    words: str
    options: Mapping[str, Any] = field(default_factory=dict)


class Mechanism(ABC):
    """A way to choose weights privately. A subclass with a `name` is registered when it is defined.

    Class attributes: `name`, the word that asks for it; `title`, the word in guarantees and tables; `options`, which of
    `prior`, `oracle`, `noise` and `delta` it takes; `exact_law` and `fast_draws`, how audits may attack it beside calling it.
    Fitting, planning, audits and the command line take their choices from
    the registered mechanisms, so a new one is a class in a new file, imported in `mechanisms.registry`.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    options: ClassVar[frozenset[str]] = frozenset()
    rank: ClassVar[int] = 100
    """Its place where mechanisms are listed, whatever was imported first; later ones follow in the order of definition."""
    keeps_constraints: ClassVar[bool] = False
    """Whether it chooses among cards with constraints (`ConstrainedPoints`)."""
    exact_law: ClassVar[bool] = False
    fast_draws: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in vars(cls):
            enter(_MECHANISMS, cls, "mechanism", "name")

    @property
    def called(self) -> str:
        """What it is called in a sentence."""
        return self.name

    @abstractmethod
    def run(self, problem: BaseProblem, epsilon: float, **options: Any) -> Run:
        """One release. Takes `adjacency`, `random_state`, `progress` and `budget` beside the options of the class."""

    def promise(self, problem: BaseProblem, epsilon: float, **options: Any) -> Guarantee:
        """What `run` with the same arguments would promise; it is stopped before it draws any noise."""
        return promised(self.run, problem, epsilon, **options)

    @abstractmethod
    def expectations(
        self, domain: Domain, epsilon: float, *, adjacency: Adjacency, loss: Loss, beta: float
    ) -> tuple[Expectation, ...]:
        """What a release may cost at most, for every table: looks at no data."""

    def noises(self) -> tuple[str, ...]:
        """The noise laws to choose from, the default first; none for a mechanism without a choice."""
        return ()

    def defaults(self, domain: Domain) -> dict[str, Any]:
        """What fitting uses for options that are left out."""
        return {}

    def variants(self, delta: float) -> tuple[Variant, ...]:
        """What audits attack on every case, with `delta` where one is needed: by default the mechanism as it is."""
        return (Variant(self.name),)

    def log_law(
        self, problem: BaseProblem, epsilon: float, *, adjacency: Adjacency, **options: Any
    ) -> NDArray[float64]:
        """The log probability of every member of a small domain, where `exact_law` says that it can be computed."""
        raise NotImplementedError

    def draws(
        self, problem: BaseProblem, epsilon: float, runs: int, rng: Randomness, *, adjacency: Adjacency, **options: Any
    ) -> Int64Array:
        """Numbers of the members that `runs` independent runs release, where `fast_draws` says that there is a fast way."""
        raise NotImplementedError


def mechanism_names() -> tuple[str, ...]:
    """The names of all registered mechanisms."""
    return tuple(mechanism.name for mechanism in all_mechanisms())


def all_mechanisms() -> tuple[Mechanism, ...]:
    """All registered mechanisms, by rank."""
    return tuple(cls() for cls in sorted(_MECHANISMS.values(), key=lambda cls: cls.rank))


def mechanism_of(name: object) -> Mechanism:
    """The mechanism of that name, or an error that names the choices."""
    if not isinstance(name, str) or name not in _MECHANISMS:
        raise ValueError(f"mechanism must be one of {', '.join(mechanism_names())}, got {name!r}")
    return _MECHANISMS[name]()
