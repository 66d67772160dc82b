"""Private drafts: the law of cut points, thresholds for texts, how columns are counted, and what is published and paid."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import chisquare

import privsolve as ps
from neighbours import READERS, columns_of, drawn
from privsolve.data import Bins, Categories, Label, Schema
from privsolve.data.private import DecimalGrid, StepGrid, counts, private_draft, quantiles
from privsolve.data.private import draft as module
from privsolve.data.private.counts import count_kinds, count_texts, readable
from privsolve.data.private.quantiles import MARGIN, draw_cuts, inverse_temperature
from privsolve.data.private.texts import Threshold, least_records
from privsolve.noise.discrete import DiscreteLaplace
from privsolve.noise.entropy import Randomness
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.profiles import Approximate, Pure
from small_tables import patients

ILL = Label("ill", "yes", "no")


# --- the law of cut points ------------------------------------------------------------------------


def log_law(cells: Any, weights: Any, intervals: int, kappa: float) -> tuple[list[tuple[int, ...]], Any]:
    """All tuples of cuts and the logarithms of their probabilities, by listing."""
    cells, records, below = np.asarray(cells), int(np.sum(cells)), np.cumsum(cells)[:-1]
    tuples = list(combinations(range(len(weights)), intervals - 1))
    found = []
    for cut in tuples:
        ends = [0, *below[list(cut)], records]
        cost = sum(abs(intervals * int(b - a) - records) for a, b in pairwise(ends))
        found.append(sum(math.log(weights[j]) for j in cut) - kappa * cost)
    return tuples, np.array(found) - np.logaddexp.reduce(found)


CASES = [
    (
        [2, 0, 0, 3, 1, 0, 4],
        [1.0, 2.0, 1.0, 4.0, 1.0, 3.0],
        4,
        Adjacency.REPLACE,
    ),  # empty cells: several points in a region
    ([0, 0, 0, 0, 0], [1.0, 2.0, 3.0, 4.0], 3, Adjacency.ADD_REMOVE),  # no record at all: the prior
    ([7, 1, 0, 2], [5.0, 1.0, 1.0], 2, Adjacency.ADD_REMOVE),
    ([1, 1, 9, 1, 1], [1.0, 1.0, 1.0, 1.0], 5, Adjacency.REPLACE),  # as many cuts as points
]


@pytest.mark.parametrize(("cells", "weights", "intervals", "adjacency"), CASES)
def test_draws_follow_the_law(cells: list[int], weights: list[float], intervals: int, adjacency: Adjacency) -> None:
    epsilon, runs, rng = 6.0, 3000, Randomness.seeded(7)
    tuples, logs = log_law(cells, weights, intervals, inverse_temperature(epsilon, intervals, adjacency))
    found = dict.fromkeys(tuples, 0)
    for _ in range(runs):
        cuts = draw_cuts(np.array(cells), np.array(weights), intervals, epsilon, adjacency, rng)
        found[tuple(cuts)] += 1
    wanted = runs * np.exp(logs)
    common = wanted > 5
    observed = [
        *np.array(list(found.values()))[common],
        sum(n for n, c in zip(found.values(), common, strict=True) if not c),
    ]
    expected = np.array([*wanted[common], wanted[~common].sum() + 1e-9])
    if len(tuples) > 1:
        assert chisquare(observed, expected * (sum(observed) / expected.sum())).pvalue > 1e-3


def test_sums_are_those_of_listing() -> None:
    """The total weight of all tuples, of random tables: the recursion misses none and counts none twice."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        points, intervals = int(rng.integers(2, 9)), int(rng.integers(2, 5))
        if points < intervals - 1:
            continue
        cells, weights = rng.integers(0, 4, points + 1), np.exp(rng.normal(0, 1, points))
        kappa = float(rng.uniform(0.01, 1))
        regions = quantiles._Regions(cells, weights, intervals, kappa)
        last = regions.sums[regions.cuts] + regions._cost(regions.records - regions.below)
        shares = weights / weights.sum()
        records, below = int(cells.sum()), np.cumsum(cells)[:-1]
        listed = []
        for cut in combinations(range(points), intervals - 1):
            ends = [0, *below[list(cut)], records]
            cost = sum(abs(intervals * int(b - a) - records) for a, b in pairwise(ends))
            listed.append(np.log(shares[list(cut)]).sum() - kappa * cost)
        assert np.logaddexp.reduce(last) == pytest.approx(np.logaddexp.reduce(listed))


