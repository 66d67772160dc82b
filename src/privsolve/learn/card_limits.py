"""What a short card must keep to, from the schema and from the options of a fit: together they make its domain."""

from __future__ import annotations

from dataclasses import dataclass

from privsolve.checks import check_count
from privsolve.data import Schema
from privsolve.data.constraints import Constraints
from privsolve.domains import ConstrainedPoints, SparsePoints
from privsolve.engines.supports.instance import LARGEST_SUPPORT
from privsolve.engines.supports.work import default_max_features


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
        ends = self.intercept if schema.intercept else None
        if not self.restrict and not self._constraints(schema):
            return self.plain_domain(schema.dim, schema.intercept)
        columns = schema.dim - schema.intercept
        wide = 1 if self.max_features is None else columns
        found = self.on(schema, SparsePoints(schema.dim, wide, self.max_points, ends))
        most = self._default(found) if self.max_features is None else min(self.max_features, columns)
        if most > LARGEST_SUPPORT:
            raise ValueError(f"max_features must be at most {LARGEST_SUPPORT} for cards with constraints, got {most}")
        return found.on(SparsePoints(schema.dim, most, self.max_points, ends))

    def plain_domain(self, dim: int, has_intercept: bool) -> SparsePoints:
        """The cards on `dim` features, the last of which is the intercept if there is one, whatever is stated of columns."""
        columns = dim - has_intercept
        most = self.max_features
        most = default_max_features(columns) if most is None else check_count("max_features", most)
        return SparsePoints(dim, min(most, columns), self.max_points, self.intercept if has_intercept else None)

    def on(self, schema: Schema, cards: SparsePoints) -> ConstrainedPoints:
        """Those of the cards that keep to everything; as many features as there are required columns are always allowed."""
        stated, columns = self._constraints(schema), schema.columns
        most = min(max(cards.max_features, len(stated.required)), cards.columns)
        return ConstrainedPoints(
            cards.dim,
            most,
            cards.max_points,
            cards.intercept,
            variables=tuple(c.column for c in columns for _ in c.names),
            max_questions=self.max_questions,
            signs=tuple(stated.signs(columns)),
            required=stated.required,
            excluded=stated.excluded,
        )

    def _constraints(self, schema: Schema) -> Constraints:
        return joined_constraints(schema, self.constraints)

    def _default(self, domain: ConstrainedPoints) -> int:
        """Features of a card if only questions are limited: as many as without, and at least one for each question."""
        most = max(default_max_features(len(domain.usable)), self.max_questions or 0, len(domain.required))
        return min(most, len(domain.usable))


def joined_constraints(schema: Schema, more: Constraints | None) -> Constraints:
    """What is stated of single columns, by the schema and beside it; raises for what does not suit the schema."""
    if more is None:
        return schema.constraints
    if not isinstance(more, Constraints):
        raise ValueError(f"constraints must be privsolve Constraints, got {type(more).__name__}")
    more.check(schema.columns)
    joined = schema.constraints.joined(more)
    joined.check(schema.columns)
    return joined
