"""The curator's view: the three private models and logistic regression without privacy, on the same records."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from privsolve.arrays import Floats
from privsolve.cards.comparison import Compared, Comparison
from privsolve.data import EncodedTable, Schema
from privsolve.data.patterns import PatternTable
from privsolve.errors import PrivsolveError
from privsolve.evaluation.cells import Cells
from privsolve.evaluation.measure import exact_cells
from privsolve.evaluation.split import split
from privsolve.learn.full_card_recipe import DEFAULT_DELTA, FullCardRecipe
from privsolve.learn.recipe import Recipe, encode
from privsolve.learn.short_card_recipe import ShortCardRecipe
from privsolve.learn.tree_recipe import DEPTH, TreeRecipe, leaves_of
from privsolve.models.linear import decision_words
from privsolve.models.outcomes import MOST_OUTCOMES, Outcome
from privsolve.noise.entropy import as_randomness

HELD_OUT = 0.2
"""Share of the records that the models are measured on."""


def compare_models(
    schema: Schema,
    data: Any,
    epsilon: float,
    *,
    delta: float = DEFAULT_DELTA,
    adjacency: str = "replace",
    seed: int | None = None,
) -> Comparison:
    """Fit every kind of model on the same four fifths of the records and measure it on the rest, without noise.

    Nothing is paid for, because nothing of it is released: the result is the curator's, and must not be published.

    Args:
        schema: what is public about the table; it names the label.
        data: the table.
        epsilon: privacy budget that each private model is fitted with.
        delta: the δ of the full scorecard.
        adjacency: `"replace"` or `"add-remove"`.
        seed: makes split and noise repeatable.

    Returns:
        The models with their exact counts on the held-out records.

    Raises:
        ValueError: if the table has too few records of one label to compare anything.
    """
    if schema.target is not None:
        raise ValueError(
            f"label {schema.target.column!r}: models are compared by a yes/no label, not by classes or numbers"
        )
    no, yes = reversed(decision_words(schema))
    full = FullCardRecipe(epsilon, delta, adjacency)
    whole = encode(full, schema, data)
    whole.check()
    rng = as_randomness(seed)
    training, (held,) = split((whole.table,), HELD_OUT, rng)
    for table, where in ((training, "to fit on"), (held, "to measure on")):
        if table is None or not table.positives.sum() or not table.negatives.sum():
            raise ValueError(f"too few records: of those {where} all have the same label, so nothing can be compared")
    assert held is not None
    private = f"ε = {epsilon:g}"
    recipes: list[tuple[str, str, Recipe]] = [
        ("Full scorecard", f"{private}, δ = {delta:g}", full),
        ("Short card", private, ShortCardRecipe(epsilon, adjacency=adjacency)),
        ("Decision tree", private, TreeRecipe(epsilon, DEPTH, leaves_of((no, yes)), adjacency)),
    ]
    models = [_fitted(*one, replace(whole, table=training), held, rng) for one in recipes]
    models += [Compared(name, "none", cells) for name, cells in _without_privacy(training, held)]
    assert schema.label is not None  # a table without a label is refused when it is read
    title = schema.about.question or f"{schema.label.column} {schema.label.words[0]}"
    return Comparison(title, (training.n, held.n), (no, yes), tuple(models))


def _fitted(name: str, privacy: str, recipe: Recipe, training: EncodedTable, held: PatternTable, rng: Any) -> Compared:
    """A private model measured on the held-out records; a model that refuses the table says why."""
    schema = replace(training.schema, intercept=isinstance(recipe, ShortCardRecipe))
    try:
        asked = recipe.encoding(schema)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = recipe.run(replace(training, schema=asked, table=_table(training.table, asked)), random_state=rng)
    except (ValueError, PrivsolveError) as error:
        return Compared(name, privacy, None, str(error))
    outcomes = run.release.model.outcomes()
    return Compared(name, privacy, exact_cells(outcomes, (_table(held, asked),)))


def _table(table: PatternTable, schema: Schema) -> PatternTable:
    """The same records with the features of a schema, which may have an intercept besides."""
    if not schema.intercept:
        return table
    rows = np.hstack([table.rows, np.ones((len(table.rows), 1), dtype=table.rows.dtype)])
    return PatternTable(rows, table.positives, table.negatives, schema.features, schema.scales, schema.ranges)


def _without_privacy(training: PatternTable, held: PatternTable) -> Iterator[tuple[str, Cells]]:
    """Logistic regression on the same features, and the larger class for everybody."""
    from sklearn.linear_model import LogisticRegression

    count = len(training.rows)
    rows, labels = np.vstack([training.rows, training.rows]), np.repeat([1, 0], count)
    model = LogisticRegression(max_iter=1000)
    model.fit(rows, labels, sample_weight=np.concatenate([training.positives, training.negatives]))
    yield "Logistic regression", _by_risk(model.predict_proba(held.rows)[:, 1], held)
    share = float(training.positives.sum() / training.n)
    everybody = Outcome("everybody", 0, bool(training.positives.sum() > training.negatives.sum()), share)
    counts = np.array([[[held.negatives.sum(), held.positives.sum()]]])
    yield "The larger class for everybody", Cells((everybody,), counts)


def _by_risk(risks: Floats, held: PatternTable) -> Cells:
    """Counts by groups of equal size of predicted risks, none of which has the threshold inside."""
    edges = np.unique(np.append(np.quantile(risks, np.linspace(0, 1, MOST_OUTCOMES)[1:-1]), 0.5))
    number = np.searchsorted(edges, risks, side="right")
    counts = np.zeros((1, len(edges) + 1, 2), dtype=np.int64)
    np.add.at(counts[0, :, 0], number, held.negatives)
    np.add.at(counts[0, :, 1], number, held.positives)
    size = (held.positives + held.negatives).astype(float)
    kept = [k for k in range(len(edges) + 1) if (number == k).any()]
    means = [float(np.average(risks[number == k], weights=size[number == k])) for k in kept]
    first = int(np.searchsorted(edges, 0.5, side="right"))
    listed = (Outcome(f"{mean:.3g}", k, k >= first, mean) for k, mean in zip(kept, means, strict=True))
    return Cells(tuple(listed), counts[:, kept])