TIGHT = {
    Adjacency.REPLACE: (2, [0.4159, 15.8097, 35.1173, 658.6414, 5.9653, 45.7318], [32, 26, 42, 36, 49, 40, 49], (6, 1)),
    Adjacency.ADD_REMOVE: (
        2,
        [5.5551, 0.5869, 157.2596, 0.3593, 139.0063, 0.0114],
        [13, 31, 41, 26, 14, 9, 23],
        (None, 4),
    ),
}
"""Neighbours that lose nearly all of epsilon: intervals, weights, cells, and the cells that a record leaves and enters."""


def lost(
    cells: list[int], weights: list[float], intervals: int, kappa: float, move: tuple[int | None, int | None]
) -> float:
    other = list(cells)
    for place, by in zip(move, (-1, 1), strict=True):
        if place is not None:
            other[place] += by
    one, two = (log_law(c, weights, intervals, kappa)[1] for c in (cells, other))
    return float(np.abs(one - two).max())


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_law_loses_what_is_promised_and_half_the_noise_is_caught(adjacency: Adjacency) -> None:
    intervals, weights, cells, move = TIGHT[adjacency]
    kappa = inverse_temperature(1.0, intervals, adjacency)
    assert 0.999 < lost(cells, weights, intervals, kappa, move) <= 1.0
    assert lost(cells, weights, intervals, 2 * kappa, move) > 1.9  # a copy with half the noise breaks its promise


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_no_neighbours_lose_more(adjacency: Adjacency) -> None:
    """Random tables; replaced records may also become missing, which takes one away."""
    rng = np.random.default_rng(3)
    for _ in range(150):
        points, intervals = int(rng.integers(2, 6)), int(rng.integers(2, 5))
        if points < intervals - 1:
            continue
        cells = rng.integers(1, rng.integers(2, 30), points + 1).tolist()
        weights = np.exp(rng.normal(0, 2, points)).tolist()
        leave, enter = (int(x) for x in rng.integers(0, points + 1, 2))
        moves: list[tuple[int | None, int | None]] = [(leave, None), (None, enter)]
        if adjacency is Adjacency.REPLACE:
            moves.append((leave, enter))
        for move in moves:
            assert lost(cells, weights, intervals, inverse_temperature(1.0, intervals, adjacency), move) <= 1.0


def test_rounding_is_paid_for_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert inverse_temperature(1.0, 5, Adjacency.REPLACE) == (1.0 - MARGIN) / 20
    assert inverse_temperature(1.0, 5, Adjacency.ADD_REMOVE) == (1.0 - MARGIN) / 16
    with pytest.raises(ValueError, match=r"less than 0\.0001"):
        inverse_temperature(1e-5, 5, Adjacency.REPLACE)
    with pytest.raises(ps.PrivsolveError, match="more records than"):
        draw_cuts(np.array([10**9, 10**9, 10**9]), np.ones(2), 2, 50.0, Adjacency.REPLACE, Randomness.seeded(1))


def test_many_records_give_the_quantiles() -> None:
    grid = DecimalGrid()
    cells = np.bincount(grid.cells(np.arange(10_000) / 100), minlength=len(grid.points) + 1)
    places = draw_cuts(cells, grid.weights, 4, 5.0, Adjacency.REPLACE, Randomness.seeded(1))
    assert [grid.points[place] for place in places] == [25, 50, 75]


# --- grids and counts -----------------------------------------------------------------------------


