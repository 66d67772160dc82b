"""Oracles over a box: they minimise `L(x) - <η, x - low>` up to an additive error that is stated beforehand.

Each answer is a function of the data and of its own noise alone: `prepare` may work on the data, but nothing is carried
from one noise vector to the next (theory, section 5). An answer that cannot be certified raises.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Floats
from privsolve.checks import check_positive
from privsolve.compiled import compiled
from privsolve.continuous.problem import Objective, PiecewiseLinear
from privsolve.errors import OracleNotCertified, WorkLimitReached
from privsolve.models.choices import Box

EXACT_ERROR = 2.0**-38
"""What `PiecewiseLinearOracle` states, relative to `n·G·D₁`: it covers the rounding of sums over all records."""


@dataclass(frozen=True, eq=False)
class BoxSolution:
    """A point of the box, and a proved bound on how far its objective is above the smallest one."""

    point: Floats
    gap: float
    work: dict[str, Any] = field(default_factory=dict)


class ContinuousOracle(ABC):
    """Minimises `L(x) - <eta, x - low>` over a box, up to an additive error that it states.

    Objects of another class will do if they have `minimise`, and `tolerance` or `stated_error` (`as_oracle`).
    """

    name: str = ""
    """What it is called in a guarantee; the name of its class if empty."""

    tolerance: float
    """The additive error of every answer, in the units of the total loss; the mechanism pays for it in noise."""

    def stated_error(self, box: Box, lipschitz: float, n: int) -> float:
        """The additive error for such problems, from what is public about them."""
        return self.tolerance

    def prepare(self, objective: Any, box: Box) -> Any:
        """What `minimise` gets in place of the objective: work on the data that all noise vectors share."""
        return objective

    @abstractmethod
    def minimise(self, objective: Any, box: Box, eta: Floats) -> Any:
        """An object with a `point` of the box and a `gap`: a bound on how far it is from the minimum."""

    def minimise_many(self, objective: Any, box: Box, etas: Floats) -> tuple[Floats, float]:
        """Points (rows) for noise vectors (rows), and the largest gap."""
        solutions = [self.minimise(objective, box, eta) for eta in etas]
        points = np.array([np.asarray(s.point, dtype=np.float64) for s in solutions])
        return points, float(np.max([s.gap for s in solutions]))  # of all, so that a nan is seen


class _Given(ContinuousOracle):
    """A user's object as an oracle: what it does not offer is done in the usual way."""

    def __init__(self, oracle: Any) -> None:
        self.name = str(getattr(oracle, "name", type(oracle).__name__))
        if not callable(getattr(oracle, "minimise", None)):
            raise ValueError(f"oracle must have a method minimise(objective, box, eta), got {oracle!r}")
        if not hasattr(oracle, "stated_error") and not hasattr(oracle, "tolerance"):
            raise ValueError(f"oracle {self.name!r} must state its additive error as `tolerance`")
        for offered in ("tolerance", "stated_error", "prepare", "minimise", "minimise_many"):
            if hasattr(oracle, offered):
                setattr(self, offered, getattr(oracle, offered))

    def minimise(self, objective: Any, box: Box, eta: Floats) -> Any:
        raise NotImplementedError  # the object's own stands in its place


def as_oracle(oracle: Any) -> ContinuousOracle:
    """An oracle, or an object with its methods as one; raise if it lacks what every oracle must have."""
    return oracle if isinstance(oracle, ContinuousOracle) else _Given(oracle)


@dataclass(frozen=True, eq=False)
class _Envelope:
    """Vertices of the lower convex envelopes, the slopes between them, and how far above the optimum they can be."""

    vertices: tuple[Floats, ...]
    slopes: tuple[Floats, ...]
    gap: float


