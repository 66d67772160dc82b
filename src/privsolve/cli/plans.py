"""What is expected of a card or of a tree: a promise for every epsilon."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rich.table import Table

from privsolve.cli.common import console
from privsolve.cli.model_options import ModelOptions
from privsolve.data import Schema
from privsolve.domains import ConstrainedPoints, SparsePoints
from privsolve.domains.trees import DecisionTrees
from privsolve.engines.supports.work import estimate
from privsolve.engines.trees.sampler import Work
from privsolve.learn.planning import expectations, tree_expectations
from privsolve.losses import BrierLoss, ZeroOneLoss
from privsolve.losses.scores import ROUNDED_TO
from privsolve.mechanisms.base import Expectation
from privsolve.mechanisms.objective import Plan as ObjectivePlan
from privsolve.mechanisms.trees import public_work
from privsolve.models.leaves import UNIT, ProbabilityLeaves
from privsolve.privacy.adjacency import Adjacency


@dataclass(frozen=True)
class Plan(ABC):
    """What a release of one kind may cost beyond the best of its kind, with probability 0.95."""

    records: int
    adjacency: str

    @abstractmethod
    def share(self, epsilon: float) -> float:
        """What is promised of the most likely choice, as a share of the records."""

    @abstractmethod
    def content(self, epsilon: float) -> dict[str, Any]:
        """Machine-readable."""

    @abstractmethod
    def show(self, epsilon: float) -> None:
        """On the terminal."""


@dataclass(frozen=True)
class FullPlan(Plan):
    """Full scorecards: how much noise the weights get. There is no bound on mistakes; a rehearsal shows what is typical."""

    choice: ModelOptions
    schema: Schema | None
    features: int

    def share(self, epsilon: float) -> float:
        """No promise by mistakes."""
        raise ValueError("--lose is for short cards and trees: use --epsilon and --rehearse, or --model short")

    def content(self, epsilon: float) -> dict[str, Any]:
        """The public numbers of the mechanism."""
        recipe = self.choice.full_recipe(epsilon)
        if self.schema is not None:
            return recipe.plan(recipe.encoding(self.schema)).to_dict() | {"records": self.records}
        adjacency = Adjacency.of(self.adjacency)
        found = ObjectivePlan(epsilon, recipe.delta, adjacency, self.features, self.features)
        return found.to_dict() | {"records": self.records}

    def show(self, epsilon: float) -> None:
        """In two sentences."""
        found = self.content(epsilon)
        console.print(
            f"Full scorecard with points for all answers ({found['features']} features), {self.records:,} records, epsilon "
            f"{epsilon:g}, delta {found['delta']:g}"
        )
        console.print("How good it gets depends on the records: --rehearse fits made-up records of the schema.")


@dataclass(frozen=True)
class CardPlan(Plan):
    """Scorecards by mistakes or by risk; the mechanisms for experts on demand."""

    domain: SparsePoints
    loss: ZeroOneLoss | BrierLoss
    expert: bool = False

    def share(self, epsilon: float) -> float:
        """Of the exponential mechanism, for short cards."""
        return self._shares(self._bounds(self.domain, epsilon))[0]

    def content(self, epsilon: float) -> dict[str, Any]:
        """Bounds with and without constraints, and seconds."""
        found: dict[str, Any] = {"scorecards": self.domain.size, "records": self.records, "epsilon": epsilon}
        bounds = self._bounds(self.domain, epsilon)
        found |= {"bounds": _rows(bounds, self._shares(bounds)), "seconds": self._seconds}
        if isinstance(self.domain, ConstrainedPoints):
            free = self._bounds(self.domain.plain, epsilon)[: len(bounds)]
            found["without_constraints"] = {
                "scorecards": self.domain.plain.size,
                "bounds": _rows(free, self._shares(free)),
            }
        return found

    def show(self, epsilon: float) -> None:
        """The promise in a sentence, or a table of all mechanisms."""
        domain, bounds = self.domain, self._bounds(self.domain, epsilon)
        shares = self._shares(bounds)
        what = "Brier loss" if self._by_risk else "mistakes" if self.loss.largest == 1 else "cost"
        console.print(
            f"{domain.size:,} scorecards on {domain.columns} features, {self.records:,} records, epsilon {epsilon:g}"
        )
        if self.expert:
            title = f"More {what} than the best card, at most, with probability 0.95"
            console.print(_table(title, ("mechanism", what, "of records", "best of all cards with"), bounds, shares))
        else:
            first = bounds[0]
            console.print(
                f"Promise: with probability 0.95 at most {first.excess:,.0f} more {what} than the best card with "
                f"{first.compared_with or 'the same limits'}, {_of_records(shares[0])}."
            )
        if isinstance(domain, ConstrainedPoints):
            without = self._bounds(domain.plain, epsilon)[0]
            console.print(
                f"The constraints leave {domain.size:,} of {domain.plain.size:,} cards; without them it would be "
                f"{without.excess:,.0f}."
            )
        if math.isinf(self._seconds):
            console.print("There are too many cards for the memory of a usual machine: use fewer --max-features.")
        else:
            console.print(f"Time: {_seconds(self._seconds)} once compiled, from public numbers.")

    @property
    def _by_risk(self) -> bool:
        return isinstance(self.loss, BrierLoss)

    def _bounds(self, domain: SparsePoints, epsilon: float) -> tuple[Expectation, ...]:
        """In mistakes, costs or Brier's loss, as people count them."""
        found = expectations(domain, epsilon, adjacency=self.adjacency, loss=self.loss, expert=self.expert)
        unit = ROUNDED_TO if self._by_risk else 1
        return tuple(replace(bound, excess=bound.excess / unit) for bound in found)

    def _shares(self, bounds: Sequence[Expectation]) -> list[float]:
        unit = 1 if self._by_risk else self.loss.largest
        return [bound.excess / self.records / unit for bound in bounds]

    @property
    def _seconds(self) -> float:
        if isinstance(self.domain, ConstrainedPoints):
            usable, supports = len(self.domain.usable), self.domain.supports
            return estimate(usable, self.domain.max_features, self.records, supports=supports)
        return estimate(self.domain.columns, self.domain.max_features, self.records)


