"""What stands between a table and its files: choices, plans, what is published, and scores inside an engine."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privsolve as ps
from privsolve import Bins, Label, Number, PrivateShortCard, Schema, SparsePoints
from privsolve.cards.scoring import with_predictions
from privsolve.data.codes import codes_of_frame
from privsolve.errors import IntegerRangeError
from privsolve.learn.planning import card_expectation
from privsolve.learn.short_card_recipe import CardLimits, ShortCardRecipe
from privsolve.models.linear import LinearRule
from privsolve.problems.priors import default_prior
from privsolve.releases import NOT_PRIVATE, Release, Run
from privsolve.safety.folder import load_release, output_folder
from promises import promise
from random_scorecards import schema_release
from schema_data import tables
from small_tables import INDICATORS, SCHEMA, patients

PROMISE = promise(1.0, seeded=True)


def release_of(schema: Schema, weights: Any, max_points: int = 1000) -> Release:
    domain = SparsePoints(schema.dim, schema.dim - 1, max_points, (-1000, 1000))
    rule = LinearRule(np.asarray(weights, dtype=np.int64), schema.features, schema.scales, schema.intercept, schema)
    return Release(rule, PROMISE, {"domain": domain.to_dict(), "loss": ps.ZeroOneLoss().to_dict()})


def scored(table: Any, release: Release) -> Any:
    assert isinstance(release.model, LinearRule)
    return with_predictions(table, release.model)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_an_engine_scores_exactly_as_python_does(data: Any) -> None:
    schema, table = data.draw(tables())
    points = st.lists(st.sampled_from([0, 0, 1, -1, 2, -3]), min_size=schema.dim, max_size=schema.dim)
    release = release_of(schema, data.draw(points))
    unit = math.lcm(*schema.scales)
    encoded = schema.encode(table)
    exact = [
        sum(int(x) * int(w) * (unit // s) for x, w, s in zip(row, release.weights, schema.scales, strict=True))
        for row in encoded
    ]
    numbered = table.append_column("row", pa.array(range(len(table))))
    found = scored(ibis.memtable(numbered), release).order_by("row").to_pyarrow()
    assert found["score"].to_pylist() == list(release.model.totals(table))  # type: ignore[attr-defined]
    assert found["prediction"].to_pylist() == ["1" if e > 0 else "not 1" for e in exact]


@pytest.mark.parametrize("fitted_with", [SCHEMA, INDICATORS])
def test_an_engine_predicts_as_the_estimator_and_the_card_do(fitted_with: Schema) -> None:
    frame = patients(400, seed=3)
    settings = {"prior": ps.UniformPrior(), "intercept": 1, "schema": fitted_with, "random_state": 2}
    fitted = PrivateShortCard(0.01, **settings).fit(frame, frame["ill"])  # hardly looks at the data: points on anything
    used = {question.column for question in fitted.scorecard_.rows}
    assert used == {column.column for column in fitted_with.columns}
    table = ibis.memtable(pa.Table.from_pandas(frame.assign(row=range(400)), preserve_index=False))
    found = scored(table, fitted.release_).order_by("row").to_pyarrow().to_pydict()
    assert found["prediction"] == list(fitted.predict(frame))
    assert found["score"] == list(fitted.totals(frame))
    card, codes = fitted.scorecard_, codes_of_frame(frame, fitted_with.columns)
    texts = [[o.text for o in q.options] for q in fitted_with.questions()[:2]]  # type: ignore[union-attr]
    for i in range(50):
        if math.isnan(frame["age"][i]):
            continue
        answers = {"colour": texts[0][codes[0][i]], "age": texts[1][codes[1][i]], "dose": frame["dose"][i]}
        assert card.decide(answers) == f"ill {found['prediction'][i]}"
        assert float(card.score(answers)) == found["score"][i]


def test_predictions_are_values_of_the_label() -> None:
    table = ibis.memtable(pa.table({"age": [40, 20]}))
    for label, expected in (
        (Label("y", 1, 0), [1, 0]),
        (Label("y", True, False), [True, False]),
        (Label("y", ["a", "b"], "c"), ["a or b", "c"]),
        (None, ["positive", "negative"]),
    ):
        release = release_of(Schema([Bins("age", [30], "thresholds")], label), [2, -1])
        found = scored(table, release).order_by("score").to_pyarrow()
        assert found["prediction"].to_pylist()[::-1] == expected
        assert found["score"].to_pylist() == [0, 1]


def test_tables_that_cannot_be_scored() -> None:
    release = release_of(Schema([Bins("age", [30], "intervals")]), [1, 0, 0])
    bare = Release(replace(release.model, schema=None), PROMISE, release.setting)
    wide = Schema([Number("a", 0, 10**15), Number("b", 0, 1, 1, 2**40)])
    for table, made, error, words in (
        ({"years": [1]}, release, ValueError, "no column 'age'"),
        ({"age": [1], "score": [2]}, release, ValueError, "a column 'score' already"),
        ({"age": [1]}, bare, ValueError, "has no schema"),
        ({"a": [1], "b": [1]}, release_of(wide, [1, 1, 0]), IntegerRangeError, "narrower bounds"),
    ):
        with pytest.raises(error, match=words):
            scored(ibis.memtable(pa.table(table)), made)


def run_on(frame: Any, seed: int, schema: Schema = INDICATORS) -> Run:
    encoded = schema.table(frame)
    return ShortCardRecipe(1.0, CardLimits(2, 3, (-4, 4))).run(encoded, random_state=seed)


def test_published_files_of_neighbours_are_byte_identical(tmp_path: Path) -> None:
    """Same seed and equal weights on data that differ in one record: only the curator's file may differ."""
    frame = patients(311)
    neighbour = frame.copy()
    neighbour.loc[0] = ["green", 77.0, 1.0, "no" if frame["ill"][0] == "yes" else "yes"]
    compared = 0
    for seed in range(6):
        runs = [run_on(data, seed) for data in (frame, neighbour)]
        if not np.array_equal(runs[0].release.weights, runs[1].release.weights):
            continue
        compared += 1
        assert runs[0].diagnostics.mistakes != runs[1].diagnostics.mistakes
        files = []
        for side, run in zip("ab", runs, strict=True):
            with output_folder(tmp_path / f"{seed}{side}") as folder:
                files.append([path.read_bytes() for path in folder.write(run)])
        assert files[0][:2] == files[1][:2]
        assert files[0][2] != files[1][2]
    assert compared >= 2