class PiecewiseLinearOracle(ContinuousOracle):
    """Exact minimiser of a `PiecewiseLinear` objective, convex or not.

    A minimiser of `f(x) - ηx` is a vertex of the lower convex envelope of f: the one where the slope passes η. The
    envelope is found once, by a scan over the sorted knots, and a whole batch of noise by bisection in its slopes.
    The only error is rounding in the sums over records, and it is checked to be below what is stated.
    """

    name = "piecewise-linear"

    def stated_error(self, box: Box, lipschitz: float, n: int) -> float:
        """`2^-38·n·G·D₁`: a bound on rounding errors, stated before the data are seen."""
        return EXACT_ERROR * n * lipschitz * sum(box.widths)

    def prepare(self, objective: PiecewiseLinear, box: Box) -> _Envelope:
        """The envelope of each coordinate, with a certificate that no knot lies below it."""
        if not isinstance(objective, PiecewiseLinear):
            raise ValueError(f"objective must be PiecewiseLinear for this oracle, got {type(objective).__name__}")
        ends = [(float(x[0]), float(x[-1])) for x in objective.knots]
        if ends != list(zip(box.low, box.high, strict=True)):
            raise ValueError("objective is piecewise linear over another box than the given one")
        vertices, slopes, gap = [], [], objective.rounding
        for x, y in zip(objective.knots, objective.heights, strict=True):
            hull = _lower_hull(x, y)
            rises, runs = np.diff(y[hull]), np.diff(x[hull])
            raw = rises / runs
            slope = np.maximum.accumulate(raw)
            below = float(np.max(np.interp(x, x[hull], y[hull]) - y)) + 2.0**-50 * float(np.abs(y).max())
            # how far the integral of the slopes can be from the envelope: rounding, and what sorting them changed
            bent = 2.0**-51 * float(np.abs(rises).sum()) + float((slope - raw) @ runs)
            gap += max(below, 0.0) + 2 * bent
            vertices.append(x[hull])
            slopes.append(slope)
        return _Envelope(tuple(vertices), tuple(slopes), gap)

    def minimise(self, objective: PiecewiseLinear | _Envelope, box: Box, eta: Floats) -> BoxSolution:
        """The minimiser for one noise vector."""
        points, gap = self.minimise_many(objective, box, eta[None, :])
        return BoxSolution(points[0], gap)

    def minimise_many(self, objective: PiecewiseLinear | _Envelope, box: Box, etas: Floats) -> tuple[Floats, float]:
        """Minimisers (rows) for noise vectors (rows), and a bound on their gap."""
        hull = objective if isinstance(objective, _Envelope) else self.prepare(objective, box)
        columns = [v[np.searchsorted(s, e)] for v, s, e in zip(hull.vertices, hull.slopes, etas.T, strict=True)]
        return np.stack(columns, axis=1), hull.gap


@compiled
def _lower_hull(x: Floats, y: Floats) -> NDArray[np.int64]:
    """Indices of the vertices of the lower convex hull of points sorted by x (monotone chain)."""
    stack = np.empty(x.size, dtype=np.int64)
    top = 0
    for k in range(x.size):
        if top and x[k] == x[stack[top - 1]]:
            continue
        while top >= 2:
            i, j = stack[top - 2], stack[top - 1]
            if (y[j] - y[i]) * (x[k] - x[j]) < (y[k] - y[j]) * (x[j] - x[i]):
                break
            top -= 1
        stack[top] = k
        top += 1
    return stack[:top].copy()


