"""What OPSamp minimises: total losses over a box, given by functions or as sums of piecewise-linear losses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privsolve.arrays import Floats
from privsolve.checks import check_count, check_positive, check_share
from privsolve.models.choices import Box
from privsolve.privacy.adjacency import Adjacency


def as_box(box: Box | Sequence[Sequence[float]]) -> Box:
    """A Box, or one from `[(low, high), ...]`, a pair per coordinate."""
    if isinstance(box, Box):
        return box
    try:
        low, high = zip(*((float(a), float(b)) for a, b in box), strict=True)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"box must be a list of (low, high) pairs, one per coordinate, got {box!r}") from None
    return Box(low, high)


@dataclass(frozen=True)
class Objective:
    """A total loss `L(D, ·)` given by functions: the sum of `n` losses, each `lipschitz` in ℓ1.

    `values` maps points (rows) to total losses.
    `lower_bounds(low, high)` may bound the total loss from below on boxes (rows): it spares branch-and-bound work where
    it beats the Lipschitz bound. Computed values and bounds are within `relative_error` of exact ones, relative to the sum
    of the absolute losses: the default is what numpy's sums along a contiguous
    axis keep, for losses of one sign. To be sent to other processes the functions must be picklable.
    """

    values: Callable[[Floats], Floats]
    n: int
    lipschitz: float
    lower_bounds: Callable[[Floats, Floats], Floats] | None = None
    relative_error: float = 2.0**-44


@dataclass(frozen=True, eq=False)
class PiecewiseLinear:
    """`Σ_j f_j(x_j)` with each `f_j` linear between sorted knots, the first and last of which are the ends of the box.

    Heights are relative to `offset`, the total loss at the lower corner of the box. `n` and `lipschitz` describe the
    losses of which it is the sum. `rounding` bounds the floating point error of any difference of two heights.
    """

    knots: tuple[Floats, ...]
    heights: tuple[Floats, ...]
    n: int
    lipschitz: float
    offset: float = 0.0
    rounding: float = 0.0

    def __post_init__(self) -> None:
        if len(self.knots) != len(self.heights) or not self.knots:
            raise ValueError("knots must have one array per coordinate, and heights as many")
        for x, y in zip(self.knots, self.heights, strict=True):
            if x.shape != y.shape or x.ndim != 1 or x.size < 2 or np.any(np.diff(x) < 0):
                raise ValueError("knots must be sorted, at least two per coordinate, with one height each")

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.knots)

    def values(self, points: Floats) -> Floats:
        """Total losses of points (rows)."""
        parts = [np.interp(points[:, j], self.knots[j], self.heights[j]) for j in range(self.dim)]
        return np.asarray(self.offset + sum(parts), dtype=np.float64)

    @classmethod
    def of_kinks(
        cls,
        box: Box | Sequence[Sequence[float]],
        coordinates: Iterable[tuple[Sequence[Floats], Sequence[Floats | float], float, float]],
        n: int,
        lipschitz: float,
    ) -> PiecewiseLinear:
        """The sum of losses given by their kinks, sorted here.

        Each coordinate is `(points, changes, slope, height)`: `changes[k]` is added to the slope at each of
        `points[k]`, `slope` is the total slope on the far left and `height` the total loss at the box's lower end.
        """
        the_box, given = as_box(box), list(coordinates)
        parts = [
            _sum_of_kinks(low, high, points, changes, slope)
            for low, high, (points, changes, slope, _) in zip(the_box.low, the_box.high, given, strict=True)
        ]
        knots, heights, errors = zip(*parts, strict=True)
        return cls(knots, heights, n, lipschitz, fsum(height for *_, height in given), fsum(errors))


def _sum_of_kinks(
    low: float, high: float, points: Sequence[Floats], changes: Sequence[Floats | float], slope: float
) -> tuple[Floats, Floats, float]:
    """Knots, heights and a bound on the rounding error of the differences of heights."""
    x = np.concatenate([np.asarray(p, dtype=np.float64) for p in points])
    c = np.concatenate(
        [np.broadcast_to(np.asarray(v, dtype=np.float64), p.shape) for p, v in zip(points, changes, strict=True)]
    )
    x = np.clip(x, low, high)  # a kink outside the box acts at its end
    order = np.argsort(x, kind="stable")
    knots = np.concatenate([[low], x[order], [high]])
    steps = np.concatenate([[slope], c[order]])
    slopes, slope_error = _running_sum(steps)
    if np.all(steps == np.rint(steps)) and float(np.abs(steps).sum()) < 2.0**53:
        slope_error = 0.0  # sums of integers are exact
    heights, height_error = _running_sum(np.concatenate([[0.0], slopes * np.diff(knots)]))
    # each product is rounded once more, and so is the distance in it
    products = 2.0**-51 * float(np.abs(slopes).max()) * (high - low)
    return knots, heights, 2 * (height_error + products + slope_error * (high - low))


_BLOCK = 64


def _running_sum(terms: Floats) -> tuple[Floats, float]:
    """Cumulative sums in blocks of blocks, and a bound on their error: about `64·levels·2^-52·Σ|terms|`."""
    padded = np.zeros(_BLOCK * -(-terms.size // _BLOCK))
    padded[: terms.size] = terms
    rows = np.cumsum(padded.reshape(-1, _BLOCK), axis=1)
    error = 2.0**-52 * (_BLOCK + 1) * float(np.abs(terms).sum())
    if len(rows) > 1:
        before, more = _running_sum(rows[:-1, -1])
        rows[1:] += before[:, None]
        error += more
    return rows.ravel()[: terms.size], error


@dataclass(frozen=True, eq=False, init=False)
class BoxProblem:
    """Minimise a total loss `L(D, ·)` over a public box of real numbers.

    Args:
        objective: the total loss, in the form that the oracle takes: `PiecewiseLinear`, `Objective`, ...
        box: public bounds, `[(low, high), ...]`, one pair per coordinate.
        lipschitz: G; the loss of every record that could ever occur changes by at most `G·‖x-y‖₁` between x and y. That
            of the objective if None.
        n: number of records. The objective's if None, for `adjacency="replace"`, where it is public. Under
            `adjacency="add-remove"` it is private, and a public stand-in must be given: it sets the noise rate and the
            accuracy, not the privacy.
    """

    objective: Any
    box: Box
    lipschitz: float
    n: int | None

    def __init__(
        self,
        objective: Any,
        box: Box | Sequence[Sequence[float]],
        lipschitz: float | None = None,
        n: int | None = None,
    ) -> None:
        the_box = as_box(box)
        if (dim := getattr(objective, "dim", the_box.dim)) != the_box.dim:
            raise ValueError(f"box has {the_box.dim} coordinates but the objective has {dim}")
        if n is None and getattr(objective, "n", None) is None:
            raise ValueError("n must be given: the objective does not say how many records it is the loss of")
        records = None if n is None else check_count("n", n)
        vars(self).update(objective=objective, box=the_box, lipschitz=_lipschitz(objective, lipschitz), n=records)

    def public_n(self, adjacency: Adjacency | str) -> int:
        """The number of records that may be used and published under this adjacency."""
        records = getattr(self.objective, "n", None)
        if Adjacency.of(adjacency) is Adjacency.ADD_REMOVE:
            if self.n is None:
                raise ValueError("n must be given for adjacency='add-remove', where the number of records is private")
            return self.n
        if self.n is not None and records is not None and records != self.n:
            raise ValueError(
                f"n must be the objective's number of records, {records}, for adjacency='replace', got {self.n}"
            )
        return check_count("n", records if self.n is None else self.n)


def _lipschitz(objective: Any, given: float | None) -> float:
    """What is given, if it is at least what the objective states; or that."""
    stated = getattr(objective, "lipschitz", None)
    if given is None and stated is None:
        raise ValueError("lipschitz must be given: the objective does not say what it is")
    lipschitz = check_positive("lipschitz", stated if given is None else given)
    if stated is not None and stated > lipschitz:
        raise ValueError(f"lipschitz must be at least {stated:g}, which is that of the objective, got {lipschitz:g}")
    return lipschitz


def absolute_deviation(data: ArrayLike, box: Box | Sequence[Sequence[float]]) -> PiecewiseLinear:
    """`Σ_i ‖x - a_i‖₁`: convex, 1-Lipschitz, minimised by the coordinatewise median. Rows of `data` are records."""
    return _two_slopes(data, box, 1.0, 1.0)


def pinball(data: ArrayLike, box: Box | Sequence[Sequence[float]], level: float) -> PiecewiseLinear:
    """`Σ_i level·(a_i - x)⁺ + (1 - level)·(x - a_i)⁺` per coordinate: convex, minimised by the quantile at `level`."""
    level = check_share("level", level, "; 0.5 is the median")
    return _two_slopes(data, box, level, 1 - level)


def _two_slopes(data: ArrayLike, box: Box | Sequence[Sequence[float]], below: float, above: float) -> PiecewiseLinear:
    """`Σ_i below·(a_i - x)⁺ + above·(x - a_i)⁺` per coordinate."""
    the_box, records = _records(data, box)
    n = len(records)
    coordinates = []
    for a, low in zip(records.T, the_box.low, strict=True):
        at_low = below * np.maximum(a - low, 0.0) + above * np.maximum(low - a, 0.0)
        coordinates.append(([a], [below + above], -below * n, float(at_low.sum())))
    return PiecewiseLinear.of_kinks(the_box, coordinates, n, max(below, above))


def truncated_deviation(data: ArrayLike, box: Box | Sequence[Sequence[float]], radius: float) -> PiecewiseLinear:
    """`Σ_i Σ_j min(|x_j - a_ij|, radius)`: not convex, 1-Lipschitz; records further away than `radius` do not pull."""
    radius = check_positive("radius", radius)
    the_box, records = _records(data, box)
    coordinates = [
        ([a - radius, a, a + radius], [-1.0, 2.0, -1.0], 0.0, float(np.minimum(np.abs(a - low), radius).sum()))
        for a, low in zip(records.T, the_box.low, strict=True)
    ]
    return PiecewiseLinear.of_kinks(the_box, coordinates, len(records), 1.0)


def posted_price(
    valuations: ArrayLike, box: Box | Sequence[Sequence[float]], ramp: float, *, highest: float
) -> PiecewiseLinear:
    """Minus the revenue of one price for all, smoothed; `box` is the range of prices, `highest` bounds valuations.

    The revenue from a buyer of valuation v, `p·1[p <= v]`, is discontinuous at `p = v`. Instead it is taken to be p up
    to `v - ramp` and to fall linearly to 0 at v. That is never above the true revenue, and equal to it for buyers whose
    valuation exceeds the price by `ramp`. Valuations are clipped to `[ramp, highest]`, which makes the loss
    `max(1, highest/ramp - 1)`-Lipschitz; `highest` must be public.
    """
    ramp = check_positive("ramp", ramp)
    if not (highest := check_positive("highest", highest)) > ramp:
        raise ValueError(f"highest must be above ramp, got {highest!r}")
    the_box, records = _records(valuations, box)
    v, low = np.clip(records[:, 0], ramp, highest), the_box.low[0]
    if the_box.dim != 1 or low < 0:
        raise ValueError("box must be one interval of prices that are not negative")
    at_low = np.minimum(low, np.clip((v - low) * (v / ramp - 1), 0.0, None))
    kinks = ([v - ramp, v], [v / ramp, -(v / ramp - 1)], -float(len(v)), -float(at_low.sum()))
    return PiecewiseLinear.of_kinks(the_box, [kinks], len(v), max(1.0, highest / ramp - 1))


def threshold_cost(
    scores: ArrayLike,
    positive: ArrayLike,
    box: Box | Sequence[Sequence[float]],
    ramp: float,
    *,
    miss: float = 1.0,
    false_alarm: float = 1.0,
) -> PiecewiseLinear:
    """Cost of deciding "yes" for scores above a threshold x, smoothed.

    A positive record below the threshold costs `miss` and a negative one above it `false_alarm`. Both steps are
    replaced by ramps of width `ramp` centred on the record's score, so the loss is `max(miss, false_alarm)/ramp`-
    Lipschitz, and differs from the true cost only for scores within `ramp/2` of the threshold.
    """
    ramp, miss, false_alarm = (
        check_positive(name, value) for name, value in (("ramp", ramp), ("miss", miss), ("false_alarm", false_alarm))
    )
    the_box, records = _records(scores, box)
    a, low, is_positive = records[:, 0], the_box.low[0], np.asarray(positive)
    if the_box.dim != 1:
        raise ValueError("box must be one interval of thresholds")
    if is_positive.shape != a.shape or not np.all((is_positive == 0) | (is_positive == 1)):
        raise ValueError("positive must hold one 0/1 value per score")
    rise = np.where(is_positive, miss, -false_alarm) / ramp
    share = np.clip((low - a) / ramp + 0.5, 0.0, 1.0)  # of the ramp that lies below the box
    at_low = np.where(is_positive, miss * share, false_alarm * (1 - share))
    kinks = ([a - ramp / 2, a + ramp / 2], [rise, -rise], 0.0, float(at_low.sum()))
    return PiecewiseLinear.of_kinks(the_box, [kinks], len(a), max(miss, false_alarm) / ramp)


def _records(data: ArrayLike, box: Box | Sequence[Sequence[float]]) -> tuple[Box, Floats]:
    the_box = as_box(box)
    try:
        records = np.asarray(data, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"data must hold records of {the_box.dim} numbers each ({error})") from None
    records = records[:, None] if records.ndim == 1 else records
    if records.ndim != 2 or records.shape[1] != the_box.dim or not len(records):
        raise ValueError(f"data must hold records of {the_box.dim} numbers each, one for every coordinate of the box")
    if not np.all(np.isfinite(records)):
        raise ValueError("data must be finite: decide by a public rule what a missing value counts as")
    return the_box, records
