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
from privsolve.data import Bins, Categories, Label, Schema, codes
from privsolve.data.private import DecimalGrid, StepGrid, counts, draft, private_draft
from privsolve.data.private.counts import Costs, Declared, count_columns, noisy_answer
from privsolve.data.private.cuts import MARGIN, draw_cuts, inverse_temperature
from privsolve.data.private.plan import FREE_TEXT, IDENTIFIES, TIME, USUAL, Options, Plan, usual_column, why_left_out
from privsolve.noise.discrete import DiscreteGaussian, DiscreteLaplace
from privsolve.noise.entropy import Randomness
from privsolve.privacy.accounting import zcdp_limit
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.profiles import Approximate, Pure

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


def cells_of(grid: Any, numbers: Any) -> Any:
    """In the order of the numbers."""
    table = ibis.memtable(pa.table({"place": np.arange(len(numbers)), "x": numbers}))
    found = table.select(table.place, cell=grid.cell(table.x)).order_by("place").to_pyarrow()
    return found["cell"].to_numpy()


def test_many_records_give_the_quantiles() -> None:
    grid = DecimalGrid()
    cells = np.bincount(cells_of(grid, np.arange(10_000) / 100), minlength=len(grid.points) + 1)
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
    assert np.array_equal(cells_of(grid, inside), np.searchsorted(points, inside, side="right"))
    assert cells_of(grid, np.array([-np.inf, np.inf, 1e300, -1e-9, -0.0])).tolist() == [
        0,
        28_801,
        28_801,
        14_400,
        14_401,
    ]
    assert grid.zero == 14_401
    by_steps = StepGrid.between(0, 1)
    assert (by_steps.step, len(by_steps.points), by_steps.points[3]) == (0.005, 201, 0.015)
    assert cells_of(by_steps, np.array([-5, 0, 0.015, 0.9999, 1, np.inf])).tolist() == [0, 1, 4, 200, 201, 201]
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


def test_counts_are_those_of_the_definition() -> None:
    """Of numbers, and of texts of which some are numbers; in memory and in an engine of the user."""
    frame, grids = awkward(), {"a": DecimalGrid(), "t": StepGrid.between(-1, 10)}
    numbers = frame["a"].dropna().to_numpy()
    spelled = frame["t"].map({" 3 ": 3.0, "true": 1.0, "1e5": 1e5, "-0.30": -0.3, "7.": 7.0}).dropna().to_numpy()
    for data in (frame, ibis.memtable(pa.Table.from_pandas(frame))):
        kinds, texts = count_columns(data, grids, 2)
        for name, values in (("a", numbers), ("t", spelled)):
            points = np.array(grids[name].points, dtype=float)
            near = np.where(np.isfinite(values), 1e-12 * np.abs(values), 0.0)
            cells = np.searchsorted(points, values + near, side="right")
            wanted = np.bincount(cells, minlength=len(points) + 1)
            assert np.array_equal(kinds[name].cells, wanted)
            fractions = np.bincount(cells[(np.floor(values) != values) | np.isinf(values)], minlength=len(points) + 1)
            assert np.array_equal(kinds[name].fractions, fractions)
        assert (kinds["a"].missing, kinds["a"].texts) == (1, 0)
        assert kinds["t"].missing == frame["t"].isin([""]).sum() + frame["t"].isna().sum()
        assert kinds["t"].texts == frame["t"].isin(["x y", "inf"]).sum()
        assert texts == {"a": {}, "t": frame["t"].value_counts()[["x y", "inf"]].to_dict()}
        assert count_columns(data, grids, 10**6)[1] == {"a": {}, "t": {}}
        assert list(count_columns(data, grids, 10**6, always=["x y", "no"])[1]["t"]) == ["x y"]


@pytest.mark.parametrize("reader", ["CSV", "Parquet in row groups", "DuckDB file", "memtable", "Polars", "pandas"])
def test_one_record_changes_two_counts_by_one(reader: str, tmp_path: Path) -> None:
    """Every column of neighbouring files, by every kind of reader (theory, section 10)."""
    _, one, other = drawn(5, columns_of(("double", "integer", "boolean", "text"), 1)[:12])
    found = []
    for i, data in enumerate((one, other)):
        (folder := tmp_path / str(i)).mkdir()
        table = READERS[reader](data, folder)
        names = [name for name in Declared.of(table).names if name != "label"]
        found.append(count_columns(table, {name: DecimalGrid() for name in names}, 1)[0])
    assert found[0]
    for name in found[0]:
        a, b = found[0][name], found[1][name]
        moved = abs(a.missing - b.missing) + abs(a.texts - b.texts)
        moved += int(
            np.abs(a.cells - a.fractions - b.cells + b.fractions).sum() + np.abs(a.fractions - b.fractions).sum()
        )
        assert moved <= 2, name


