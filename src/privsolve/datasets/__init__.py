"""Public data: the Adult (census income) data set and the three problems built from it.

Becker, B. & Kohavi, R. (1996). Adult [Dataset]. UCI Machine Learning Repository.
https://doi.org/10.24432/C5XW20. Licensed under CC BY 4.0; see ADULT_LICENSE.md for what was changed.
"""

from __future__ import annotations

import bz2
import io
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.data import Schema
from privsolve.data.patterns import PatternTable

__all__ = [
    "ADULT_CATEGORIES",
    "ADULT_COLUMNS",
    "adult",
    "adult_categorical",
    "adult_paper",
    "adult_schema",
    "adult_scorecard",
]

MISSING = "?"
POSITIVE = ">50K"
Split = Literal["train", "test"]
SPLITS = ("train", "test")

ADULT_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
    "split",
)
"""The columns of `adult()`, in order."""

# fmt: off
ADULT_CATEGORIES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "workclass": (
        "Federal-gov", "Local-gov", "Never-worked", "Private", "Self-emp-inc", "Self-emp-not-inc",
        "State-gov", "Without-pay",
    ),
    "education": (
        "10th", "11th", "12th", "1st-4th", "5th-6th", "7th-8th", "9th", "Assoc-acdm", "Assoc-voc",
        "Bachelors", "Doctorate", "HS-grad", "Masters", "Preschool", "Prof-school", "Some-college",
    ),
    "marital-status": (
        "Divorced", "Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent", "Never-married",
        "Separated", "Widowed",
    ),
    "occupation": (
        "Adm-clerical", "Armed-Forces", "Craft-repair", "Exec-managerial", "Farming-fishing",
        "Handlers-cleaners", "Machine-op-inspct", "Other-service", "Priv-house-serv", "Prof-specialty",
        "Protective-serv", "Sales", "Tech-support", "Transport-moving",
    ),
    "relationship": ("Husband", "Not-in-family", "Other-relative", "Own-child", "Unmarried", "Wife"),
    "race": ("Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"),
    "sex": ("Female", "Male"),
    "native-country": (
        "Cambodia", "Canada", "China", "Columbia", "Cuba", "Dominican-Republic", "Ecuador", "El-Salvador",
        "England", "France", "Germany", "Greece", "Guatemala", "Haiti", "Holand-Netherlands", "Honduras",
        "Hong", "Hungary", "India", "Iran", "Ireland", "Italy", "Jamaica", "Japan", "Laos", "Mexico",
        "Nicaragua", "Outlying-US(Guam-USVI-etc)", "Peru", "Philippines", "Poland", "Portugal", "Puerto-Rico",
        "Scotland", "South", "Taiwan", "Thailand", "Trinadad&Tobago", "United-States", "Vietnam",
        "Yugoslavia",
    ),
    "income": ("<=50K", ">50K"),
})
"""Every category of every categorical column, sorted, as the data set's documentation lists them.

They are public: nothing here is read from the records. A missing value is `"?"`, which is not in these lists.
"""
# fmt: on

_PAPER_CATEGORICAL = ("marital-status", "relationship", "race", "sex")
_PAPER_SCALES = {"capital-gain": 99999, "capital-loss": 4356, "hours-per-week": 99}

_CATEGORICAL: Mapping[str, tuple[str, ...]] = {
    column: ADULT_CATEGORIES[column]
    for column in ("workclass", "education", "marital-status", "occupation", "relationship", "race", "sex")
} | {
    "workclass": (MISSING, *(c for c in ADULT_CATEGORIES["workclass"] if c != "Never-worked")),
    "occupation": (MISSING, *ADULT_CATEGORIES["occupation"]),
}

_MANY = 10**9
_SCORECARD_RANGES = (
    ("age<25", "age", 0, 24),
    ("age=25-34", "age", 25, 34),
    ("age=35-49", "age", 35, 49),
    ("age>=50", "age", 50, _MANY),
    ("education-num<9", "education-num", 0, 8),
    ("education-num=9", "education-num", 9, 9),
    ("education-num=10-12", "education-num", 10, 12),
    ("education-num=13", "education-num", 13, 13),
    ("education-num>13", "education-num", 14, _MANY),
    ("hours-per-week<35", "hours-per-week", 0, 34),
    ("hours-per-week=35-44", "hours-per-week", 35, 44),
    ("hours-per-week>=45", "hours-per-week", 45, _MANY),
    ("capital-gain>5000", "capital-gain", 5001, _MANY),
    ("capital-gain=1-5000", "capital-gain", 1, 5000),
    ("capital-loss>1500", "capital-loss", 1501, _MANY),
)
_SERVICE_OR_MANUAL = (
    "Farming-fishing",
    "Handlers-cleaners",
    "Machine-op-inspct",
    "Other-service",
    "Priv-house-serv",
)
_SCORECARD_GROUPS = (
    ("married", "marital-status", ("Married-AF-spouse", "Married-civ-spouse")),
    ("never-married", "marital-status", ("Never-married",)),
    ("occupation=exec-or-professional", "occupation", ("Exec-managerial", "Prof-specialty")),
    ("occupation=service-or-manual", "occupation", _SERVICE_OR_MANUAL),
    ("occupation=sales-technical-protective", "occupation", ("Protective-serv", "Sales", "Tech-support")),
    ("male", "sex", ("Male",)),
)


def adult() -> pd.DataFrame:
    """All 48,842 records of the Adult data set (Becker & Kohavi 1996): 32,561 train, then 16,281 test.

    Columns are `ADULT_COLUMNS`: the 14 attributes, `income` (`"<=50K"` or `">50K"`) and `split` (`"train"` or
    `"test"`, the file the record came from). Missing values are `"?"`. The frame is the caller's own copy.

    Source: UCI Machine Learning Repository, DOI 10.24432/C5XW20, CC BY 4.0.
    """
    return _load().copy()