def test_the_public_grid() -> None:
    grid = DecimalGrid()
    points = np.array(grid.points, dtype=float)
    assert len(points) == 28_801 == len(grid.weights)
    assert (np.diff(points) > 0).all()
    assert {1, 2.5, 0.29, -40, 9.9e9, 0} <= set(grid.points)
    inside = np.concatenate([points, points + np.diff(points, append=1e10) / 2])
    assert np.array_equal(grid.cells(inside), np.searchsorted(points, inside, side="right"))
    assert grid.cells(np.array([-np.inf, np.inf, 1e300, -1e-9, -0.0])).tolist() == [0, 28_801, 28_801, 14_400, 14_401]
    assert grid.zero == 14_401
    by_steps = StepGrid.between(0, 1)
    assert (by_steps.step, len(by_steps.points), by_steps.points[3]) == (0.005, 201, 0.015)
    assert by_steps.cells(np.array([-5, 0, 0.015, 0.9999, 1, np.inf])).tolist() == [0, 1, 4, 200, 201, 201]
    for wrong in ((1, 0), (0, 1, 0), (0, 1, 1e-9), (0, math.inf)):
        with pytest.raises(ValueError):
            StepGrid.between(*wrong)


def awkward() -> pd.DataFrame:
    points = np.array(DecimalGrid().points, dtype=float)
    rng = np.random.default_rng(1)
    spread = rng.normal(0, 1, 300) * 10.0 ** rng.integers(-9, 13, 300)
    special = [0, -0.0, 1e300, -1e300, np.inf, -np.inf, np.nan, 1e-7, -1e-7, 0.29, 0.3, 28.999999999999996, 2.0**60]
    numbers = np.concatenate([points[::70], np.nextafter(points[::110], np.inf), spread, special])
    texts = ["", "x y", "true", " 3 ", "1e5", "inf", "-0.30", None, "7."]
    return pd.DataFrame({"a": numbers, "t": [texts[i % len(texts)] for i in range(len(numbers))]})


def test_counts_are_the_same_in_python_and_in_an_engine() -> None:
    frame = awkward()
    grids = {"a": DecimalGrid(), "t": StepGrid.between(-1, 10)}
    one, other = count_kinds(frame, grids), count_kinds(ibis.memtable(pa.Table.from_pandas(frame)), grids)
    for name in grids:
        assert (one[name].missing, one[name].texts) == (other[name].missing, other[name].texts)
        assert np.array_equal(one[name].cells, other[name].cells)
        assert np.array_equal(one[name].fractions, other[name].fractions)
    assert one["a"].missing == 1
    assert one["t"].missing > 0 < one["t"].texts
    assert count_texts(frame, ["t"], 2) == count_texts(ibis.memtable(pa.Table.from_pandas(frame)), ["t"], 2)
    assert count_texts(frame, ["t"], 10**6) == {"t": {}}


@pytest.mark.parametrize("reader", ["CSV", "Parquet in row groups", "DuckDB file", "memtable", "Polars", "pandas"])
def test_one_record_changes_two_counts_by_one(reader: str, tmp_path: Path) -> None:
    """Every column of neighbouring files, by every kind of reader (theory, section 10)."""
    _, one, other = drawn(5, columns_of(("double", "integer", "boolean", "text"), 1)[:12])
    found = []
    for i, data in enumerate((one, other)):
        (folder := tmp_path / str(i)).mkdir()
        table = READERS[reader](data, folder)
        names = [name for name in readable(table) if name != "label"]
        found.append(count_kinds(table, {name: DecimalGrid() for name in names}))
    assert found[0]
    for name in found[0]:
        a, b = found[0][name], found[1][name]
        moved = abs(a.missing - b.missing) + abs(a.texts - b.texts)
        moved += int(
            np.abs(a.cells - a.fractions - b.cells + b.fractions).sum() + np.abs(a.fractions - b.fractions).sum()
        )
        assert moved <= 2, name


# --- texts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-3), (0.01, 1e-9), (2.0, 0.2)])
def test_a_text_that_crosses_appears_with_probability_delta(adjacency: Adjacency, epsilon: float, delta: float) -> None:
    threshold = Threshold.of(Fraction(epsilon), delta, 5, adjacency)
    scale = float(threshold.noise.scale)
    assert scale == (2 if adjacency is Adjacency.REPLACE else 1) / epsilon
    share = delta / 2 if adjacency is Adjacency.REPLACE else delta

    def appears(margin: int) -> float:
        return math.exp(-margin / scale) / (1 + math.exp(-1 / scale))

    assert appears(threshold.margin) <= share
    assert threshold.margin == 1 or appears(threshold.margin - 2) > share


