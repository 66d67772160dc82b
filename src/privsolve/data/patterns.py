"""The data as every mechanism sees it: distinct integer feature rows with their label counts."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privsolve.arrays import Int64Array, IntArray
from privsolve.checks import check_count, check_items, check_length
from privsolve.errors import IntegerRangeError

if TYPE_CHECKING:
    from privsolve.data import Schema


Whole = TypeVar("Whole", bound=np.signedinteger[Any])

BLOCK = 8192
"""Rows that are worked on at once where a table may be large."""

SCORE_LIMIT = 2**62
"""Scores and objective values stay below this, so that a sum of two never leaves int64."""


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
    same records are equal whatever order the records came in. `rows` are the features in as few bytes as hold them.
    """

    rows: IntArray
    positives: Int64Array
    negatives: Int64Array
    names: tuple[str, ...]
    scales: tuple[int, ...]
    ranges: tuple[tuple[int, int], ...] | None = None

    def __init__(
        self,
        features: ArrayLike,
        positives: ArrayLike,
        negatives: ArrayLike,
        names: Sequence[str] | None = None,
        scales: Sequence[int] | None = None,
        ranges: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        rows = _narrow(_checked_integers(features, "features", ndim=2))
        counts = [_counts(c, name, len(rows)) for c, name in ((positives, "positives"), (negatives, "negatives"))]
        dim = rows.shape[1]
        if dim == 0:
            raise ValueError("features has no columns: give at least one feature")
        rows, merged = _merge_equal_rows(rows, np.stack(counts, axis=1))
        if len(rows) == 0:
            raise ValueError("the table is empty: positives and negatives are all zero; give at least one record")
        set_field = object.__setattr__
        set_field(self, "rows", _readonly(_narrow(rows)))
        set_field(self, "positives", _readonly(merged[:, 0]))
        set_field(self, "negatives", _readonly(merged[:, 1]))
        set_field(self, "names", checked_names(names, dim))
        set_field(self, "scales", checked_scales(scales, dim))
        set_field(self, "ranges", _checked_ranges(ranges, self.names, self.rows))
        self._check_common_unit()

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
        rows = _narrow(_checked_integers(features, "features", ndim=2))
        positive = _positive_labels(labels, len(rows))
        return cls(rows, positive.astype(np.int64), (~positive).astype(np.int64), names, scales, ranges)

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

    @classmethod
    def from_ibis(cls, expr: Any, schema: Schema) -> PatternTable:
        """The table of an Ibis table (DuckDB, Spark, a warehouse): one `GROUP BY` in its engine, whose rows stay there.

        `schema.table(expr)` gives the counts of values outside the schema as well.
        """
        if not hasattr(expr, "to_pyarrow"):
            raise TypeError(f"expr must be an Ibis table, got {type(expr).__name__}: use schema.table for frames")
        return schema.table(expr).table

    def with_counts(self, positives: Int64Array, negatives: Int64Array) -> PatternTable:
        """The same rows with other counts. Where no record is left, one row that no record has stands in for all.

        A table from records is never empty. One from which records were held out may be, and is fitted like any other: its
        row has the least declared value of every feature, and its counts of 0 add nothing to a loss.
        """
        if (positives + negatives).any():
            return PatternTable(self.rows, positives, negatives, self.names, self.scales, self.ranges)
        least = [0] * self.dim if self.ranges is None else [low for low, _ in self.ranges]
        table = PatternTable([least], [1], [0], self.names, self.scales, self.ranges)
        object.__setattr__(table, "positives", table.negatives)
        return table

    @property
    def dim(self) -> int:
        """Number of features."""
        return int(self.rows.shape[1])

    @cached_property
    def features(self) -> Int64Array:
        """The rows as 64-bit integers, made when they are first asked for."""
        return _readonly(self.rows.astype(np.int64))

    def blocks(self) -> Iterator[tuple[slice, Int64Array]]:
        """The rows as 64-bit integers, some at a time: large tables need not be held in eight bytes per feature."""
        for start in range(0, len(self.rows), BLOCK):
            place = slice(start, start + BLOCK)
            yield place, self.rows[place].astype(np.int64)

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

    def _check_common_unit(self) -> None:
        """Overflow is found here, before anything is spent."""
        for name, scale, least, largest in zip(
            self.names, self.scales, self.rows.min(axis=0), self.rows.max(axis=0), strict=True
        ):
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
        return f"PatternTable({len(self.rows)} distinct rows of {self.dim} features, {self.n} records)"


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
    return _checked_integers(values, name, ndim).astype(np.int64)


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


def _narrow(array: NDArray[Any]) -> IntArray:
    """The same whole numbers in as few bytes as hold them."""
    least, largest = (int(array.min()), int(array.max())) if array.size else (0, 0)
    return array.astype(narrowest(least, largest), copy=False)


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
    if counts.astype(object).sum() >= 2**40:
        raise IntegerRangeError(f"{name} sums to 2^40 records or more, beyond the exact integer range of the solvers")
    return counts


def _merge_equal_rows(rows: IntArray, counts: Int64Array) -> tuple[IntArray, Int64Array]:
    """The distinct rows that have records, in ascending order, and the sums of their counts."""
    present = np.flatnonzero(counts.sum(axis=1) > 0)
    if not len(present):
        return rows[:0], counts[:0]
    keys = _sortable(rows if len(present) == len(rows) else rows[present])
    order = np.argsort(keys, kind="stable")
    keys, order = keys[order], present[order]
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    del keys  # large, as the rows that follow are
    merged = np.add.reduceat(counts[order], first, axis=0)
    return rows[order[first]], merged


def _sortable(rows: IntArray) -> NDArray[np.void]:
    """Rows as strings of bytes in the same order: eight bits of 0/1 rows in a byte, of others the highest byte first."""
    if rows.itemsize == 1 and rows.min() >= 0 and rows.max() <= 1:
        keys = np.ascontiguousarray(np.packbits(rows.view(np.uint8), axis=1))
    else:
        unsigned = np.dtype(f"u{rows.itemsize}")
        turned = np.ascontiguousarray(rows).view(unsigned) ^ unsigned.type(1 << (8 * rows.itemsize - 1))
        keys = turned.astype(unsigned.newbyteorder(">"))
    strings: NDArray[np.void] = keys.view(f"V{keys.itemsize * keys.shape[1]}")
    return strings[:, 0]


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
    ranges: Sequence[tuple[int, int]] | None, names: tuple[str, ...], rows: IntArray
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
    for name, (low, high), least, largest in zip(names, result, rows.min(axis=0), rows.max(axis=0), strict=True):
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