def adult_paper(seed: int = 0, split: Split = "train") -> PatternTable:
    """Balanced Adult with 23 features: 20 indicators and three scaled numbers (n = 15,682 for train).

    Indicators of marital-status, relationship, race and sex, in that order, then capital-gain, capital-loss
    and hours-per-week over 99999, 4356 and 99. The records are those of `split`: every positive (`">50K"`)
    and as many negatives, drawn without replacement with `numpy.random.default_rng(seed)`. How many negatives
    are kept depends on the labels, so the balanced subset, not the whole file, is the private data set.

    Source: Becker & Kohavi 1996, UCI Machine Learning Repository, DOI 10.24432/C5XW20, CC BY 4.0.
    """
    frame = _balanced(_split(split), seed)
    indicators, names = _one_hot(frame, {column: ADULT_CATEGORIES[column] for column in _PAPER_CATEGORICAL})
    numbers = frame[list(_PAPER_SCALES)].to_numpy(dtype=np.int64)
    scales = [1] * len(names) + list(_PAPER_SCALES.values())
    ranges = [(0, 1)] * len(names) + [(0, scale) for scale in _PAPER_SCALES.values()]
    return _table(frame, np.hstack([indicators, numbers]), [*names, *_PAPER_SCALES], ranges, scales)


def adult_categorical(seed: int = 0, split: Split = "train") -> PatternTable:
    """Balanced Adult with 59 indicators of seven categorical attributes (same records as `adult_paper`).

    Columns: workclass (8), education (16), marital-status (7), occupation (15), relationship (6), race (5)
    and sex (2). A missing workclass or occupation has its own indicator (`"workclass=?"`, `"occupation=?"`);
    `"Never-worked"`, held by 7 training records (none positive), has none, so such a record has no workclass
    indicator. The list of columns is fixed: it does not depend on the seed, the split or the records drawn.

    Source: Becker & Kohavi 1996, UCI Machine Learning Repository, DOI 10.24432/C5XW20, CC BY 4.0.
    """
    frame = _balanced(_split(split), seed)
    indicators, names = _one_hot(frame, _CATEGORICAL)
    return _table(frame, indicators, names, [(0, 1)] * len(names))


def adult_scorecard(split: Split = "train") -> PatternTable:
    """All records of `split` (n = 32,561 for train) with 21 indicators and, last, an `"intercept"` of ones.

    Ranges of age, education-num, hours-per-week, capital-gain and capital-loss; married (civil or
    armed-forces spouse) and never married; three groups of occupations (exec or professional; service or
    manual; sales, technical or protective); male. Service or manual is Farming-fishing, Handlers-cleaners,
    Machine-op-inspct, Other-service and Priv-house-serv; Adm-clerical, Armed-Forces, Craft-repair,
    Transport-moving and `"?"` are in no group. On train, the best points in -3..3 on at most 6 columns with
    an intercept in -8..8 make 5,052 mistakes.

    Source: Becker & Kohavi 1996, UCI Machine Learning Repository, DOI 10.24432/C5XW20, CC BY 4.0.
    """
    frame = _split(split)
    columns = [frame[column].between(low, high) for _, column, low, high in _SCORECARD_RANGES]
    columns += [frame[column].isin(values) for _, column, values in _SCORECARD_GROUPS]
    features = np.column_stack([*columns, np.ones(len(frame))]).astype(np.int64)
    names = [row[0] for row in _SCORECARD_RANGES] + [row[0] for row in _SCORECARD_GROUPS]
    return _table(frame, features, [*names, "intercept"], [(0, 1)] * len(names) + [(1, 1)])


@cache
def _load() -> pd.DataFrame:
    packed = resources.files("privsolve.datasets").joinpath("adult.csv.bz2").read_bytes()
    return pd.read_csv(io.BytesIO(bz2.decompress(packed)), keep_default_na=False)


def _split(split: Split) -> pd.DataFrame:
    if split not in SPLITS:
        raise ValueError(f"split must be 'train' or 'test', got {split!r}")
    frame = _load()
    return frame[frame["split"] == split]


def _positive(frame: pd.DataFrame) -> NDArray[np.bool_]:
    return np.asarray(frame["income"] == POSITIVE, dtype=np.bool_)


def _balanced(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Every positive record and as many negatives, drawn at random, in file order."""
    positive = _positive(frame)
    kept = np.flatnonzero(positive)
    drawn = np.random.default_rng(seed).choice(np.flatnonzero(~positive), size=len(kept), replace=False)
    return frame.iloc[np.sort(np.concatenate([kept, drawn]))]


def _one_hot(frame: pd.DataFrame, categories: Mapping[str, Sequence[str]]) -> tuple[Int64Array, list[str]]:
    pairs = [(column, category) for column, values in categories.items() for category in values]
    indicators = np.column_stack([frame[column] == category for column, category in pairs])
    return indicators.astype(np.int64), [f"{column}={category}" for column, category in pairs]


def _table(
    frame: pd.DataFrame,
    features: Int64Array,
    names: Sequence[str],
    ranges: Sequence[tuple[int, int]],
    scales: Sequence[int] | None = None,
) -> PatternTable:
    return PatternTable.from_records(features, _positive(frame), names, scales, ranges)


def adult_schema() -> Schema:
    """A schema of `adult()` for scorecards: eight columns as 33 yes/no features, with public cut points."""
    text = resources.files("privsolve.datasets").joinpath("adult_schema.toml").read_text(encoding="utf-8")
    return Schema.from_toml(text)