def test_nothing_of_the_diagnostics_is_published(tmp_path: Path) -> None:
    frame = patients(311)
    outside = INDICATORS.table(frame).outside
    assert outside
    run = run_on(frame, 0)
    with output_folder(tmp_path / "out") as folder:
        release, card, curator = (path.read_text(encoding="utf-8") for path in folder.write(run))
    private = json.loads(curator)
    assert next(iter(private.items())) == ("warning", NOT_PRIVATE)
    assert private["outside_the_schema"] == {column: dict(counts) for column, counts in outside.items()}
    words = [*(set(private) - {"warning", "method"}), "accuracy", "diagnostics", "curator"]
    numbers = [run.diagnostics.mistakes, run.diagnostics.training_accuracy, run.diagnostics.seconds, 311]
    for published in (release, card):
        for word in [*words, *map(str, numbers)]:
            assert word not in published, word
    assert load_release(tmp_path / "out" / "release.json").to_json() == release


def test_an_output_folder_is_left_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(KeyError), output_folder(tmp_path / "new" / "out"):
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "scorecard.html").write_text("mine")
    with pytest.raises(KeyError), output_folder(tmp_path / "out", overwrite=True):
        raise KeyError
    assert [path.read_text() for path in (tmp_path / "out").rglob("*.*")] == ["mine"]
    with output_folder(tmp_path / "out", overwrite=True) as folder:
        folder.write(run_on(patients(50), 0))
    files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*"))
    assert files == ["out-curator/diagnostics.json", "out/release.json", "out/scorecard.html"]


def test_a_release_keeps_its_schema() -> None:
    release = release_of(SCHEMA, np.arange(SCHEMA.dim))
    assert Release.from_json(release.to_json()).schema == SCHEMA
    unnamed = release_of(Schema(SCHEMA.columns, Label("ill", ["yes", "maybe"])), np.arange(SCHEMA.dim)).card()
    assert (unnamed.positive, unnamed.negative) == ("ill yes or maybe", "ill not yes or maybe")
    with pytest.raises(ValueError, match="other features than its weights"):
        replace(release.model, schema=INDICATORS)


def test_plans_are_the_bounds_of_the_theory() -> None:
    domain = SparsePoints(22, 6, 3, (-8, 8))
    factor = 2 / 0.5  # Δ / ε, section 4
    p_zero = 1 - 2 / 21
    one_point = (1 - p_zero) * 0.4 / (2 * (0.4 + 0.4**2 + 0.4**3))
    log_p = 18 * math.log(p_zero) + 3 * math.log(one_point) - math.log(17)
    assert card_expectation(domain, 0.5).excess == pytest.approx(factor * (-log_p - math.log(0.05)), rel=1e-5)


DOMAINS = [SparsePoints(2, 1, 1, (0, 0)), SparsePoints(5, 2, 3), SparsePoints(91, 4, 3, (-8, 8))]


@pytest.mark.parametrize("domain", DOMAINS)
def test_plans_scale_with_costs_and_budget(domain: SparsePoints) -> None:
    base = card_expectation(domain, 0.1).excess
    assert card_expectation(domain, 0.1, loss=ps.ZeroOneLoss(1, 5)).excess == pytest.approx(5 * base, rel=1e-3)
    assert card_expectation(domain, 0.1, "add-remove").excess == pytest.approx(base / 2, rel=1e-3)
    assert card_expectation(domain, 1.0).excess == pytest.approx(base / 10, rel=1e-3)


def test_the_default_prior_expects_two_features() -> None:
    for columns in (10, 90):
        domain = SparsePoints(columns + 1, 4, 3, (-8, 8))
        tables = default_prior(domain).log_tables(domain)
        expected = sum(1 - math.exp(t[3]) for t in tables[:columns])
        assert expected == pytest.approx(2.0)
    assert default_prior(ps.TernaryCube(3)) == ps.UniformPrior()


def test_totals_that_may_overflow_are_refused() -> None:
    wide = Schema([Number("a", -(10**15), 0), Number("b", 0, 1, 1, 2**40)])
    with pytest.raises(IntegerRangeError, match="narrower bounds"):
        _ = schema_release([1, 1, 0], wide).model.tally