@dataclass(frozen=True)
class TreePlan(Plan):
    """Trees of a depth."""

    trees: DecisionTrees

    def _bounds(self, epsilon: float) -> tuple[Expectation, ...]:
        return tree_expectations(self.trees, epsilon, adjacency=self.adjacency)

    def _shares(self, bounds: Sequence[Expectation]) -> list[float]:
        return [bound.excess / self.records / self.trees.leaves.range for bound in bounds]

    def share(self, epsilon: float) -> float:
        """Of the first line: the smallest trees."""
        return self._shares(self._bounds(epsilon))[0]

    @property
    def _work(self) -> Work:
        return public_work(self.trees, self.records)

    def content(self, epsilon: float) -> dict[str, Any]:
        """Bounds by depth, and work."""
        work, bounds = asdict(self._work) | {"seconds": self._work.seconds}, self._bounds(epsilon)
        found = {"depth": self.trees.depth, "features": self.trees.questions.size, "records": self.records}
        return found | {"epsilon": epsilon, "bounds": _rows(bounds, self._shares(bounds)), "work": work}

    def show(self, epsilon: float) -> None:
        """A table by depth."""
        console.print(
            f"trees of depth {self.trees.depth} on {self.trees.questions.size} features, {self.records:,} records, "
            f"epsilon {epsilon:g}"
        )
        leaves, unit = self.trees.leaves, 1.0
        what = "mistakes" if leaves.range == 1 else "cost"
        if isinstance(leaves, ProbabilityLeaves):
            what, unit = "Brier loss", UNIT
        title = f"More {what} than the best, at most, with probability 0.95"
        bounds = self._bounds(epsilon)
        heads = ("drawn", what, "of records", "best of all")
        console.print(_table(title, heads, bounds, self._shares(bounds), unit))
        sums = self._work
        console.print(
            f"The sums over trees take about {_seconds(sums.processor_seconds)} of computing, shared by all cores, beside "
            f"the counting, and at most {max(1, round(sums.memory / 2**20)):,} MiB: public numbers."
        )


def _seconds(seconds: float) -> str:
    return "a second or less" if seconds <= 1 else f"{seconds:,.0f} s"


def _of_records(share: float) -> str:
    return f"{share:.1%} of the records" if share < 1 else "which says nothing"


def _rows(bounds: Sequence[Expectation], shares: Sequence[float]) -> list[dict[str, Any]]:
    return [asdict(bound) | {"share": min(1.0, share)} for bound, share in zip(bounds, shares, strict=True)]


def _table(
    title: str, heads: Sequence[str], bounds: Sequence[Expectation], shares: Sequence[float], unit: float = 1
) -> Table:
    table = Table(title=title, min_width=min(len(title), console.width))
    for place, head in enumerate(heads):
        table.add_column(head, justify="right" if place in (1, 2) else "left")
    for bound, share in zip(bounds, shares, strict=True):
        words = f"{share:.1%}" if share < 1 else "says nothing"
        table.add_row(bound.mechanism, f"{bound.excess / unit:,.0f}", words, bound.compared_with)
    return table
