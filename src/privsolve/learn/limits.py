"""What a card must keep to, from the schema and from the options of a fit: together they make its domain."""

from __future__ import annotations

from dataclasses import dataclass

from privsolve.data import Schema
from privsolve.data.constraints import Constraints
from privsolve.domains import ConstrainedPoints, SparsePoints
from privsolve.engines.supports.instance import LARGEST_SUPPORT
from privsolve.engines.supports.work import default_max_features
from privsolve.learn.fitting import scorecard_domain


@dataclass(frozen=True)
class CardLimits:
    """Limits of people: questions, cuts of one question, and what is known of single columns beside what the schema states."""

    max_questions: int | None = None
    max_cuts: int | None = None
    constraints: Constraints | None = None

    def constraints_on(self, schema: Schema) -> Constraints:
        """What is stated of single columns, by the schema and here."""
        more = Constraints() if self.constraints is None else self.constraints
        if not isinstance(more, Constraints):
            raise ValueError(f"constraints must be privsolve Constraints, got {type(more).__name__}")
        more.check(schema.columns)
        return schema.constraints.joined(more)

    def states(self, schema: Schema) -> bool:
        """Whether anything is stated at all."""
        return bool(self.constraints_on(schema)) or not (self.max_questions is None and self.max_cuts is None)

    def domain(
        self, schema: Schema, max_features: int | None, max_points: int, intercept: int | tuple[int, int] | None
    ) -> SparsePoints:
        """The cards to choose from."""
        if not self.states(schema):
            return scorecard_domain(schema.dim, max_features, max_points, intercept)
        columns = schema.dim - (intercept is not None)
        found = self.on(schema, SparsePoints(schema.dim, 1 if max_features is None else columns, max_points, intercept))
        most = self._default(found) if max_features is None else min(max_features, columns)
        if most > LARGEST_SUPPORT:
            raise ValueError(f"max_features must be at most {LARGEST_SUPPORT} for cards with constraints, got {most}")
        return found.on(SparsePoints(schema.dim, most, max_points, intercept))

    def on(self, schema: Schema, cards: SparsePoints) -> ConstrainedPoints:
        """Those of the cards that keep to everything; as many features as there are required columns are always allowed."""
        stated, columns = self.constraints_on(schema), schema.columns
        stated.check(columns)
        cuts = dict(stated.max_cuts)
        if self.max_cuts is not None:
            cuts = {c.column: min(self.max_cuts, cuts.get(c.column, self.max_cuts)) for c in columns}
        most = min(max(cards.max_features, len(stated.required)), cards.columns)
        return ConstrainedPoints(
            cards.dim, most, cards.max_points, cards.intercept,
            variables=[c.column for c in columns for _ in c.names],
            max_questions=self.max_questions, max_cuts=cuts, signs=stated.signs(columns), required=stated.required,
            excluded=stated.excluded, alternatives=stated.alternatives,
        )  # fmt: skip

    def _default(self, domain: ConstrainedPoints) -> int:
        """Features of a card if only questions are limited: as many as without, and at least one for each question."""
        most = max(default_max_features(len(domain.usable)), self.max_questions or 0, len(domain.required))
        if self.max_questions is not None and self.max_cuts is not None:
            most = min(most, self.max_questions * self.max_cuts)
        return min(most, len(domain.usable))


NO_LIMITS = CardLimits()