@dataclass(frozen=True, eq=False)
class _Cells:
    """Boxes, a row for each: its centre, its half sides, the loss at the centre and a lower bound of it on the box."""

    objective: Objective
    rows: Floats

    @property
    def centres(self) -> Floats:
        return self.rows[:, : (self.rows.shape[1] - 2) // 2]

    @property
    def halves(self) -> Floats:
        return self.rows[:, (self.rows.shape[1] - 2) // 2 : -2]

    @property
    def values(self) -> Floats:
        return self.rows[:, -2]


class LipschitzOracle(ContinuousOracle):
    """Certified branch-and-bound for Lipschitz functions, convex or not, of up to about four variables.

    A box with centre c and half sides r holds no value below `L(c) - <η, c> - Σ_i (nG + |η_i|)·r_i`, nor below what
    the objective's own `lower_bounds` prove. Boxes are halved, those of smallest bound first, until the best value
    found is within the tolerance of the smallest bound. The first `start` boxes are evaluated once for all noise.
    The work grows like `(nG/tolerance)^(d/2)` for a loss with a rounded minimum, `^d` if it is flat.

    Args:
        tolerance: additive error in the total loss up to which an answer is certified.
        max_cells: boxes held at a time; beyond them the oracle raises and nothing is released.
        start: boxes evaluated in `prepare`.
    """

    name = "lipschitz"

    def __init__(self, tolerance: float, *, max_cells: int = 2_000_000, start: int = 4096) -> None:
        self.tolerance = check_positive("tolerance", tolerance, "; it is in the units of the total loss")
        self.max_cells = max_cells
        self.start = start

    def prepare(self, objective: Objective, box: Box) -> _Cells:
        """The first boxes, all of one size."""
        for name in ("values", "n", "lipschitz"):  # what shows later would show after it is paid for
            if getattr(objective, name, None) is None:
                raise ValueError(
                    f"objective must be an Objective for this oracle, with {name}: got {type(objective).__name__}"
                )
        sides = np.array(box.widths)
        counts = np.ones(box.dim, dtype=np.int64)
        while 2 * counts.prod() <= self.start:
            counts[int(np.argmax(sides / counts))] *= 2
        axes = [low + (np.arange(c) + 0.5) * (w / c) for low, w, c in zip(box.low, sides, counts, strict=True)]
        centres = np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)
        return _evaluated(objective, centres, np.broadcast_to(sides / counts / 2, centres.shape))

    def minimise(self, objective: Objective | _Cells, box: Box, eta: Floats) -> BoxSolution:
        """A point whose objective is certified to be within the tolerance of the minimum."""
        cells = objective if isinstance(objective, _Cells) else self.prepare(objective, box)
        total = cells.objective.n * cells.objective.lipschitz
        allowance = _allowance(cells.objective, cells.values, box, eta)
        if 2 * allowance >= self.tolerance:
            raise OracleNotCertified(
                f"tolerance={self.tolerance:g} is below the rounding error of the total loss: raise it"
            )
        best, point, evaluated, discarded = np.inf, cells.centres[0], 0, np.inf
        new, old, lower_old = cells, cells.rows[:0], np.empty(0)
        while True:
            along = (new.centres - box.corner) @ eta
            tilted = new.values - along
            k = int(np.argmin(tilted))
            if tilted[k] < best:
                best, point = float(tilted[k]), new.centres[k]
            evaluated += len(tilted)
            loss = np.maximum(new.rows[:, -1], new.values - total * new.halves.sum(axis=1))
            rows = np.concatenate([old, new.rows])
            lower = np.concatenate([lower_old, loss - along - new.halves @ np.abs(eta)])
            gap = best - min(float(lower.min()), discarded, best) + 2 * allowance
            if gap <= self.tolerance:
                return BoxSolution(point, gap, {"evaluations": evaluated})
            kept = lower < best - self.tolerance + 2 * allowance
            discarded = min(discarded, float(lower[~kept].min(initial=np.inf)))
            rows, lower = rows[kept], lower[kept]
            if len(lower) > self.max_cells:
                raise WorkLimitReached(
                    f"branch-and-bound left a gap of {gap:.3g} with {len(lower)} boxes, more than its tolerance "
                    f"{self.tolerance:g}: nothing is released; raise tolerance or max_cells"
                )
            # the most promising half is split; the fixed order makes the answer a function of data and noise
            order = np.argsort(lower, kind="stable")
            split = max(64, len(order) // 2)
            new = _halved(_Cells(cells.objective, rows[order[:split]]))
            old, lower_old = rows[order[split:]], lower[order[split:]]


def _evaluated(objective: Objective, centres: Floats, halves: Floats) -> _Cells:
    values = np.asarray(objective.values(centres), dtype=np.float64)
    if values.shape != (len(centres),) or not np.all(np.isfinite(values)):
        raise ValueError("objective.values must return one finite number per point")
    bounds = np.full(len(values), -np.inf)
    if getattr(objective, "lower_bounds", None) is not None:
        assert objective.lower_bounds is not None
        bounds = np.asarray(objective.lower_bounds(centres - halves, centres + halves), dtype=np.float64)
    return _Cells(objective, np.column_stack([centres, halves, values, bounds]))


def _halved(cells: _Cells) -> _Cells:
    """Both halves of every box, cut across its longest side."""
    rows = np.arange(len(cells.values))
    longest = np.argmax(cells.halves, axis=1)
    halves = cells.halves.copy()
    halves[rows, longest] /= 2
    step = np.zeros_like(halves)
    step[rows, longest] = halves[rows, longest]
    return _evaluated(
        cells.objective, np.vstack([cells.centres - step, cells.centres + step]), np.vstack([halves, halves])
    )


def _allowance(objective: Objective, values: Floats, box: Box, eta: Floats) -> float:
    """How far a computed objective or bound can be from the exact one."""
    steepest = objective.n * objective.lipschitz + np.abs(eta)
    relative = float(getattr(objective, "relative_error", Objective.relative_error))
    return relative * (float(np.abs(values).max()) + float(steepest @ np.array(box.widths)))