def test_texts_below_the_least_never_appear_and_common_ones_do() -> None:
    threshold = Threshold.of(Fraction(1), 1e-6, 10, Adjacency.REPLACE)
    for seed in range(20):
        found = threshold.published({"rare": 9, "common": 500, "": 1}, Randomness.seeded(seed))
        assert set(found) == {"common"}
        assert abs(found["common"] - 500) < 60
    assert least_records(Fraction(1), 1e-6, 10**7, Adjacency.REPLACE) == 1000
    assert (
        least_records(Fraction(1), 1e-6, None, Adjacency.ADD_REMOVE)
        == Threshold.of(Fraction(1), 1e-6, 1, Adjacency.ADD_REMOVE).margin // 4
    )


def published(count: int, threshold: Threshold) -> Any:
    """Probabilities of "absent" and of every noisy count from the threshold on."""
    k = np.arange(-2000, 2001)
    law = np.exp(-np.abs(k) / float(threshold.noise.scale))
    line = threshold.least + threshold.margin
    places = line + np.arange(500) - count + 2000
    shown = (law / law.sum())[places] if count >= threshold.least else np.zeros(500)
    return np.append(1 - shown.sum(), shown)


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_threshold_loses_what_is_promised(adjacency: Adjacency) -> None:
    """The noisy count of one text that gains or loses a record, as far as it is published: exactly, by listing."""
    epsilon, delta, least = 0.7, 0.01, 3
    threshold = Threshold.of(Fraction(epsilon), delta, least, adjacency)
    moved = 2 if adjacency is Adjacency.REPLACE else 1  # two texts may be concerned, each with half of both

    def excess(threshold: Threshold) -> float:
        found = 0.0
        for count in (least - 1, least, least + 1, least + threshold.margin, least + threshold.margin + 3):
            one, other = published(count, threshold), published(count + 1, threshold)
            for p, q in ((one, other), (other, one)):
                found = max(found, float(np.maximum(p - math.exp(epsilon / moved) * q, 0).sum()))
        return found

    assert excess(threshold) <= delta / moved
    half = DiscreteLaplace(threshold.noise.scale / 2)
    assert excess(Threshold(half, least, threshold.margin)) > 2 * delta  # a copy with half the noise
    assert excess(Threshold(threshold.noise, least, threshold.margin - 4)) > delta / moved


# --- drafts ---------------------------------------------------------------------------------------


def people(n: int = 5000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n)
    income = np.where(rng.random(n) < 0.5, 0, rng.lognormal(8, 1, n)).round()
    height = rng.normal(1.7, 0.1, n)
    city = rng.choice(["Rome", "Oslo", "Bonn", "a village"], n, p=[0.5, 0.3, 0.199, 0.001])
    city[rng.random(n) < 0.2] = ""
    name = [f"person {i}" for i in range(n)]
    ill = np.where((age > 50) ^ (rng.random(n) < 0.2), "yes", "no")
    return pd.DataFrame({"age": age, "income": income, "height": height, "city": city, "name": name, "ill": ill})


def test_a_draft_finds_what_is_there() -> None:
    found = private_draft(people(), ILL, 4.0, 1e-6, intervals=5, random_state=1)
    age, income, height, city = found.schema.columns
    assert isinstance(age, Bins)
    assert age.whole
    assert np.abs(np.array(age.cuts) - np.quantile(people()["age"], [0.2, 0.4, 0.6, 0.8])).max() < 4
    assert isinstance(income, Bins)
    assert income.cuts[0] == 1  # zeros apart
    assert isinstance(height, Bins)
    assert not height.whole
    assert all(1.5 < cut < 1.9 for cut in height.cuts)
    assert isinstance(city, Categories)
    assert [option.name for option in city.options] == ["Bonn", "Oslo", "Rome"]
    assert (city.other, city.missing) == ("other", "missing")
    assert "common enough" in found.left_out["name"]
    assert "village" not in found.to_toml()
    assert found.guarantee.profile == Approximate(4.0, 1e-6)
    assert found.guarantee.theory == "12"


def test_without_a_delta_texts_are_left_out_and_the_draft_is_pure() -> None:
    found = private_draft(people(500), ILL, 1.0, random_state=1)
    assert [column.column for column in found.schema.columns] == ["age", "income", "height"]
    assert "needs a delta" in found.left_out["city"]
    assert isinstance(found.guarantee.profile, Pure)
    assert found.guarantee.rho == Fraction(1, 25) / (2 * 5) + Fraction(16, 25) / 8


