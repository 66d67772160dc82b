"""Weights of records: one bounded weight each, in the fit, in the hold-out and in the evaluation."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.metrics import accuracy_score, brier_score_loss, roc_auc_score
from sklearn.utils import estimator_checks

import privsolve as ps
from commands import done, refused
from privsolve import open_table
from privsolve.data.weights import BESIDE, UNITS, Weight, attached
from privsolve.engines.regression import Logistic, Objective, Rows, minimise
from privsolve.evaluation.cells import Cells
from privsolve.evaluation.measure import exact_cells
from privsolve.evaluation.split import split
from privsolve.learn.full_card_recipe import FullCardRecipe
from privsolve.learn.recipe import encode
from privsolve.noise.entropy import Randomness
from privsolve.safety.fingerprint import fingerprint

COLUMNS = [ps.Bins("age", [30, 40, 50, 60, 70], whole=True), ps.Categories("sex", ["f", "m"])]
SCHEMA = ps.Schema(COLUMNS, ps.Label("ill", ["yes"], ["no"]))


def people(n: int = 2000, seed: int = 0) -> pd.DataFrame:
    """In half of the records age says who is ill; in the other half, which weigh little, it says the opposite."""
    rng = np.random.default_rng(seed)
    age, sex, right = rng.integers(18, 90, n), rng.choice(["f", "m"], n), rng.random(n) < 0.5
    odds = 0.1 * (age - 54) * np.where(right, 1, -1)
    ill = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")
    return pd.DataFrame({"age": age, "sex": sex, "w": np.where(right, 4.0, 0.5), "ill": ill})


FRAME = people()
X, Y, W = FRAME[["age", "sex"]], FRAME["ill"], FRAME["w"]


def card(**options: Any) -> ps.PrivateScorecard:
    return ps.PrivateScorecard(**{"schema": SCHEMA, "random_state": 0, "max_weight": 4} | options)


def encoded(frame: pd.DataFrame, weight: Weight) -> Any:
    recipe = FullCardRecipe(1.0, weight=weight)
    return recipe, encode(recipe, SCHEMA, frame)


def test_weights_of_one_change_nothing() -> None:
    plain = card(max_weight=None).fit(X, Y).release_
    ones = card(max_weight=1).fit(X, Y, sample_weight=np.ones(len(X))).release_
    assert ones.model.weights.tolist() == plain.model.weights.tolist()
    assert ones.model.base == pytest.approx(plain.model.base, abs=1e-5)
    assert ones.total.profile == plain.total.profile
    assert ones.setting["objective"]["weight"] == {"column": BESIDE, "max_weight": 1.0, "units": UNITS}
    assert "weight" not in plain.setting["objective"]


def test_records_of_large_weight_decide() -> None:
    weighted, plain = card().fit(X, Y, sample_weight=W), card(max_weight=None).fit(X, Y)
    old, young = X.assign(age=85), X.assign(age=20)
    rise = [float((m.predict_proba(old) - m.predict_proba(young))[:, 1].mean()) for m in (weighted, plain)]
    assert rise[0] > 0.3
    assert abs(rise[1]) < 0.2


def test_whole_weights_are_repeated_records() -> None:
    rng = np.random.default_rng(1)
    frame = FRAME.head(300).assign(w=rng.choice([0, 1, 2, 4], 300))
    weight = Weight("w", 4)
    recipe, read = encoded(frame, weight)
    repeated = encode(FullCardRecipe(1.0), SCHEMA, frame.loc[frame.index.repeat(frame["w"])]).table
    weighted = weight.applied(read.table)
    assert np.array_equal(weighted.rows, repeated.rows)
    assert np.array_equal(weighted.positives * 4, repeated.positives * UNITS)
    assert np.array_equal(weighted.negatives * 4, repeated.negatives * UNITS)
    centre, noise = np.full(weighted.dim, 0.5), np.zeros(weighted.dim + 1)
    found = []
    for table, unit, penalty in ((weighted, UNITS, 0.25), (repeated, 1, 1.0)):
        losses = Logistic(table.positives / unit, table.negatives / unit)
        rows = Rows(table.rows, losses, centre, 2.0, 1.0)
        found.append(minimise(Objective(rows, penalty, noise), 1e-9)[0])
    assert np.allclose(found[0], found[1], atol=1e-7)
    assert recipe.weight == weight


VALUES = [4, 1, 0, -3, 9, None, "2", " 1.5 ", "many", "1e1", True, 0.0019, 0.0021]
COUNTED = [1024, 256, 0, 0, 1024, 0, 512, 384, 0, 1024, 256, 0, 1]
"""What they count of a largest weight of 4, in units."""


def units_of(read: Any) -> list[int]:
    """What the records count, in ascending order."""
    return sorted(np.repeat(read.table.rows[:, -1], read.table.positives).tolist())


@pytest.mark.parametrize("road", ["list", "objects", "polars", "arrow"])
def test_each_weight_is_read_on_its_own(road: str) -> None:
    native = {"polars": pl.from_pandas, "arrow": pa.Table.from_pandas}.get(road, lambda data: data)
    recipe = FullCardRecipe(1.0, weight=Weight(BESIDE, 4))
    alone = [([value], [counted]) for value, counted in zip(VALUES, COUNTED, strict=True)]
    for values, counted in [*alone, (VALUES, COUNTED)]:
        frame = native(pd.DataFrame({"age": 20, "sex": "f", "ill": ["yes"] * len(values)}))
        given: Any = np.array(values, dtype=object) if road == "objects" else values
        assert units_of(encode(recipe, SCHEMA, attached(frame, given))) == sorted(counted)


def test_files_are_read_as_tables_in_memory_are(tmp_path: Path) -> None:
    pd.DataFrame({"age": 20, "sex": "f", "ill": "yes", "w": VALUES}).to_csv(tmp_path / "data.csv", index=False)
    recipe = FullCardRecipe(1.0, weight=Weight("w", 4))
    assert units_of(encode(recipe, SCHEMA, open_table(tmp_path / "data.csv"))) == sorted(COUNTED)
    (tmp_path / "comma.csv").write_text("age;sex;ill;w\n20;f;yes;1,5\n20;f;yes;1.5\n")
    recipe = FullCardRecipe(1.0, weight=Weight("w", 4, ","))
    assert units_of(encode(recipe, SCHEMA, open_table(tmp_path / "comma.csv"))) == [384, 384]


def test_refusals_come_before_payment() -> None:
    account = ps.Accountant(1.0, 1e-5)
    for options, given, words in (
        ({"max_weight": None}, {"sample_weight": W}, "max_weight must be stated with sample_weight"),
        ({}, {}, "max_weight is for weights of records: pass sample_weight"),
        ({}, {"sample_weight": W[:-1]}, "sample_weight has shape"),
        ({}, {"sample_weight": np.zeros(len(X))}, "no record has a number above 0"),
        ({}, {"sample_weight": ["many"] * len(X)}, "no record has a number above 0"),
        ({"max_weight": 0}, {"sample_weight": W}, "max_weight must be between"),
        ({"max_weight": np.inf}, {"sample_weight": W}, "max_weight must be a number above 0"),
        ({"schema": None, "max_weight": None}, {"sample_weight": W}, "max_weight must be stated"),
    ):
        with pytest.raises(ValueError, match=words):
            card(budget=account, **options).fit(X, Y, **given)
    with pytest.raises(ValueError, match="X has a column 'sample_weight'"):
        card(budget=account).fit(X.assign(sample_weight=1), Y, sample_weight=W)
    assert account.history == ()


@pytest.mark.parametrize("check", ["not_an_array", "list", "shape", "not_overwritten", "pandas_series"])
def test_scikit_learn_on_weights(check: str) -> None:
    schema = ps.Schema([ps.Bins("x0", [0, 2]), ps.Bins("x1", [0, 2])], ps.Label("y", 1))
    estimator = card(schema=schema)
    getattr(estimator_checks, f"check_sample_weights_{check}")("PrivateScorecard", estimator)


def test_another_weight_is_another_question() -> None:
    changed = FRAME.copy()
    changed.loc[7, "w"] = 3.0
    calls = [encoded(FRAME, Weight("w", 4)), encoded(changed, Weight("w", 4)), encoded(FRAME, Weight("w", 5))]
    marks = {fingerprint(b"key", partial(recipe.run, read)) for recipe, read in calls}
    assert len(marks) == 3
    assert fingerprint(b"key", partial(calls[0][0].run, encoded(FRAME, Weight("w", 4))[1])) in marks


def test_a_coin_is_thrown_for_each_record() -> None:
    weight = Weight("w", 4)
    frame = pd.DataFrame({"age": 20, "sex": "f", "ill": "yes", "w": [4.0] * 300 + [2.0] * 300})
    table = encoded(frame, weight)[1].table
    training, (held,) = split([table], 0.25, Randomness.seeded(3))
    assert held is not None
    for part in (training, held):
        assert weight.applied(part).n % (UNITS // 2) == 0
        by_weight = dict(zip(weight.units(part).tolist(), part.positives.tolist(), strict=True))
        assert weight.applied(part).n == sum(units * records for units, records in by_weight.items())
    held_out = dict(zip(weight.units(held).tolist(), held.positives.tolist(), strict=True))
    assert all(45 < held_out[units] < 110 for units in (UNITS // 2, UNITS))
    assert training.n + held.n == 600


def test_evaluations_are_weighted() -> None:
    model = card().fit(X, Y, sample_weight=W)
    release, weight = model.release_, Weight("w", 4)
    tables = ps.learn.evaluating.counted(release.model, FRAME, None, weight=weight).groups
    cells = exact_cells(release.model.outcomes(), tables, weight)
    risk, decided, ill = model.predict_proba(X)[:, 1], model.predict(X) == "yes", Y == "yes"
    assert cells.accuracy().value == pytest.approx(accuracy_score(ill, decided, sample_weight=W))
    assert cells.auc().value == pytest.approx(roc_auc_score(ill, risk, sample_weight=W), abs=0.01)
    assert cells.brier().value == pytest.approx(brier_score_loss(ill, risk, sample_weight=W), abs=0.01)
    assert cells.records() == round(W.sum())
    noisy = model.evaluate(X, Y, 1.0, sample_weight=W, random_state=0)
    assert noisy.accuracy.noise_low <= cells.accuracy().value <= noisy.accuracy.noise_high
    assert "weighted by sample_weight, cut to at most 4" in str(noisy)
    again = ps.Release.from_json(release.with_evaluation(noisy).to_json())
    assert again.evaluation is not None
    assert str(again.evaluation) == str(noisy)
    assert again.total.epsilon == 2.0
    page = release.with_evaluation(noisy).card().to_html()
    assert ">Weights</th>" in page
    with pytest.raises(ValueError, match="max_weight must be stated"):
        ps.PrivateScorecard.from_release(release).evaluate(X, Y, 1.0, sample_weight=W)


def test_noise_on_weighted_counts_is_that_of_the_largest_weight() -> None:
    model = card().fit(X, Y, sample_weight=W)
    draws = [model.evaluate(X, Y, 1.0, sample_weight=W, random_state=seed).counts for seed in range(60)]
    spread = np.std(np.array(draws, dtype=float), axis=0).mean() / UNITS
    assert spread == pytest.approx(np.sqrt(2) * 2, rel=0.1)  # the Laplace deviation at scale 2/ε, under replace


def test_intervals_of_weighted_shares_cover() -> None:
    outcomes = card().fit(X, Y, sample_weight=W).release_.model.outcomes().listed
    positive = np.array([outcome.positive for outcome in outcomes])
    yes, no = int(np.argmax(positive)), int(np.argmin(positive))
    rng, weight, truth = np.random.default_rng(4), Weight("w", 4), 0.7
    covered = []
    for _ in range(400):
        v, right = rng.choice([0.05, 1.0], 80), rng.random(80) < truth
        counts = np.zeros((1, len(outcomes), 2))
        counts[0, yes, 1], counts[0, no, 1] = v[right].sum(), v[~right].sum()
        figure = Cells(outcomes, counts, weight=weight).accuracy()
        covered.append(figure.low <= truth <= figure.high)
    assert np.mean(covered) >= 0.94


@pytest.fixture
def survey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    people(4000).assign(name="x").to_csv("survey.csv", index=False)
    SCHEMA.save("s.toml")
    return tmp_path


ASKED = "fit survey.csv --label ill --positive yes --epsilon 2 --seed 1 --out out"


def test_the_command_line_weighs(survey: Path) -> None:
    said = done(f"{ASKED} --weight w --max-weight 4").output
    assert "records weighted by w that were held out" in said
    assert "weighted training accuracy" in said
    release = ps.Release.from_json(Path("out/release.json").read_text())
    assert "w" not in [column.column for column in release.schema.columns]
    assert release.setting["objective"]["weight"]["max_weight"] == 4
    assert release.total.epsilon == pytest.approx(2.0)
    assert release.evaluation.weight == Weight("w", 4)
    evaluate = "evaluate survey.csv --release out/release.json --epsilon 1 --other-records"
    said = done(f"{evaluate} --weight w --max-weight 4").output
    assert "All figures are weighted by w" in " ".join(said.split())


def test_the_command_line_refuses_before_anything_is_paid(survey: Path) -> None:
    ledger = ps.Ledger.create("budget.json", 3.0, 1e-5)
    for options, words in (
        ("--weight w", "--weight and --max-weight go together"),
        ("--max-weight 4", "--weight and --max-weight go together"),
        ("--weight v --max-weight 4", "no column 'v'"),
        ("--weight name --max-weight 4", "no record has a number above 0"),
        ("--weight w --max-weight -1", "max_weight must be"),
        ("--label w --positive '>=2' --weight w --max-weight 4", "this is the label"),
        ("--weight w --max-weight 4 --evaluate-epsilon 1e-13", "epsilon must be at least"),
        ("--weight w --max-weight 4 --model tree", "is for --model scorecard"),
        ("--weight w --max-weight 4 --model short", "is for --model scorecard"),
    ):
        refused(words, f"{ASKED} --ledger budget.json {options}")
    fit = "fit survey.csv --schema s.toml --epsilon 2 --out out --weight age --max-weight 90"
    refused("it is a column of the schema too", f"{fit} --ledger budget.json")
    assert not Path("out").exists()
    assert ledger.totals().releases == 0
