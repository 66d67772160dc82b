"""`privsolve plan`: what error to expect, before anything is spent."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from privsolve.cli.common import console, one_line_errors
from privsolve.cli.options import (
    Adjacency,
    Epsilon,
    FalseNegative,
    FalsePositive,
    Intercept,
    Json,
    MaxFeatures,
    MaxPoints,
)
from privsolve.data import Schema
from privsolve.learn.fitting import MAX_FEATURES, scorecard_domain
from privsolve.learn.planning import expectations
from privsolve.learn.publishing import as_json
from privsolve.losses import ZeroOneLoss


def plan(
    epsilon: Epsilon,
    records: Annotated[int, typer.Option(min=1, help="How many records the table will have.")],
    schema: Annotated[Path | None, typer.Option(help="Schema file, for the number of features.")] = None,
    features: Annotated[int | None, typer.Option(min=1, help="Number of 0/1 features, instead of a schema.")] = None,
    max_features: MaxFeatures = MAX_FEATURES,
    max_points: MaxPoints = 3,
    intercept: Intercept = 8,
    false_positive: FalsePositive = 1,
    false_negative: FalseNegative = 1,
    adjacency: Adjacency = "replace",
    json_output: Json = False,
) -> None:
    """What each mechanism may cost at most, with probability 0.95. Looks at no data and spends nothing."""
    with one_line_errors():
        if (schema is None) == (features is None):
            raise ValueError("give either --schema or --features")
        dim, has_intercept = (features or 0) + 1, True
        if schema is not None:
            found = Schema.load(schema)
            dim, has_intercept = found.dim, found.intercept
        domain = scorecard_domain(dim, max_features, max_points, (-intercept, intercept) if has_intercept else None)
        loss = ZeroOneLoss(false_positive, false_negative)
        bounds = expectations(domain, epsilon, adjacency=adjacency, loss=loss)
        shares = [bound.excess / records / loss.largest for bound in bounds]
        if json_output:
            rows = [asdict(bound) | {"share": min(1.0, share)} for bound, share in zip(bounds, shares, strict=True)]
            typer.echo(as_json({"scorecards": domain.size, "records": records, "epsilon": epsilon, "bounds": rows}))
            return
        console.print(
            f"{domain.size:,} scorecards on {domain.columns} features, {records:,} records, epsilon {epsilon:g}"
        )
        what = "mistakes" if loss.largest == 1 else "cost"
        table = Table(title=f"More {what} than the best card, at most, with probability 0.95")
        for head in ("mechanism", what, "of records", "best of all cards with"):
            table.add_column(head, justify="right" if head in (what, "of records") else "left")
        for bound, share in zip(bounds, shares, strict=True):
            words = f"{share:.1%}" if share < 1 else "says nothing"
            table.add_row(bound.mechanism, f"{bound.excess:,.0f}", words, bound.compared_with)
        console.print(table)
        console.print("Proved for every table, so usually far above what happens. Nothing was spent.")
