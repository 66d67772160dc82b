"""From the options of a command to the recipe of a fit: which schema is asked, and how a table of it becomes a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from privsolve.cli.options import ModelName, class_weights
from privsolve.data import Schema
from privsolve.learn.choosing import UnionRecipe
from privsolve.learn.fitting import Objective, Recipe
from privsolve.learn.full_cards import DEFAULT_DELTA, FullCardRecipe
from privsolve.learn.growing import TreeRecipe
from privsolve.learn.limits import CardLimits
from privsolve.models.leaves import LeafKind
from privsolve.releases import Run


class Chosen(NamedTuple):
    """The schema that a table must be encoded by, and what makes a run of it (`progress`, `random_state`, `budget`)."""

    asked: Schema
    run: Callable[..., Run]


@dataclass(frozen=True)
class Wanted:
    """The options of `fit` that say what is chosen, and how; `plan` rehearses with the same."""

    model: ModelName
    adjacency: str
    costs: tuple[int, int]
    objective: Objective
    log_odds: float
    limits: CardLimits
    max_features: int | None
    max_points: int | None
    intercept: int
    depth: int
    leaves: LeafKind
    card_weight: float
    mechanism: str = "exponential"
    oracle: str = "tree"
    noise: str | None = None
    delta: float | None = None
    sparsity: float = 0.0

    def recipe(self, epsilon: float, schema: Schema) -> Chosen:
        """Everything but the data; whatever does not fit together is refused."""
        if self.model is ModelName.scorecard:
            full = self.full_recipe(epsilon)
            return Chosen(replace(full.asked(schema), intercept=False), full.run)
        if self.model is not ModelName.short and self.mechanism != "exponential":
            raise ValueError(
                f"--mechanism {self.mechanism}: trees are drawn by the exponential mechanism; leave it out"
            )
        ends = (-self.intercept, self.intercept)
        cards: dict[str, Any] = {"max_features": self.max_features, "max_points": self.short_points, "intercept": ends}
        paid: dict[str, Any] = {"adjacency": self.adjacency, **dict(zip(_COSTS, self.costs, strict=True))}
        found: TreeRecipe | UnionRecipe
        if self.model is ModelName.tree:
            found = TreeRecipe(epsilon, schema, self.depth, self.leaves, **paid)
        elif self.model is ModelName.auto:
            found = UnionRecipe(epsilon, schema, self.depth, **cards, **paid, weights=class_weights(self.card_weight))
        else:
            recipe = self.card_recipe(epsilon)
            domain = self.limits.domain(schema, **cards | {"intercept": ends if schema.intercept else None})
            return Chosen(schema, partial(recipe.run, domain=domain))
        return Chosen(found.asked, found.run)

    @property
    def short_points(self) -> int:
        """The most points of a feature of a short card."""
        return 3 if self.max_points is None else self.max_points

    def full_recipe(self, epsilon: float) -> FullCardRecipe:
        """How a full scorecard is found."""
        return FullCardRecipe(
            epsilon,
            DEFAULT_DELTA if self.delta is None else self.delta,
            self.adjacency,
            10 if self.max_points is None else self.max_points,
            self.limits.max_questions,
            self.sparsity,
            self.limits.constraints,
            *self.costs,
        )

    def card_recipe(self, epsilon: float) -> Recipe:
        """How a card is chosen."""
        return Recipe(
            epsilon, self.mechanism, self.adjacency, oracle=self.oracle, noise=self.noise, delta=self.delta,
            false_positive=self.costs[0], false_negative=self.costs[1], objective=self.objective, log_odds=self.log_odds,
        )  # fmt: skip


_COSTS = ("false_positive", "false_negative")