# --- noise and thresholds -------------------------------------------------------------------------


def test_discrete_gaussian_noise_follows_its_law() -> None:
    law = DiscreteGaussian(Fraction(7, 3))
    draws = law.draws(Randomness.seeded(1), 4000)
    k = np.arange(-4, 5)
    p = np.exp(-(k**2) / (2 * 7 / 3))
    expected = np.append(p / np.exp(-(np.arange(-60, 61) ** 2) / (2 * 7 / 3)).sum() * 4000, 0.0)
    expected[-1] = 4000 - expected[:-1].sum()
    observed = np.append([(draws == one).sum() for one in k], (np.abs(draws) > 4).sum())
    assert chisquare(observed, expected).pvalue > 1e-3


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(9), Fraction(10_000)])
@pytest.mark.parametrize("delta", [0.1, 1e-4, 1e-9])
def test_noise_beyond_the_margin_has_probability_delta(variance: Fraction, delta: float) -> None:
    margin = DiscreteGaussian(variance).margin(delta)
    k = np.arange(-3000, 3001)
    law = np.exp(-(k**2) / (2 * float(variance)))
    law /= law.sum()
    assert law[k >= margin].sum() <= delta
    assert law[k >= margin // 2].sum() > delta or margin <= 4


def excess(one: Any, other: Any, epsilon: float) -> float:
    return max(float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) for p, q in ((one, other), (other, one)))


def shown(count: int, costs: Costs, least: int, variance: float) -> Any:
    """Probabilities of "absent" and of every noisy count from the threshold on, of one text of one column."""
    k = np.arange(-6000, 6001)
    law = np.exp(-(k**2) / (2 * variance))
    line = least + costs.margin
    places = line + np.arange(3000) - count + 6000
    found = (law / law.sum())[places] if count >= least else np.zeros(3000)
    return np.append(1 - found.sum(), found)


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_a_text_that_gains_a_record_loses_what_is_promised(adjacency: Adjacency) -> None:
    """The noisy count of one text as far as it is published: exactly, by listing. A sixth of the noise is caught."""
    costs = Costs(0.7, 0.01, adjacency, 1)
    variance, least = float(costs.noise.variance), costs.least(None)  # type: ignore[union-attr]
    counts = (least - 1, least, least + 1, least + costs.margin, least + costs.margin + 3)

    def worst(variance: float) -> float:
        pairs = [(shown(count, costs, least, variance), shown(count + 1, costs, least, variance)) for count in counts]
        return max(excess(one, other, 0.7) for one, other in pairs)

    assert worst(variance) <= 0.01
    assert worst(variance / 40) > 0.01


def test_a_text_is_shown_from_the_least_number_plus_the_margin_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscreteGaussian, "draws", lambda self, rng, count: np.full(count, 7))
    costs, grid, least = Costs(0.7, 0.01, Adjacency.REPLACE, 1), DecimalGrid(), 50
    line = least + costs.margin
    kinds = count_columns(pd.DataFrame({"t": ["x"]}), {"t": grid}, 1)[0]["t"]
    texts = {"few": least - 1, "below": line - 8, "at": line - 7}
    answer = noisy_answer(kinds, texts, grid, costs, least, Randomness.seeded(1))
    assert {name: n for name, n in answer.texts.items() if name in texts} == {"at": line}
    assert (answer.missing, answer.negative, answer.fractions, answer.texts["yes"]) == (7, 7, 7, 7)


@pytest.mark.parametrize(("delta", "columns"), [(0.01, 1), (1e-6, 12)])
def test_the_margin_takes_half_of_delta(delta: float, columns: int) -> None:
    costs = Costs(0.7, delta, Adjacency.REPLACE, columns)
    assert costs.margin == costs.noise.margin(delta / 2 / columns / (1 + math.exp(0.7)))  # type: ignore[union-attr]


NOTHING_STATED = Options((), {}, (), (), (), (), ".")