def test_empty_columns_are_left_out_and_decimal_commas_are_read_where_they_are_said() -> None:
    frame = people()
    texts = pd.DataFrame({"empty": "", "height": frame["height"].map(lambda x: f"{x:.2f}".replace(".", ","))})
    texts["half"] = np.where(np.arange(len(frame)) % 2 == 0, "", frame["age"].astype(str))
    texts["ill"] = frame["ill"]
    for seed in range(20):
        plain = private_draft(texts, ILL, 4.0, random_state=seed)
        assert [column.column for column in plain.schema.columns] == ["half"]
        assert plain.left_out["empty"] == "hardly any values"
        assert 'decimal=","' in plain.left_out["height"]
    found = private_draft(texts, ILL, 4.0, decimal=",", random_state=1)
    height, half = found.schema.columns
    assert isinstance(height, Bins)
    assert height.decimal == ","
    assert not height.whole
    assert all(1.5 < cut < 1.9 for cut in height.cuts)
    assert half.missing == "missing"
    assert found.schema == Schema.from_toml(found.to_toml())


def test_half_empty_columns_are_not_left_out_as_empty() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({f"v{j}": np.where(rng.random(2000) < 0.5, np.nan, rng.normal(size=2000)) for j in range(10)})
    frame["ill"] = rng.choice(["yes", "no"], 2000)
    for seed in range(5):
        found = private_draft(frame, ILL, 1.0, random_state=seed)
        assert "hardly any values" not in found.left_out.values()


def test_zeros_and_ones_with_a_decimal_comma_are_read_as_drafted() -> None:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"b": rng.choice(["1,0", "0,0"], 3000), "ill": rng.choice(["yes", "no"], 3000)})
    schema = private_draft(frame, ILL, 4.0, decimal=",", random_state=0).schema
    features = schema.encode(frame)
    assert features.sum(axis=0).tolist()[0] == (frame["b"] == "1,0").sum()


def test_many_columns_are_counted_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    data = ibis.memtable(pa.table({f"c{j}": rng.choice(["x", "y", "1", "2.5", ""], 60) for j in range(70)}))
    grids = {name: DecimalGrid() for name in data.columns}
    asked = []
    real = counts.run
    monkeypatch.setattr(counts, "run", lambda query: asked.append(query) or real(query))
    kinds, texts = count_kinds(data, grids), count_texts(data, list(grids), 1)
    assert len(asked) == 6
    monkeypatch.setattr(counts, "TOGETHER", 1000)
    whole = count_kinds(data, grids)
    assert list(kinds) == list(whole) == list(grids)
    for name, found in kinds.items():
        assert (found.missing, found.texts) == (whole[name].missing, whole[name].texts)
        assert (found.cells == whole[name].cells).all()
        assert (found.fractions == whole[name].fractions).all()
    assert texts == count_texts(data, list(grids), 1)


def test_what_is_stated_costs_nothing_and_bounds_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    stated = Categories("city", ["Rome", "Oslo"])
    asked = []
    real = module.draw_cuts
    monkeypatch.setattr(module, "draw_cuts", lambda *a: asked.append(a[3]) or real(*a))
    found = private_draft(
        people(), ILL, 3.0, stated=[stated], leave_out=["name", "income"], bounds={"age": (0, 100, 5)}, random_state=2
    )
    assert found.schema.column("city") is stated
    assert asked == [pytest.approx(1.2)] * 2  # four fifths of epsilon for two columns
    assert all(cut % 5 == 0 for cut in found.schema.column("age").cuts)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["frame", "engine"])
def test_seeded_drafts_repeat_whatever_holds_the_table(kind: str, tmp_path: Path) -> None:
    frame = people(800)
    data = frame if kind == "frame" else ibis.memtable(pa.Table.from_pandas(frame))
    again = private_draft(frame, ILL, 2.0, 1e-4, random_state=5).to_toml()
    assert private_draft(data, ILL, 2.0, 1e-4, random_state=5).to_toml() == again
    assert private_draft(frame, ILL, 2.0, 1e-4).to_toml() != again


