"""The data as every mechanism sees it: distinct integer feature rows with their label counts."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privsolve.arrays import Int64Array, IntArray
from privsolve.checks import check_count, check_items, check_length
from privsolve.errors import IntegerRangeError

Whole = TypeVar("Whole", bound=np.signedinteger[Any])

BLOCK = 8192
"""Rows that are worked on at once where a table may be large."""

SCORE_LIMIT = 2**62
"""Scores and objective values stay below this, so that a sum of two never leaves int64."""


@dataclass(frozen=True, eq=False)
class BitRows:
    """Rows of 0/1 features, eight features in a byte. `rows[some]` are the features of some rows, a byte each."""

    bits: NDArray[np.uint8]
    dim: int

    @classmethod
    def of(cls, blocks: Iterable[NDArray[Any]], count: int, dim: int) -> BitRows:
        """The rows of these blocks, `count` in all."""
        bits = np.empty((count, -(-dim // 8)), dtype=np.uint8)
        start = 0
        for block in blocks:
            bits[start : start + len(block)] = np.packbits(block, axis=1)
            start += len(block)
        return cls(bits, dim)

    def __len__(self) -> int:
        return len(self.bits)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        return len(self.bits), self.dim

    def __getitem__(self, some: slice) -> NDArray[np.int8]:
        return np.unpackbits(self.bits[some], axis=1, count=self.dim).view(np.int8)


HeldRows = BitRows | IntArray
"""Rows as a table holds them: bits where all are 0 or 1, else in as few bytes as hold them."""


def blocks_of(rows: NDArray[Any] | BitRows) -> Iterator[tuple[slice, IntArray]]:
    """Some rows at a time, with their place."""
    for start in range(0, len(rows), BLOCK):
        place = slice(start, min(start + BLOCK, len(rows)))
        yield place, rows[place]


@dataclass(frozen=True)
class PatternTable:
    """Distinct feature rows and how many positive and negative records have each.

    `features[i, j]` is an integer; it stands for the real number `features[i, j] / scales[j]`. The scales are
    public constants (1 for an indicator, 99 for hours-per-week divided by 99), so every score `<x, w>` with
    integer weights is exact in the common unit `1 / unit` (theory, section 6).

    `ranges[j]` is what is publicly known of feature j, its least and largest integer (`(0, 1)` for an indicator). Solvers
    choose how to work by declared ranges, never by the records, so a table with a value outside is refused. None says
    nothing: general methods are used, and under a scorecard domain the features must be 0/1.

    Rows that are equal are merged on construction, and rows with no record are dropped, so two tables of the
    same records are equal whatever order the records came in. Rows of zeros and ones are held as bits.
    """

    held: HeldRows
    positives: Int64Array
    negatives: Int64Array
    names: tuple[str, ...]
    scales: tuple[int, ...]
    ranges: tuple[tuple[int, int], ...] | None = None

    def __init__(
        self,
        features: ArrayLike | BitRows,
        positives: ArrayLike,
        negatives: ArrayLike,
        names: Sequence[str] | None = None,
        scales: Sequence[int] | None = None,
        ranges: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        held = features if isinstance(features, BitRows) else _held(_checked_integers(features, "features", ndim=2))
        dim = held.shape[1]
        if dim == 0:
            raise ValueError("features has no columns: give at least one feature")
        counts = [_counts(c, name, len(held)) for c, name in ((positives, "positives"), (negatives, "negatives"))]
        held, counts = _merge_equal_rows(held, counts)
        if len(held) == 0:
            raise ValueError("the table is empty: positives and negatives are all zero; give at least one record")
        set_field = object.__setattr__
        set_field(self, "held", held)
        set_field(self, "positives", _readonly(counts[0]))
        set_field(self, "negatives", _readonly(counts[1]))
        set_field(self, "names", checked_names(names, dim))
        set_field(self, "scales", checked_scales(scales, dim))
        ends = _least_and_largest(held)
        set_field(self, "ranges", _checked_ranges(ranges, self.names, ends))
        self._check_common_unit(ends)

    @classmethod
    def from_records(
        cls,
        features: ArrayLike,
        labels: ArrayLike,
        names: Sequence[str] | None = None,
        scales: Sequence[int] | None = None,
        ranges: Sequence[tuple[int, int]] | None = None,
    ) -> PatternTable:
        """One row per record; `labels` are +1/-1, 1/0 or booleans (positive is 1 or True)."""
        rows = _checked_integers(features, "features", ndim=2)
        positive = _positive_labels(labels, len(rows))
        return cls(rows, positive.astype(np.int8), (~positive).astype(np.int8), names, scales, ranges)

    @classmethod
    def from_numbers(
        cls,
        features: ArrayLike,
        labels: ArrayLike,
        bounds: Sequence[tuple[float, float]],
        *,
        steps: int = 100,
        names: Sequence[str] | None = None,
    ) -> PatternTable:
        """The table of features that are real numbers, scaled to 0..1 by public bounds, as the paper scales its own.

        Args:
            features: one row per record, finite numbers.
            labels: +1/-1, 1/0 or booleans.
            bounds: the least and the largest value of each feature, public: never the minimum and maximum of the records.
                Values outside are cut to them.
            steps: each feature is rounded to a multiple of `1 / steps`.
            names: public names of the features.

        Returns:
            A table whose feature j stands for `(x_j - low_j) / (high_j - low_j)`.

        Raises:
            ValueError: if a bound or a value is not a finite number, or a bound is missing.

        Example:
            >>> import privsolve as ps
            >>> table = ps.PatternTable.from_numbers([[31.5, 0.2], [70.0, 0.9]], [True, False], [(18, 90), (0, 1)])
            >>> table.features.tolist()
            [[19, 20], [72, 90]]
        """
        check_count("steps", steps)
        try:
            numbers = np.asarray(features, dtype=np.float64)
            ends = np.asarray(bounds, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                "features must be rows of numbers, and bounds a pair of numbers for each feature"
            ) from None
        if numbers.ndim != 2 or ends.shape != (numbers.shape[1], 2):
            raise ValueError(f"bounds must hold a pair (low, high) for each feature, got shape {ends.shape}")
        if not np.isfinite(numbers).all():
            raise ValueError("features has NaN or infinite values: clean or encode them first")
        low, high = ends.T
        if not (np.isfinite(ends).all() and (low < high).all()):
            raise ValueError("bounds must be finite numbers, the lower one first")
        rows = np.floor((np.clip(numbers, low, high) - low) / (high - low) * steps + 0.5).astype(np.int64)
        dim = len(low)
        return cls.from_records(rows, labels, names, [steps] * dim, [(0, steps)] * dim)

    def with_counts(self, positives: Int64Array, negatives: Int64Array, *, without: str | None = None) -> PatternTable:
        """The same rows, `without` one feature, with other counts. If none is left, a row that no record has stands in.

        A table from records is never empty. One from which records were held out may be, and is fitted like any other: its
        row has the least declared value of every feature, and its counts of 0 add nothing to a loss.
        """
        kept = [place for place, name in enumerate(self.names) if name != without]
        rows = self.held if without is None else self.rows[:, kept]
        names, scales = [self.names[place] for place in kept], [self.scales[place] for place in kept]
        ranges = None if self.ranges is None else [self.ranges[place] for place in kept]
        if (positives + negatives).any():
            return PatternTable(rows, positives, negatives, names, scales, ranges)
        least = [0] * len(kept) if ranges is None else [low for low, _ in ranges]
        table = PatternTable([least], [1], [0], names, scales, ranges)
        object.__setattr__(table, "positives", table.negatives)
        return table

    def joined(self, other: PatternTable) -> PatternTable:
        """All records of two tables with the same features."""
        if not self.n or not other.n:
            return self if self.n else other
        if isinstance(self.held, BitRows) and isinstance(other.held, BitRows):
            rows: Any = BitRows(np.concatenate([self.held.bits, other.held.bits]), self.dim)
        else:
            rows = np.concatenate([self.rows, other.rows])
        positives = np.concatenate([self.positives, other.positives])
        negatives = np.concatenate([self.negatives, other.negatives])
        return PatternTable(rows, positives, negatives, self.names, self.scales, self.ranges)

    def __len__(self) -> int:
        return len(self.held)

    @property
    def dim(self) -> int:
        """Number of features."""
        return int(self.held.shape[1])

    @property
    def rows(self) -> IntArray:
        """The rows in as few bytes as hold their integers."""
        return self.held[:]

    @cached_property
    def features(self) -> Int64Array:
        """The rows as 64-bit integers, made when they are first asked for."""
        return _readonly(self.rows.astype(np.int64))

    def blocks(self) -> Iterator[tuple[slice, Int64Array]]:
        """The rows as 64-bit integers, some at a time: large tables need not be held in eight bytes per feature."""
        for place, block in blocks_of(self.held):
            yield place, block.astype(np.int64)

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.positives.sum() + self.negatives.sum())

    @cached_property
    def unit(self) -> int:
        """Common denominator of all features: scores are integers in units of `1 / unit`."""
        return math.lcm(*self.scales)

    @cached_property
    def score_features(self) -> Int64Array:
        """The features as integers over the common denominator: their sign structure is exact."""
        if self.unit == 1:
            return self.features
        return _readonly(self.features * np.array([self.unit // s for s in self.scales], dtype=np.int64))

    def _check_common_unit(self, ends: tuple[IntArray, IntArray]) -> None:
        """Overflow is found here, before anything is spent."""
        for name, scale, least, largest in zip(self.names, self.scales, *ends, strict=True):
            if max(1, abs(int(least)), abs(int(largest))) * (self.unit // scale) >= SCORE_LIMIT:
                raise IntegerRangeError(
                    f"features[{name!r}] leaves the 64-bit integers once brought to the common unit 1/{self.unit}: "
                    "use smaller values or coarser scales"
                )

    def scores(self, weights: ArrayLike) -> Int64Array:
        """Exact integer scores `unit * <x, w>` of every row."""
        w = _integer_array(weights, "weights", ndim=1)
        check_score_range(self, np.abs(w))
        return self.score_features @ w

    def mistakes(self, weights: ArrayLike) -> int:
        """Number of records misclassified by "positive iff score > 0"."""
        positive = self.scores(weights) > 0
        return int(self.negatives[positive].sum() + self.positives[~positive].sum())

    def accuracy(self, weights: ArrayLike) -> float:
        """Share of records classified correctly. Data-dependent: not for publication."""
        return 1.0 - self.mistakes(weights) / max(self.n, 1)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PatternTable):
            return NotImplemented
        return (
            self.names == other.names
            and self.scales == other.scales
            and self.ranges == other.ranges
            and np.array_equal(self.rows, other.rows)
            and np.array_equal(self.positives, other.positives)
            and np.array_equal(self.negatives, other.negatives)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PatternTable({len(self)} distinct rows of {self.dim} features, {self.n} records)"


def check_score_range(table: PatternTable, largest_weights: Int64Array) -> None:
    """Raise if some score `<x, w>` with `|w_j| <= largest_weights[j]` could overflow."""
    if len(largest_weights) != table.dim:
        raise ValueError(
            f"weights has {len(largest_weights)} entries but the table has {table.dim} features: they must match"
        )
    largest = np.abs(table.score_features).max(axis=0)
    if sum(int(a) * int(b) for a, b in zip(largest, largest_weights, strict=True)) >= SCORE_LIMIT:
        raise IntegerRangeError(
            "scores <x, w> could leave the 64-bit integers: use smaller weights, smaller features or coarser scales"
        )


def _integer_array(values: ArrayLike, name: str, ndim: int) -> Int64Array:
    return _checked_integers(values, name, ndim).astype(np.int64, copy=False)


def _checked_integers(values: ArrayLike, name: str, ndim: int) -> NDArray[Any]:
    """An array of whole numbers, of whatever type they came in."""
    check_length(name, values)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be a {ndim}-dimensional array of integers ({error})") from None
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {array.shape}")
    if array.size == 0:
        return array
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {array.dtype}, not 64-bit integers: encode or round it first")
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise ValueError(f"{name} has NaN or infinite values: clean or encode them first")
        if float(np.abs(array).max()) >= 2.0**53:
            raise IntegerRangeError(
                f"{name} has floats of 2^53 or more, among which are not all whole numbers: pass integers, or rescale it"
            )
        if (array != np.rint(array)).any():
            raise ValueError(f"{name} has fractional values: PatternTable.from_numbers scales them by public bounds")
    if max(int(array.max()), -int(array.min())) >= SCORE_LIMIT:
        raise IntegerRangeError(f"{name} has values of {SCORE_LIMIT} or more: rescale it")
    return array


def narrowest(least: int, largest: int) -> np.dtype[np.signedinteger[Any]]:
    """The narrowest type that holds all integers between two."""
    types: tuple[np.dtype[Any], ...] = tuple(map(np.dtype, (np.int8, np.int16, np.int32, np.int64)))
    return next(kind for kind in types if np.iinfo(kind).min <= least and largest <= np.iinfo(kind).max)


def _counts(values: ArrayLike, name: str, rows: int) -> Int64Array:
    counts = _integer_array(values, name, ndim=1)
    if len(counts) != rows:
        raise ValueError(f"{name} has {len(counts)} entries for {rows} feature rows: give one count per row")
    if len(counts) and counts.min() < 0:
        raise ValueError(f"{name} has negative counts: it must hold numbers of records")
    if counts.sum(dtype=np.float64) >= 2.0**40:  # smaller sums are exact
        raise IntegerRangeError(f"{name} sums to 2^40 records or more, beyond the exact integer range of the solvers")
    return counts


def _held(rows: NDArray[Any]) -> HeldRows:
    """The same whole numbers in as little memory as holds them."""
    least, largest = (int(rows.min()), int(rows.max())) if rows.size else (0, 0)
    if rows.shape[1] and least >= 0 and largest <= 1:
        return BitRows.of((block.astype(np.int8, copy=False) for _, block in blocks_of(rows)), *rows.shape)
    return _readonly(rows.astype(narrowest(least, largest)))


def _merge_equal_rows(held: HeldRows, counts: list[Int64Array]) -> tuple[HeldRows, list[Int64Array]]:
    """The distinct rows that have records, in ascending order, and the sums of their counts."""
    present = np.flatnonzero(counts[0] + counts[1])
    if not len(present):
        return held[:0], counts
    keys = _sortable(held)
    if len(present) < len(keys):
        keys = keys[present]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    del keys  # as large as the rows that follow
    order = present[order]
    del present
    merged = [np.add.reduceat(count[order], first) for count in counts]
    order = order[first]
    return BitRows(held.bits[order], held.dim) if isinstance(held, BitRows) else _held(held[order]), merged


def _sortable(held: HeldRows) -> NDArray[np.bytes_]:
    """Rows as strings of bytes in the same order; of integers the highest byte comes first."""
    if isinstance(held, BitRows):
        keys: NDArray[Any] = np.ascontiguousarray(held.bits)
    else:
        unsigned = np.dtype(f"u{held.itemsize}")
        turned = np.ascontiguousarray(held).view(unsigned) ^ unsigned.type(1 << (8 * held.itemsize - 1))
        keys = turned.astype(unsigned.newbyteorder(">"))
    strings: NDArray[np.bytes_] = keys.view(f"S{keys.itemsize * keys.shape[1]}")
    return strings[:, 0]


def _least_and_largest(held: HeldRows) -> tuple[IntArray, IntArray]:
    """The least and the largest value of every feature."""
    if not isinstance(held, BitRows):
        return held.min(axis=0), held.max(axis=0)
    ends = BitRows(np.stack([ufunc.reduce(held.bits, axis=0) for ufunc in (np.bitwise_and, np.bitwise_or)]), held.dim)
    least, largest = ends[:]
    return least, largest


def checked_names(names: Sequence[str] | None, dim: int) -> tuple[str, ...]:
    """One different name per feature: `x0`, `x1`, ... if none are given."""
    if names is None:
        return tuple(f"x{j}" for j in range(dim))
    result = tuple(map(str, check_items("names", names, f"be a list of {dim} different feature names")))
    if len(result) != dim or len(set(result)) != dim:
        raise ValueError(f"names must be {dim} different feature names, got {len(set(result))} different")
    return result


def checked_scales(scales: Sequence[int] | None, dim: int) -> tuple[int, ...]:
    """One positive integer per feature: 1 if none are given."""
    if scales is None:
        return (1,) * dim
    try:
        result = tuple(
            operator.index(s) for s in check_items("scales", scales, f"be {dim} positive integers, one per feature")
        )
    except TypeError:
        result = ()
    if len(result) != dim or min(result) < 1:
        raise ValueError(f"scales must be {dim} positive integers, one per feature, got {scales!r}")
    return result


def _checked_ranges(
    ranges: Sequence[tuple[int, int]] | None, names: tuple[str, ...], ends: tuple[IntArray, IntArray]
) -> tuple[tuple[int, int], ...] | None:
    """The declared ranges as pairs of integers; raise if they are none, or if a row leaves them."""
    if ranges is None:
        return None
    try:
        result = tuple((operator.index(low), operator.index(high)) for low, high in ranges)
    except (TypeError, ValueError):
        result = ()
    if len(result) != len(names) or any(low > high for low, high in result):
        raise ValueError(f"ranges must be {len(names)} pairs (low, high) of integers, one per feature, got {ranges!r}")
    for name, (low, high), least, largest in zip(names, result, *ends, strict=True):
        if least < low or largest > high:
            raise ValueError(
                f"features[{name!r}] has values outside its declared range {low} to {high}: clip or encode it by a public "
                "rule, or declare a wider range"
            )
    return result


def _positive_labels(labels: ArrayLike, rows: int) -> NDArray[np.bool_]:
    check_length("labels", labels)
    try:
        array = np.asarray(labels)
    except ValueError as error:
        raise ValueError(f"labels must be one label per record ({error})") from None
    if array.shape != (rows,):
        raise ValueError(f"labels has shape {array.shape} for {rows} records: give one label per record")
    if array.dtype == np.bool_:
        return array
    if array.dtype.kind not in "iuf" or not (np.isin(array, (0, 1)).all() or np.isin(array, (-1, 1)).all()):
        raise ValueError("labels must be booleans, 0/1 or -1/+1: encode the positive class as 1")
    return np.asarray(array == 1)


def _readonly(array: NDArray[Whole]) -> NDArray[Whole]:
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array