def test_the_draft_spends_what_its_costs_say(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"a": np.arange(4000) % 997 + 0.5, "b": np.arange(4000) % 811 + 0.5})
    plan = Plan.of(frame, None, 4.0, 0.0, Adjacency.REPLACE, NOTHING_STATED)
    assert plan.costs == Costs(4.0, 0.0, Adjacency.REPLACE, 2)
    asked, drawn, real = [], [], draft.draw_cuts
    monkeypatch.setattr(DiscreteLaplace, "draws", lambda self, rng, n: asked.append(self) or np.full(n, 1000))
    monkeypatch.setattr(draft, "draw_cuts", lambda *given: drawn.append(given[3]) or real(*given))
    kinds = count_columns(frame, plan.grids, 1)[0]
    scale = draft.Scale(4000, 0, False, False, False, 4000.0)
    parts = draft.Cutting(plan, 4, Randomness.seeded(1))._parts("a", scale, kinds["a"], 2)
    assert (drawn, asked) == ([plan.costs.for_cuts(2)], [plan.costs.between_cuts(2)])
    assert parts[0][1] == (frame["a"] >= parts[0][0]).sum() + 1000 * len(parts)


def test_the_number_of_records_is_used_where_it_is_public() -> None:
    frame = pd.DataFrame({"a": np.arange(40), "ill": ["yes", "no"] * 20})
    for adjacency, records in ((Adjacency.REPLACE, 40), (Adjacency.ADD_REMOVE, None)):
        assert Plan.of(frame, ILL, 4.0, 0.0, adjacency, NOTHING_STATED).records == records


@pytest.mark.parametrize("seed", [5, None])
def test_a_seed_is_said(seed: int | None) -> None:
    frame = pd.DataFrame({"age": np.arange(2000) % 83})
    found = private_draft(frame, None, 2.0, bounds={"age": (0, 100)}, random_state=seed)
    assert found.guarantee is not None
    assert found.guarantee.seeded == (seed is not None)


def test_the_stages_of_a_pure_draft_add_up() -> None:
    costs = Costs(1.2, 0.0, Adjacency.REPLACE, 3)
    assert costs.noise == DiscreteLaplace(Fraction(2 * 3 * 2, 1) / Fraction(12, 10))
    assert costs.between_cuts(2) == DiscreteLaplace(Fraction(2 * 2 * 6, 1) / Fraction(12, 10))
    assert costs.for_cuts(2) == pytest.approx(0.2)
    assert costs.profile.rho == pytest.approx(0.6**2 / 6 + 0.4**2 / 8 + 0.2**2 / 2)


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_stages_of_a_draft_with_a_delta_add_up(adjacency: Adjacency) -> None:
    costs = Costs(0.5, 1e-6, adjacency, 5)
    moved = 2 if adjacency is Adjacency.REPLACE else 1
    rho = sum(
        moved * d / (2 * float(noise.variance))  # type: ignore[union-attr]
        for d, noise in ((5, costs.noise), (3, costs.between_cuts(3)))
    )
    rho += 3 * costs.for_cuts(3) ** 2 / 8
    assert rho == pytest.approx(zcdp_limit(0.5, 0.5e-6))


# --- neighbours -----------------------------------------------------------------------------------


NUMBERS: list[Any] = [True, False, 1, 0, 1.0, 3.5, -2, 10**400, float("nan"), complex(1, 2)]
OTHERS: list[Any] = ["1", "0", "true", "yes", None, "", "NA", "3.5", "a text", b"x", pd.Timestamp("2020-01-01"), ("a",)]
MIXED = [*NUMBERS, *OTHERS]