def test_files_carry_what_was_paid_and_releases_add_it_up() -> None:
    frame = people(800)
    found = private_draft(frame, ILL, 0.5, 1e-4, leave_out=["name"], random_state=5)
    schema = Schema.from_toml(found.to_toml())
    assert schema == found.schema
    assert schema.paid is not None
    for estimator in (
        ps.PrivateShortCard(1.0, schema=schema, max_features=1, random_state=1),
        ps.PrivateTreeClassifier(1.0, schema=schema, depth=1, random_state=1),
    ):
        estimator.fit(frame.drop(columns="ill"), frame["ill"])
        release = estimator.release_
        assert release.guarantee.epsilon == 1.0
        assert release.total.profile == Approximate(1.5, 1e-4)
        assert ps.Release.from_json(release.to_json()).total == release.total
        assert "e^1.5 = " in " ".join(release.card().to_text().split())
    with pytest.raises(ValueError, match="drafted under replace"):
        ps.PrivateShortCard(1.0, schema=schema, adjacency="add-remove").fit(frame.drop(columns="ill"), frame["ill"])


def seven(frame: pd.DataFrame, name: str) -> Any:
    return np.array(module.seven_counts(count_kinds(frame, {name: DecimalGrid()})[name], DecimalGrid()))


def test_seven_counts() -> None:
    frame = pd.DataFrame({"a": [np.nan, 0.0, -1.5, -2.0, 3.0, 0.5, 7.0], "t": ["x", "", "0", "-3", "1", "2.5", None]})
    assert seven(frame, "a").tolist() == [1, 0, 2, 1, 0, 2, 1]
    assert seven(frame, "t").tolist() == [2, 1, 1, 1, 1, 0, 1]


def test_equal_noisy_answers_give_equal_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours, with noise that makes the same noisy counts, cuts and texts of them: the same file."""
    one = people(600)[["age", "city", "ill"]].astype({"age": float})
    other = one.copy()
    other.loc[3] = [77.5, "Palermo", "no"]
    texts, files = [], set()
    for frame in (one, other):
        shifts = iter([seven(one, name) - seven(frame, name) for name in ("age", "city")])
        monkeypatch.setattr(DiscreteLaplace, "draws", lambda *_, s=shifts: 3 + next(s))
        monkeypatch.setattr(module, "draw_cuts", lambda *_: [100, 200, 300, 400])
        monkeypatch.setattr(Threshold, "published", lambda *_: {"Rome": 500, "Oslo": 90})
        found = private_draft(frame, ILL, 1.0, 1e-4, random_state=1)
        texts.append(found.notes)
        files.add(found.to_toml())
    assert (seven(one, "age") != seven(other, "age")).any()
    assert len(files) == 1


def test_a_budget_refuses_before_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscreteLaplace, "draws", lambda *_: pytest.fail("noise was drawn"))
    with pytest.raises(ps.BudgetExceeded):
        private_draft(people(100), ILL, 1.0, budget=ps.Accountant(0.5))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": 1e-4}, "leaves less than"),
        ({"delta": 1.5}, "delta must lie"),
        ({"bounds": {"size": (0, 1)}}, "no column 'size'"),
        ({"bounds": {"age": (0,)}}, "must be low and high"),
        ({"leave_out": ["size"]}, "no column 'size'"),
        ({"intervals": 1}, "intervals must be"),
        ({"decimal": "'"}, "decimal must be"),
        ({"leave_out": ["age", "income", "height", "city", "name"]}, "no column is left"),
        ({"adjacency": "both"}, "adjacency must be"),
    ],
)
def test_wrong_arguments_draw_no_noise(options: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscreteLaplace, "draws", lambda *_: pytest.fail("noise was drawn"))
    monkeypatch.setattr(counts, "run", lambda *_: pytest.fail("the table was read"))
    with pytest.raises(ValueError, match=words):
        private_draft(people(50), ILL, **({"epsilon": 1.0} | options))


def test_small_tables_do_not_fail() -> None:
    for seed in range(20):
        found = private_draft(patients(5), ILL, 0.1, 1e-6, random_state=seed)
        assert found.schema.paid is not None
