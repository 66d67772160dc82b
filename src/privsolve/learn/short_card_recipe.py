"""Short cards: from an encoded table to a card with points for a few answers (theory, section 4)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Unpack

from privsolve.checks import check_count
from privsolve.data import EncodedTable, Schema
from privsolve.data.constraints import Constraints
from privsolve.domains import ConstrainedPoints, SparsePoints
from privsolve.engines.supports.instance import LARGEST_SUPPORT
from privsolve.engines.supports.problems import declares_columns
from privsolve.engines.supports.work import check_work, default_max_features
from privsolve.learn.recipe import Paying, joined_constraints, with_outside
from privsolve.losses import ZeroOneLoss
from privsolve.mechanisms.exponential import exponential
from privsolve.models.tally import check_scores
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.calibration import check_epsilon
from privsolve.problems.priors import Prior, checked_prior, default_prior
from privsolve.problems.problem import Problem
from privsolve.releases import Run


@dataclass(frozen=True)
class CardLimits:
    """The cards to choose from: their features, points and intercept, and what people state about single columns.

    Args:
        max_features: maximum number of features with points; a default by the number of columns if left out.
        max_points: points lie in `-max_points..max_points`.
        intercept: range of the intercept, if the schema has one: a pair, or one number b for `(-b, b)`.
        max_questions: maximum number of columns of the table that a card asks for.
        constraints: directions, required and excluded columns, beside those of the schema.
    """

    max_features: int | None = None
    max_points: int = 3
    intercept: int | tuple[int, int] = (-8, 8)
    max_questions: int | None = None
    constraints: Constraints | None = None

    @property
    def restrict(self) -> bool:
        """Whether anything is stated about questions or columns."""
        return bool(self.constraints) or self.max_questions is not None

    def domain(self, schema: Schema) -> SparsePoints:
        """The cards on the features of a schema."""
        stated, columns = joined_constraints(schema, self.constraints), schema.dim - schema.intercept
        if not self.restrict and not stated:
            return self.plain_domain(schema.dim, schema.intercept)
        wide = columns if self.max_features is not None else min(max(1, len(stated.required)), columns)
        cards = SparsePoints(schema.dim, wide, self.max_points, self.intercept if schema.intercept else None)
        found = ConstrainedPoints(
            cards.dim,
            wide,
            cards.max_points,
            cards.intercept,
            variables=tuple(column.column for column in schema.columns for _ in column.names),
            max_questions=self.max_questions,
            signs=tuple(stated.signs(schema.columns)),
            required=stated.required,
            excluded=stated.excluded,
        )
        if self.max_features is not None:
            most = min(self.max_features, columns)
        else:  # as many as without constraints, and at least one for each question
            usable = len(found.usable)
            most = min(max(default_max_features(usable), self.max_questions or 0, len(found.required)), usable)
        if most > LARGEST_SUPPORT:
            raise ValueError(f"max_features must be at most {LARGEST_SUPPORT} for cards with constraints, got {most}")
        return replace(found, max_features=most)

    def plain_domain(self, dim: int, has_intercept: bool) -> SparsePoints:
        """The cards on `dim` features, the last of which is the intercept if there is one, whatever is stated of columns."""
        columns = dim - has_intercept
        most = self.max_features
        most = default_max_features(columns) if most is None else check_count("max_features", most)
        return SparsePoints(dim, min(most, columns), self.max_points, self.intercept if has_intercept else None)


@dataclass(frozen=True)
class ShortCardRecipe:
    """How a short card is chosen: everything but the data. All of it is public and fixed before the data is looked at.

    Args:
        epsilon: privacy budget of the card.
        limits: the cards to choose from.
        adjacency: `"replace"` or `"add-remove"`.
        prior: what is likely before the data is seen; cards with about two features by default.
        false_positive, false_negative: costs of the two kinds of mistake.
    """

    epsilon: float
    limits: CardLimits = field(default_factory=CardLimits)
    adjacency: Adjacency | str = Adjacency.REPLACE
    prior: Prior | None = None
    false_positive: int = 1
    false_negative: int = 1

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        Adjacency.of(self.adjacency)
        _ = self.loss
        if self.limits.max_questions is not None:
            check_count("max_questions", self.limits.max_questions)
        checked_prior(self.prior, self.limits.plain_domain(2, True))

    @property
    def loss(self) -> ZeroOneLoss:
        """What a record loses: the cost of a wrong decision."""
        return ZeroOneLoss(self.false_positive, self.false_negative)

    def encoding(self, schema: Schema) -> Schema:
        """The schema itself, if cards with these limits suit it."""
        self.limits.domain(schema)
        return schema

    def run(self, encoded: EncodedTable, **paid: Unpack[Paying]) -> Run:
        """Choose a card; the release carries the schema, the diagnostics what fell outside of it."""
        encoded.check()
        table, schema = encoded.table, encoded.schema
        domain = self.limits.domain(schema)
        check_scores(schema, [int(abs(domain.values(j)).max()) * (table.unit // s) for j, s in enumerate(table.scales)])
        problem = Problem(table, domain, self.loss, schema)
        if declares_columns(problem):
            records = problem.n if Adjacency.of(self.adjacency) is Adjacency.REPLACE else 0
            columns, supports = chosen_from(domain)
            check_work(columns, domain.max_features, records, supports)
        prior = default_prior(domain) if self.prior is None else self.prior
        run = exponential(problem, self.epsilon, adjacency=self.adjacency, prior=prior, **paid)
        return with_outside(run, encoded)


def chosen_from(domain: SparsePoints) -> tuple[int, int | None]:
    """The columns that may have points, and how many supports constraints leave of them; None for all."""
    return (len(domain.usable), domain.supports) if isinstance(domain, ConstrainedPoints) else (domain.columns, None)