@pytest.mark.parametrize("value", MIXED, ids=range(len(MIXED)))
def test_one_value_of_any_type_changes_two_counts_of_its_column(value: Any) -> None:
    """In a column of booleans, numbers or texts: nothing that pandas infers from all records changes how others are read."""
    spans, days = [pd.Timedelta("1D"), pd.Timedelta("2D")], [pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01")]
    zones = [day.tz_localize("UTC") for day in days]
    for two in ([True, False], [0, 1], [0.5, 7.0], ["yes", "no"], spans, days, zones):
        others = two * 20
        one = pd.DataFrame({"c": others})
        other = pd.DataFrame(
            {"c": pd.Series([value, *others[1:]], dtype=object if not isinstance(value, float) else None)}
        )
        kinds, texts = zip(*(count_columns(frame, {"c": DecimalGrid()}, 1) for frame in (one, other)), strict=True)
        kinds, texts = [found["c"] for found in kinds], [found["c"] for found in texts]
        moved = abs(kinds[0].missing - kinds[1].missing) + np.abs(kinds[0].fractions - kinds[1].fractions).sum()
        whole = [found.cells - found.fractions for found in kinds]
        moved += np.abs(whole[0] - whole[1]).sum()
        moved += sum(abs(texts[0].get(text, 0) - texts[1].get(text, 0)) for text in {**texts[0], **texts[1]})
        assert moved <= 2


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_booleans_and_zeros_and_ones_are_drafted_alike(epsilon: float) -> None:
    rng = np.random.default_rng(0)
    truths = rng.random(3000) < 0.4
    frames = [pd.DataFrame({"member": column}) for column in (truths, truths.astype(int), truths.astype(float))]
    frames.append(pd.DataFrame({"member": truths.astype(object)}))
    frames.append(pd.DataFrame({"member": truths.astype(str)}))
    drafts = {private_draft(frame, None, epsilon, random_state=3).to_toml() for frame in frames}
    assert len(drafts) == 1
    hole = frames[0].astype(object)
    hole.loc[5, "member"] = None
    (with_none,) = private_draft(hole, None, epsilon, random_state=3).schema.columns
    assert with_none == Categories("member", [1], no=0)


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        *((name, IDENTIFIES) for name in ("id", "CustomerId", "Surname", "uuid", "patient_nbr", "RowNumber", "e-mail")),
        *((name, FREE_TEXT) for name in ("notes", "Doctor notes", "comment")),
        *((name, TIME) for name in ("date", "admission_date", "DOB", "Time", "created")),
        *((name, None) for name in ("OverTime", "number_inpatient", "paid", "idle", "ever_married", "job")),
    ],
)
def test_names_that_are_no_features(name: str, reason: str | None) -> None:
    assert why_left_out(name) == reason


def test_the_catalogue_knows_names_in_any_spelling() -> None:
    for name in ("age", "Age", "Age (years)", "patient_age", "AGE"):
        column, note = usual_column(name, (), ".", texts=False) or pytest.fail(name)
        assert isinstance(column, Bins)
        assert 15 in column.cuts
        assert "Nothing was read" in note
    assert usual_column("sex", (), ".", texts=False) is None
    sex, _ = usual_column("Gender", (), ".", texts=True) or pytest.fail("Gender")
    table = pa.table({"Gender": ["male", "F", "1", "0", None]})
    assert Schema([sex]).encode(table)[:, :2].tolist() == [[1, 0], [0, 0], [0, 1], [0, 0], [0, 0]]
    for entry in USUAL:
        assert list(entry.cuts) == sorted(set(entry.cuts))


# --- drafts ---------------------------------------------------------------------------------------


