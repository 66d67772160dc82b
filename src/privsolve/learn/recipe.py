"""The one road from a table to a run, for the estimators and the command line alike.

A `Recipe` says which schema a table is encoded by, encodes it, and makes a run of that. There is one for each kind of model:
`FullCardRecipe`, `NumberCardRecipe`, `ShortCardRecipe` and `TreeRecipe`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol, TypedDict, Unpack

import numpy as np

from privsolve.data import EncodedTable, Schema
from privsolve.data.constraints import Constraints, checked_constraints
from privsolve.noise.entropy import Randomness
from privsolve.privacy.accounting import Account
from privsolve.releases import Run

RandomState = int | np.random.SeedSequence | Randomness | None


class Paying(TypedDict, total=False):
    """What every run takes beside its records."""

    random_state: RandomState
    progress: Any
    budget: Account | None


class Recipe(Protocol):
    """How a model is found: everything but the data. All of it is public and fixed before the data is looked at."""

    def encoding(self, schema: Schema) -> Schema:
        """The schema that the records are encoded by; raises for a schema that does not suit the model."""

    def run(self, encoded: EncodedTable, **paid: Unpack[Paying]) -> Run:
        """Find the model for a table that the schema of `encoding` has read."""


def encode(recipe: Recipe, schema: Schema, data: Any, positive: Any = None) -> EncodedTable:
    """The records of a table as the recipe needs them; labels are `positive`, or in the column that the schema names."""
    return recipe.encoding(schema).table(data, positive, sample_rate=sample_rate_of(recipe))


def sample_rate_of(recipe: Recipe) -> float:
    """The share of the records that the recipe states it keeps: all of them if it states nothing."""
    return float(getattr(recipe, "sample_rate", 1.0))


def with_outside(run: Run, encoded: EncodedTable) -> Run:
    """The run with the number of records, and what fell outside the schema, among its diagnostics."""
    outside = {column: dict(counts) for column, counts in encoded.outside.items()}
    seen = {"training_records": encoded.table.n, "outside_the_schema": outside}
    return replace(run, diagnostics=replace(run.diagnostics, values=run.diagnostics.values | seen))


def joined_constraints(schema: Schema, more: Constraints | None) -> Constraints:
    """What is stated of single columns, by the schema and beside it; raises for what does not suit the schema."""
    if more is None:
        return schema.constraints
    checked_constraints(more).check(schema.columns)
    joined = schema.constraints.joined(more)
    joined.check(schema.columns)
    return joined
