"""What a private draft counts, exactly and then with noise (theory, 12.1 and 12.4).

For every column: how many values are missing, texts, or numbers in which cell of its grid. One query for some dozens of columns
in an engine, whatever the size of the table, which is read once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.data.codes import collected, is_ibis_table, names_of, queried, run
from privsolve.data.columns.base import LARGEST_INTEGER
from privsolve.data.duckdb import read_each_value
from privsolve.data.private.cuts import Grid
from privsolve.data.reading import NO_TEXT, PLAIN, Marks, is_mixed, number_of, text_of
from privsolve.noise.discrete import DiscreteGaussian, DiscreteLaplace
from privsolve.noise.entropy import Randomness
from privsolve.privacy.accounting import zcdp_limit
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.decimals import at_least, exact
from privsolve.privacy.profiles import Approximate, Profile, Pure

MISSING_CODE, TEXT_CODE, NUMBERS = 0, 1, 2
"""Codes: missing, text or neither, and from 2 on twice the cell of a number, one more if it is not whole."""

SMALL_NUMBERS = range(21)
"""Whole numbers that are counted one by one."""

NA_CODES = ("NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "?", "#N/A")
"""Texts that stand for no value in files of most programs."""

_COMMON = """
yes no Yes No YES NO y n Y N t f T F male Male MALE m M female Female FEMALE low medium high Low Medium High none None
other Other unknown Unknown single married divorced widowed normal abnormal positive negative
"""
COMMON_TEXTS = tuple(_COMMON.split())
"""Texts that are counted without a threshold: a public list. Texts that read as numbers or truth values are none of them."""

TOGETHER = 32
"""Columns that one query counts: of several hundred an engine would need more memory than it is given."""


@dataclass(frozen=True)
class Kinds:
    """Exact counts of one column: not private."""

    missing: int
    texts: int
    cells: Int64Array
    fractions: Int64Array
    """Numbers by cell of the grid: all of them, and those that are not whole."""

    def whole_at(self, cell: int | None) -> int:
        """Whole numbers in a cell; none where there is no such cell."""
        return 0 if cell is None else int(self.cells[cell] - self.fractions[cell])


@dataclass(frozen=True)
class Declared:
    """What the definition of a table says, which is public: the names of its columns and, in an engine, some types."""

    names: tuple[str, ...]
    booleans: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    neither: frozenset[str] = frozenset()
    """Neither texts, numbers nor booleans, such as dates."""

    @classmethod
    def of(cls, data: Any) -> Declared:
        """Types of frames in memory are not used: they are inferred from all records together (theory, section 12)."""
        if not is_ibis_table(data):
            names = names_of(collected(data))
            check_texts(names)
            return cls(tuple(names))
        kinds = dict(read_each_value(data).schema().items())
        booleans = frozenset(name for name, kind in kinds.items() if kind.is_boolean())
        texts = frozenset(name for name, kind in kinds.items() if kind.is_string())
        numbers = {n for n, k in kinds.items() if k.is_floating() or k.is_integer() or k.is_decimal()}
        return cls(tuple(kinds), booleans, texts, frozenset(kinds) - booleans - texts - numbers)


def count_records(data: Any) -> int:
    """How many there are: public where a record is replaced."""
    if is_ibis_table(data):
        return int(run(data.aggregate(records=data.count()))["records"][0].as_py())
    return len(collected(data))


def check_texts(names: Iterable[object]) -> None:
    """Raise unless names of columns are texts, as they are in a schema."""
    for name in names:
        if not isinstance(name, str):
            raise ValueError(
                f"the names of columns must be texts, got {name!r}: rename them, for example by "
                "data.columns = data.columns.map(str)"
            )


def count_columns(
    data: Any, grids: Mapping[str, Grid], least: int, marks: Marks = PLAIN, always: Sequence[str] = ()
) -> tuple[dict[str, Kinds], dict[str, dict[str, int]]]:
    """The counts of these columns, in which `marks` stand for no value, and how many records have each text that is no number.

    Texts are those that `least` records or more have, and those in `always`.
    """
    sizes = {name: NUMBERS + 2 * (len(grid.points) + 1) for name, grid in grids.items()}
    histograms: dict[str, Int64Array] = {name: np.zeros(size, dtype=np.int64) for name, size in sizes.items()}
    texts: dict[str, dict[str, int]] = {name: {} for name in grids}
    for names in batched(grids):
        table, answer = queried(data, names)
        query = _query(table, [grids[name] for name in names], least, marks, always)
        for row in answer(query).to_pylist():
            name, records = names[row["place"]], int(row["records"])
            histograms[name][row["code"]] += records
            if row["text"]:
                texts[name][row["text"]] = records
    return {name: _kinds(histogram) for name, histogram in histograms.items()}, texts


def _kinds(histogram: Int64Array) -> Kinds:
    whole, fractions = histogram[NUMBERS::2], histogram[NUMBERS + 1 :: 2]
    return Kinds(int(histogram[MISSING_CODE]), int(histogram[TEXT_CODE]), whole + fractions, fractions)


def batched(names: Iterable[str]) -> Iterator[list[str]]:
    """The names of one query after the other."""
    left = iter(names)
    while some := list(islice(left, TOGETHER)):
        yield some


def _query(table: Any, grids: Sequence[Grid], least: int, marks: Marks, always: Sequence[str]) -> Any:
    """Rows with the place of a column, a code, a text if it is to be told, and the number of records.

    The different values of every column are counted first, so that reading them costs little.
    """
    import ibis

    different = ibis.union(*_different(table, marks)).view()
    told = different.group_by(["place", "number", "plain", "text"])  # without surrounding spaces some are the same
    rows = told.aggregate(records=different.records.sum()).view()
    by_grid: dict[Grid, list[int]] = {}
    for place, grid in enumerate(grids):
        by_grid.setdefault(grid, []).append(place)
    inside = rows.number.coalesce(0.0)
    cells = [(rows.place.isin(those), grid.cell(inside)) for grid, those in by_grid.items()]
    cell = cells[0][1] if len(cells) == 1 else ibis.cases(*cells[:-1], else_=cells[-1][1])
    small = ibis.least(ibis.greatest(inside, -float(LARGEST_INTEGER)), float(LARGEST_INTEGER))
    whole = (small.floor() == small) & ~inside.isinf()
    number = NUMBERS + 2 * cell + whole.ifelse(0, 1)
    is_text = rows.text.notnull()
    if marks.numbers:
        is_text = is_text & ~rows.plain.coalesce(math.nan).isin(list(marks.numbers))
    code = ibis.cases((rows.number.notnull(), number), (is_text, TEXT_CODE), else_=MISSING_CODE).cast("int64")
    often = rows.records >= least
    often = often | rows.text.isin(list(always)) if always else often
    text = ibis.cases((rows.plain.isnull() & often, rows.text), else_=ibis.null("string"))
    coded = rows.select(place=rows.place, code=code, text=text, records=rows.records)
    return coded.group_by(["place", "code", "text"]).aggregate(records=coded.records.sum())


def _different(table: Any, marks: Marks) -> list[Any]:
    """The different values of columns of texts, and of others: as numbers with and without `marks`, as texts, and how many.

    Columns of one kind are laid below each other by one pass over the table, so that a file is read once.
    """
    import ibis

    values = [table[name] for name in table.columns]
    texts, mixed, others, numbers = (dict[int, Any]() for _ in range(4))
    for place, value in enumerate(values):
        kind = value.type()
        if kind.is_string() or is_mixed(kind):
            (texts if kind.is_string() else mixed)[place] = value
        elif kind.is_numeric() or kind.is_boolean():
            numbers[place] = number_of(value, "", marks)
        else:  # as where one record more makes a mixed column of them
            is_day = kind.is_date() or (kind.is_timestamp() and kind.timezone is None)
            others[place] = value.notnull() & ibis.literal(is_day)
    parts, none = [], ibis.null("float64")
    plain = Marks(comma=marks.comma)
    for found in filter(None, (texts, mixed)):
        counted = _counted(table, found)
        number, written = (number_of(counted.value, "", which) for which in (marks, plain))
        parts.append(counted.mutate(number=number, plain=written, text=text_of(counted.value, "", marks)).drop("value"))
    if numbers:
        counted = _counted(table, numbers)
        parts.append(counted.mutate(number=counted.value, plain=counted.value, text=ibis.null("string")).drop("value"))
    if others:
        counted = _counted(table, others)
        text = ibis.cases((counted.value, NO_TEXT), else_=ibis.null("string"))
        parts.append(counted.mutate(number=none, plain=none, text=text).drop("value"))
    return parts


def _counted(table: Any, values: Mapping[int, Any]) -> Any:
    """How many records have each value at each place."""
    import ibis

    pairs = ibis.array([ibis.struct({"place": place, "value": value}) for place, value in values.items()])
    rows = table.select(pair=pairs.unnest())
    rows = rows.select(place=rows.pair["place"].cast("int64"), value=rows.pair["value"])
    return rows.group_by(["place", "value"]).aggregate(records=rows.count())


FIRST, SECOND, THIRD = Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)
"""Shares of ρ or, without a delta, of epsilon: for the answers, for cut points, and for the counts between them."""

BY_CHANCE = 3e-5
"""A value is there if noise alone would hardly be as large as its noisy count: with this probability at most."""


@dataclass(frozen=True)
class Costs:
    """What a draft of so many asked columns may spend, in its two stages (theory, 12.5)."""

    epsilon: float
    delta: float
    adjacency: Adjacency
    columns: int

    @cached_property
    def _rho(self) -> Fraction:
        """Of both stages, so that they are `(epsilon, delta/2)`-DP."""
        return Fraction(zcdp_limit(self.epsilon, self.delta / 2))

    @property
    def profile(self) -> Profile:
        """What the draft promises."""
        if self.delta:
            return Approximate(self.epsilon, self.delta)
        whole = exact(self.epsilon)
        first, second, third = (share * whole for share in (FIRST, SECOND, THIRD))
        return Pure(self.epsilon, at_least(first**2 / (2 * self.columns) + second**2 / 8 + third**2 / 2))

    @cached_property
    def noise(self) -> DiscreteGaussian | DiscreteLaplace:
        """Of every count of the first stage."""
        return self._noise(self.columns, FIRST)

    def between_cuts(self, columns: int) -> DiscreteGaussian | DiscreteLaplace:
        """Of the counts between the cut points of so many columns."""
        return self._noise(columns, THIRD)

    def _noise(self, columns: int, share: Fraction) -> DiscreteGaussian | DiscreteLaplace:
        """One record changes the counts of all columns by at most `Δ₂² = Δ₁ = 2d`, or d under add-remove."""
        moved = columns * (2 if self.adjacency is Adjacency.REPLACE else 1)
        if self.delta:
            return DiscreteGaussian(moved / (2 * share * self._rho))
        return DiscreteLaplace(moved / (share * exact(self.epsilon)))

    def for_cuts(self, columns: int) -> float:
        """Epsilon of each of so many columns that are cut."""
        if self.delta:
            return math.sqrt(8 * float(SECOND * self._rho) / columns) * (1 - 1e-12)
        return float(SECOND * exact(self.epsilon) / columns) * (1 - 1e-12)

    @property
    def clear(self) -> float:
        """From how many records on a value is told from noise."""
        return float(self.noise.margin(BY_CHANCE))

    @cached_property
    def margin(self) -> int:
        """τ: so far above the least number of records a text is listed that is in no public list."""
        return self.noise.margin(self.delta / (2 * self.columns * (1 + math.exp(min(self.epsilon, 500.0)))))

    def least(self, records: int | None) -> int:
        """c₀: texts of fewer records are not looked at; it keeps the answer of an engine short."""
        return max(1, self.margin // 4, 0 if records is None else records // 10_000)


@dataclass(frozen=True)
class Answer:
    """The noisy counts of one column; they may be published."""

    missing: int
    negative: int
    whole: int
    fractions: int
    small: Mapping[int, int]
    """Of the whole numbers from 0 to 20; `whole` counts the larger ones."""

    texts: Mapping[str, int]
    """Of texts of the public list, and of those that appear."""


def noisy_answer(
    kinds: Kinds, texts: Mapping[str, int], grid: Grid, costs: Costs, least: int, rng: Randomness
) -> Answer:
    """One answer; `texts` are the exact counts of texts that are no numbers, `least` is c₀."""
    small = {v: kinds.whole_at(grid.only_whole(v)) for v in SMALL_NUMBERS}
    below = grid.zero if grid.zero is not None else 0
    negative = int(kinds.cells[:below].sum())
    fractions = int(kinds.fractions[below:].sum())
    whole = int(kinds.cells.sum()) - negative - fractions - sum(small.values())
    looked_at = sorted(t for t, c in texts.items() if t not in COMMON_TEXTS and c >= least) if costs.delta else []
    exact_counts = [
        kinds.missing,
        negative,
        whole,
        fractions,
        *small.values(),
        *(texts.get(text, 0) for text in COMMON_TEXTS),
        *(texts[text] for text in looked_at),
    ]
    noise = costs.noise.draws(rng, len(exact_counts))
    noisy = [count + int(xi) for count, xi in zip(exact_counts, noise, strict=True)]
    rest = noisy[4 + len(small) :]
    appearing = zip(looked_at, rest[len(COMMON_TEXTS) :], strict=True)
    shown = {text: count for text, count in appearing if count >= least + costs.margin} if looked_at else {}
    missing, negative, whole, fractions = noisy[:4]
    listed = dict(zip(COMMON_TEXTS, rest, strict=False))
    return Answer(missing, negative, whole, fractions, dict(zip(small, noisy[4:], strict=False)), listed | shown)