def people(n: int = 5000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    span = rng.integers(18, 80, n)
    gain = np.where(rng.random(n) < 0.5, 0, rng.lognormal(8, 1, n)).round()
    size = rng.normal(1.7, 0.1, n)
    city = rng.choice(["Rome", "Oslo", "Bonn", "a village"], n, p=[0.5, 0.3, 0.199, 0.001])
    city[rng.random(n) < 0.2] = ""
    word = [f"person {i}" for i in range(n)]
    ill = np.where((span > 50) ^ (rng.random(n) < 0.2), "yes", "no")
    return pd.DataFrame({"span": span, "gain": gain, "size": size, "city": city, "word": word, "ill": ill})


def test_a_draft_finds_what_is_there() -> None:
    found = private_draft(people(), ILL, 4.0, 1e-6, intervals=5, random_state=1)
    span, gain, size, city = found.schema.columns
    assert isinstance(span, Bins)
    assert span.whole
    assert np.abs(np.array(span.cuts) - np.quantile(people()["span"], [0.2, 0.4, 0.6, 0.8])).max() < 4
    assert isinstance(gain, Bins)
    assert gain.cuts[0] == 1  # zeros apart
    assert isinstance(size, Bins)
    assert not size.whole
    assert all(1.5 < cut < 1.9 for cut in size.cuts)
    assert isinstance(city, Categories)
    assert [option.name for option in city.options] == ["Bonn", "Oslo", "Rome"]
    assert (city.other, city.missing) == ("other", "missing")
    assert "told from noise" in found.left_out["word"]
    assert "village" not in found.to_toml()
    assert found.guarantee is not None
    assert found.guarantee.profile == Approximate(4.0, 1e-6)
    assert found.guarantee.theory == "12"


def test_frequencies_are_kept_and_are_about_right() -> None:
    found = private_draft(people(), ILL, 4.0, 1e-6, random_state=1).schema
    features = found.encode(people())
    assert np.abs(features.mean(axis=0) - np.array(found.feature_frequencies, dtype=float)).max() < 0.02
    assert Schema.from_toml(found.to_toml()) == found
    stated = Schema([Bins("span", [30, 50]), Categories("city", ["Rome"])])
    assert stated.feature_frequencies == (None, None, None, 1.0)
    for wrong in ([0.5], [0.5, 1.5], [0.5, "a"]):
        with pytest.raises(ValueError, match=r"columns\.span: frequency"):
            Schema.from_dict({"columns": {"span": {"bins": [30, 50], "frequency": wrong}}})


def test_without_a_delta_the_draft_is_pure_and_lists_public_texts_only() -> None:
    frame = people().assign(member=lambda f: np.where(f["span"] > 40, "yes", "no"))
    found = private_draft(frame, ILL, 2.0, random_state=1)
    assert {column.column for column in found.schema.columns} == {"span", "gain", "size", "member"}
    assert found.schema.column("member") == Categories("member", ["yes"], no="no")
    assert "told from noise" in found.left_out["city"]
    assert found.guarantee is not None
    assert isinstance(found.guarantee.profile, Pure)


def test_cut_points_between_which_there_is_nothing_are_taken_out() -> None:
    rng = np.random.default_rng(0)
    days = np.where(rng.random(20_000) < 0.82, -1, rng.integers(1, 400, 20_000))
    frame = pd.DataFrame({"pdays": days, "always": 80, "word": 7.5})
    for seed in range(5):
        found = private_draft(frame, None, 0.5, 1e-6, random_state=seed)
        assert all(-1 < cut <= 400 for cut in found.schema.column("pdays").cuts)  # type: ignore[attr-defined]
        assert {"always", "word"} <= set(found.left_out)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("ends", [(-100, 0), (-1, 0), (0, 1, 5)])
def test_bounds_above_which_there_is_nothing_to_cut(ends: tuple[float, ...], adjacency: Adjacency) -> None:
    """Where negative numbers are not clear in the noisy answer no candidate is left: a column less, not a crash."""
    frame = pd.DataFrame({"c": np.random.default_rng(0).integers(1, 9, 400), "age": 30})
    found = private_draft(frame, None, 1.0, bounds={"c": ends}, adjacency=adjacency, random_state=1)
    assert "c" in found.left_out


def test_decimal_commas_are_read_where_they_are_said() -> None:
    frame = people()
    texts = pd.DataFrame({"empty": "", "size": frame["size"].map(lambda x: f"{x:.2f}".replace(".", ","))})
    texts["half"] = np.where(np.arange(len(frame)) % 2 == 0, "", frame["span"].astype(str))
    texts["ill"] = frame["ill"]
    found = private_draft(texts, ILL, 4.0, 1e-6, decimal=",", random_state=1)
    size, half = found.schema.columns
    assert isinstance(size, Bins)
    assert size.decimal == ","
    assert all(1.5 < cut < 1.9 for cut in size.cuts)
    assert half.missing == "missing"
    assert "told from noise" in found.left_out["empty"]


def test_many_columns_are_counted_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    data = ibis.memtable(pa.table({f"c{j}": rng.choice(["x", "y", "1", "2.5", ""], 60) for j in range(70)}))
    grids = {name: DecimalGrid() for name in data.columns}
    asked = []
    real = codes.run
    monkeypatch.setattr(codes, "run", lambda query: asked.append(query) or real(query))
    kinds, texts = count_columns(data, grids, 1)
    assert len(asked) == 3
    monkeypatch.setattr(counts, "TOGETHER", 1000)
    whole, same_texts = count_columns(data, grids, 1)
    assert list(kinds) == list(whole) == list(grids)
    for name, found in kinds.items():
        assert (found.missing, found.texts) == (whole[name].missing, whole[name].texts)
        assert (found.cells == whole[name].cells).all()
    assert texts == same_texts


def test_what_is_stated_costs_nothing_and_is_used() -> None:
    city = Categories("city", ["Rome", "Oslo"])
    options: dict[str, Any] = {"stated": [city], "leave_out": ["word", "gain", "size"], "random_state": 2}
    found = private_draft(people(), ILL, 3.0, bounds={"span": (0, 100, 5)}, **options)
    assert found.schema.column("city") is city
    assert all(cut % 5 == 0 for cut in found.schema.column("span").cuts)  # type: ignore[attr-defined]
    account, few = ps.Accountant(1.0), people(300).rename(columns={"span": "age"})
    free = private_draft(few, ILL, 0.5, budget=account, **options)
    assert [column.column for column in free.schema.columns] == ["age", "city"]
    assert (free.schema.paid, free.guarantee, account.history) == (None, None, ())
    assert "nothing was spent" in free.sentence()
    asked = private_draft(people().rename(columns={"span": "age"}), ILL, 3.0, numbers=["age"], **options)
    assert asked.schema.column("age").cuts != free.schema.column("age").cuts  # type: ignore[attr-defined]


def test_few_records_ask_few_columns_and_say_so() -> None:
    frame = people(700)
    found = private_draft(frame, ILL, 0.25, 1e-6, texts=["city"], random_state=0)
    assert "city" not in found.left_out  # it is asked first
    not_asked = [reason for reason in found.left_out.values() if "can be told from noise" in reason]
    assert not_asked
    assert all("with 700 records and epsilon 0.25" in reason for reason in not_asked)
    account = ps.Accountant(1.0, 1e-3)
    with pytest.raises(
        ValueError, match=r"nothing can be drafted, and nothing was spent: with 100 records and epsilon 0\.25"
    ):
        private_draft(people(100), ILL, 0.25, 1e-6, budget=account)
    assert account.history == ()


@pytest.mark.parametrize("kind", ["frame", "engine"])
def test_seeded_drafts_repeat_whatever_holds_the_table(kind: str) -> None:
    frame = people(1500)
    data = frame if kind == "frame" else ibis.memtable(pa.Table.from_pandas(frame))
    again = private_draft(frame, ILL, 2.0, 1e-4, random_state=5).to_toml()
    assert private_draft(data, ILL, 2.0, 1e-4, random_state=5).to_toml() == again
    assert private_draft(frame, ILL, 2.0, 1e-4).to_toml() != again


def test_files_carry_what_was_paid_and_releases_add_it_up() -> None:
    frame = people(1500)
    found = private_draft(frame, ILL, 0.5, 1e-4, leave_out=["word"], random_state=5)
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


def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    for law in (DiscreteLaplace, DiscreteGaussian):
        monkeypatch.setattr(law, "draws", lambda *_: pytest.fail("noise was drawn"))


def test_a_budget_refuses_before_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet(monkeypatch)
    with pytest.raises(ps.BudgetExceeded):
        private_draft(people(1000), ILL, 1.0, budget=ps.Accountant(0.5))
    with pytest.raises(ps.BudgetExceeded, match="the budget has no delta"):
        private_draft(people(1000), ILL, 1.0, 1e-6, budget=ps.Accountant(5.0))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": 1e-4}, "nothing can be drafted"),
        ({"delta": 1.5}, "delta must lie"),
        ({"bounds": {"length": (0, 1)}}, "no column 'length'"),
        ({"bounds": {"span": (0,)}}, "must be low and high"),
        ({"leave_out": ["ctiy"]}, "did you mean 'city'"),
        ({"numbers": ["Span"]}, "did you mean 'span'"),
        ({"numbers": ["span"], "texts": ["span"]}, "in numbers and in texts"),
        ({"intervals": 1}, "intervals must be"),
        ({"decimal": "'"}, "decimal must be"),
        ({"leave_out": ["span", "gain", "size", "city", "word"]}, "no column is left"),
        ({"adjacency": "both"}, "adjacency must be"),
        ({"label": Label("ill", "Yes")}, "no record has a value that the schema lists"),
        ({"label": Label("ill", "yes", "No")}, "neither in positive nor in negative"),
    ],
)
def test_wrong_arguments_draw_no_noise(options: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet(monkeypatch)
    with pytest.raises(ValueError, match=words):
        private_draft(people(500), **({"label": ILL, "epsilon": 1.0} | options))
