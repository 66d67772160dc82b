"""The points of one support: bound, exact value and trace by one fold in two semirings (theory, section 4).

What cell c costs at score τ beyond its least is one vector `V_c[τ]` per cell. Writing the operations of a semiring as ⊗
and ⊕,

    fold(V, j, v):   V'_c[τ] = V_c[τ] ⊗ V_{c ∪ j}[τ + v]        fixes column j to v: half as many vectors
    value(V)       = ⊕_v h_j(v) ⊗ value(fold(V, j, v));  with no column left: ⊕_t h(t) ⊗ V_∅[t]
    bound(V):        G_i = V_{i};  for each cell c with |c| >= 2, i = first(c):
                         G_i[τ] ⊗= best over δ in (|c| - 1)·[least point, largest point] of V_c[τ + δ]
                     ⊕_t h(t) ⊗ V_∅[t] ⊗ (⊗_i ⊕_v h_i(v) ⊗ G_i[t + v])

In `Costs` (min, +) on integers these are the best points; in `Weights` (+, ×) on `exp(-κ·cost)` the total weight.

*The bound holds*: the score of cell c is `t + v_i` plus `|c| - 1` further points. *It is exact* where no row has two of
the free columns, for then every vector with |c| >= 2 is the unit. *Folding tightens it*: after fixing column j to v,
cell `c ∪ j` has joined cell c, and the scores it may take are among those it could take before, whether it was charged
to j or to first(c) (the first of c either way); a best of products is no better than the product of the bests. So the
values after 0, 1, 2, ... folds form the chain U1 >= U2 >= ... >= exact.
"""

# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.compiled import helper
from privsolve.engines.semirings import better, element, plus, times
from privsolve.engines.subsets import ones
from privsolve.engines.supports.instance import CardInstance

LARGEST_TABLE = 2**23
BLOCK = 6
"""Points summed in one pass over a vector; the lists are filled up with points of no weight."""


class Grid(NamedTuple):
    """The public shape of the problem: points (filled up to a multiple of BLOCK), their extremes and the intercepts.

    Scores are positions on a grid that starts at the least score of the largest support. `intercept_weight[opened]` is
    `h(t)` for each lane. `widest` is the number of columns whose points are opened as lanes.
    """

    points: Int64Array
    n_points: int
    low: int
    high: int
    least_intercept: int
    n_intercepts: int
    most: int
    widest: int
    intercept_weight: NDArray[Any]


class Fold(NamedTuple):
    """Scratch for one support. Depth d stands after d folds and has `2^(size - d)` cells.

    `base[c]` is `V_c` at the depth where an evaluation starts, over all scores that any support can reach, of which
    cell c uses the middle part. The next one or two columns are folded by all their points at once: `wide` holds the
    vectors of these *lanes* interleaved, score by score, so that every later step is one long vector operation, in
    which shifting the score by v shifts by `v * lanes`. `live` marks cells that are not the unit everywhere. `order`
    and `weight[i]` (`h` of the i-th column) are in folding order. `gain`, `window`, `total` (values by depth, intercept
    and lane) are scratch; `terms` is the answer.
    """

    base: NDArray[Any]
    narrow: NDArray[Any]
    wide: NDArray[Any]
    live: NDArray[np.bool_]
    order: Int64Array
    weight: NDArray[Any]
    gain: NDArray[Any]
    window: NDArray[Any]
    total: NDArray[Any]
    terms: NDArray[Any]
    choice: Int64Array
    conflict: Int64Array
    heavy: Int64Array
    charge: Int64Array


def new_fold(inst: CardInstance, intercept_weight: NDArray[Any]) -> tuple[Grid, Fold]:
    """Shape and empty scratch in the number type of `intercept_weight`."""
    kind, most, starts, n_points = intercept_weight.dtype, inst.max_features, len(inst.intercepts), len(inst.points)
    points = np.resize(inst.points, -(-n_points // BLOCK) * BLOCK)
    low, high = min(int(points.min()), 0), max(int(points.max()), 0)
    width = starts + most * (high - low)
    widest = 2 if (width * n_points**2) << most <= LARGEST_TABLE else 1
    lanes = n_points**widest
    weights = np.stack([np.resize(np.repeat(intercept_weight, n_points**k), starts * lanes) for k in range(widest + 1)])
    fold = Fold(
        base=np.zeros((1 << most, width), dtype=kind),
        narrow=np.zeros((1 << max(most - 1, 0), width * n_points), dtype=kind),
        wide=np.zeros((1 << most, width * lanes), dtype=kind),
        live=np.zeros(2 << most, dtype=np.bool_),
        order=np.zeros(most, dtype=np.int64),
        weight=np.zeros((most, len(points)), dtype=kind),
        gain=np.zeros((most, width * lanes), dtype=kind),
        window=np.zeros((2, width * lanes), dtype=kind),
        total=np.zeros((most + 1, starts * lanes), dtype=kind),
        terms=np.zeros(max(starts, n_points), dtype=kind),
        choice=np.zeros(most + 1, dtype=np.int64),
        conflict=np.zeros(most, dtype=np.int64),
        heavy=np.zeros(most, dtype=np.int64),
        charge=np.zeros((most, starts + high - low + 1), dtype=np.int64),
    )
    return Grid(points, n_points, low, high, int(inst.intercepts[0]), starts, most, widest, weights), fold


def fill_up(weight: NDArray[Any], zero: float) -> NDArray[Any]:
    """Weights of points per column, with entries of no weight for the points that fill up the last block."""
    short = -weight.shape[1] % BLOCK
    return np.ascontiguousarray(np.pad(weight, ((0, 0), (0, short)), constant_values=weight.dtype.type(zero)))


@helper
def folding_order(cells, size, fold):
    """Order the columns of a support for folding; returns how many folds make the bound exact.

    The largest set of columns of which no row has two is left to the closed form, and of the others the column in the
    heaviest cells of two or more comes first. `fold.order[i]` is the position (bit of the cells) of the i-th column to fold.
    """
    order, conflict, heavy = fold.order, fold.conflict, fold.heavy
    fill(conflict, 0)
    fill(heavy, 0)
    for c in range(1 << size):
        if cells[c] != 0 and c & (c - 1) != 0:
            for i in range(size):
                if c >> i & 1:
                    conflict[i] |= c & ~(1 << i)
                    heavy[i] += abs(cells[c])
    tail, most, least = 0, 0, 0
    for subset in range(1 << size):
        count, load = 0, 0
        for i in range(size):
            if subset >> i & 1:
                count += 1 if conflict[i] & subset == 0 else -2 * size
                load += heavy[i]
        if count > most or (count == most and load < least):
            tail, most, least = subset, count, load
    for i in range(size):
        order[i] = i
    for i in range(1, size):  # insertion sort by (not in the tail, weight), heaviest first
        for k in range(i, 0, -1):
            a, b = order[k - 1], order[k]
            a_tail, b_tail = tail >> a & 1, tail >> b & 1
            if a_tail > b_tail or (a_tail == b_tail and heavy[a] < heavy[b]):
                order[k - 1], order[k] = b, a
    return size - most


@helper
def fill(into, value):
    """`into[:] = value`; a plain loop compiles many times faster than a slice assignment."""
    for x in range(len(into)):
        into[x] = value


@helper
def copy(into, source):
    """`into[:] = source[: len(into)]`."""
    for x in range(len(into)):
        into[x] = source[x]


@helper
def row(size, depth):
    """First row of a depth in `live`; `wide` starts at depth 1."""
    return (2 << size) - (2 << (size - depth))


@helper
def load(ring, grid, fold, size, cells, scale, columns, column_weight):
    """Lay out the cells of a support in folding order: the column folded first is the highest bit."""
    first_score = grid.least_intercept + grid.most * grid.low
    for i in range(size):
        copy(fold.weight[i], column_weight[columns[fold.order[i]]])
    for c in range(1 << size):
        source = 0
        for i in range(size):
            if c >> (size - 1 - i) & 1:
                source |= 1 << fold.order[i]
        d = cells[source]
        fold.live[c] = d != 0
        lay_cell(ring, scale, d, first_score, fold.base[c])
    for depth in range(size):
        here, there, half = row(size, depth), row(size, depth + 1), 1 << (size - depth - 1)
        for c in range(half):
            fold.live[there + c] = fold.live[here + c] or fold.live[here + half + c]


@helper
def lay_cell(ring, scale, cell, first_score, into):
    """The vector of one cell: what it costs beyond its least at every score from `first_score` on."""
    below = min(max(1 - first_score, 0), len(into))
    fill(into[:below], element(ring, scale, max(-cell, 0)))
    fill(into[below:], element(ring, scale, max(cell, 0)))


@helper
def sketch(ring, grid, fold, size, cells, scale, columns, column_weight):
    """The bound with no fold: equal to `load`, then `evaluate(..., 0, 0)`, at a fraction of the work.

    From the cells alone: a best over scores of a step is a step, so charges are integers.
    """
    reach, first_score = grid.high - grid.low, grid.least_intercept + grid.low
    n = grid.n_intercepts + reach
    charge = fold.charge  # of each column by score, as differences
    for i in range(size):
        fill(charge[i], 0)
    for c in range(1, 1 << size):
        d = cells[c]
        if d == 0:
            continue
        others, owner = -1, 0
        for i in range(size):
            if c >> fold.order[i] & 1:
                others, owner = others + 1, i
        if d > 0:  # costs wherever all scores in the window are positive: score + others·least point >= 1
            charge[owner, min(max(1 - others * grid.points[0] - first_score, 0), n)] += d
        else:  # costs up to where all scores in the window are at most 0
            charge[owner, 0] -= d
            charge[owner, min(max(1 - others * grid.points[grid.n_points - 1] - first_score, 0), n)] += d
    total, gain = fold.total[0], fold.gain[0]
    for t in range(grid.n_intercepts):
        cost = max(cells[0], 0) if grid.least_intercept + t > 0 else max(-cells[0], 0)
        total[t] = times(ring, grid.intercept_weight[0, t], element(ring, scale, cost))
    for i in range(size):
        cost, weight = 0, column_weight[columns[fold.order[i]]]
        for x in range(n):
            cost += charge[i, x]
            gain[x] = element(ring, scale, cost)
        for t in range(grid.n_intercepts):
            value = ring.zero
            for p in range(grid.n_points):
                value = plus(ring, value, times(ring, weight[p], gain[t + grid.points[p] - grid.low]))
            total[t] = times(ring, total[t], value)
    return add_up(ring, total[: grid.n_intercepts])


@helper
def used(grid, c):
    """The range of scores that cell c can take, as positions on the grid."""
    count = ones(c)
    start = (count - grid.most) * grid.low
    return start, start + grid.n_intercepts + count * (grid.high - grid.low)


@helper
def multiply(ring, into, a, b):
    """`into = a ⊗ b`, entry by entry."""
    for x in range(len(into)):
        into[x] = times(ring, a[x], b[x])


@helper
def fix_column(ring, grid, fold, size, depth, v):
    """Fix the next column to `v` in `base`: from `depth` to `depth + 1`."""
    half = 1 << (size - depth - 1)
    for c in range(half):
        start, stop = used(grid, c)
        without, having = fold.base[c, start:stop], fold.base[half + c, start + v : stop + v]
        multiply(ring, without, without, having)


@helper
def _open_lanes(ring, grid, live, source, lanes, target):
    """Fold the next column by each of its points: each of the `lanes` of `source` becomes a lane per point."""
    for c in range(len(live)):
        if live[c]:
            start, stop = used(grid, c)
            into = target[c, start * lanes * grid.n_points : stop * lanes * grid.n_points]
            without = source[c, start * lanes : stop * lanes]
            for p in range(grid.n_points):
                shift = grid.points[p] * lanes
                having = source[len(live) + c, start * lanes + shift : stop * lanes + shift]
                for x in range(len(without)):
                    into[x * grid.n_points + p] = times(ring, without[x], having[x])
        else:
            fill(target[c], ring.unit)


@helper
def _fold_lanes(ring, grid, live, source, lanes, v, target):
    """Fix the next column to `v` in all lanes. Cells that are not live hold the unit already."""
    for c in range(len(live)):
        if live[c]:
            start, stop = used(grid, c)
            into, without = target[c, start * lanes : stop * lanes], source[c, start * lanes : stop * lanes]
            multiply(ring, into, without, source[len(live) + c, (start + v) * lanes : (stop + v) * lanes])


@helper
def _bound(ring, grid, fold, size, live, value, lanes, intercept, total):
    """The bound of the module's head by intercept and lane, written into `total`.

    `value[c]` are the vectors of the free columns' cells and `live` marks those that matter; bit i of the cells is free
    column number i from the end of the folding order.
    """
    points, free = grid.points, ones(len(live) - 1)
    start = (1 - grid.most) * grid.low * lanes
    n = (grid.n_intercepts + grid.high - grid.low) * lanes
    for i in range(free):
        copy(fold.gain[i, :n], value[1 << i, start:])
    for c in range(3, len(live)):
        if live[c] and c & (c - 1) != 0:
            others, first = ones(c) - 1, 0
            while c >> first & 1 == 0:
                first += 1
            source = value[c, start + others * points[0] * lanes :]
            best = _best_in_window(ring, fold, source, n, 1 + others * (points[grid.n_points - 1] - points[0]), lanes)
            multiply(ring, fold.gain[first, :n], fold.gain[first, :n], best)
    start = -grid.most * grid.low * lanes
    multiply(ring, total, intercept, value[0, start : start + len(total)])
    for i in range(free):
        _sum_points(ring, grid, fold.gain[i], fold.weight[size - 1 - i], lanes, fold.window[0], total)


@helper
def _best_in_window(ring, fold, source, n, width, lanes):
    """The best of every `width` neighbouring scores of `source`, for `n` entries, by doubling."""
    done, spare, length = 1, 0, n + (width - 1) * lanes
    old = source
    while done < width:
        step = min(done, width - done)
        length -= step * lanes
        new, ahead = fold.window[spare], old[step * lanes :]
        for x in range(length):
            new[x] = better(ring, old[x], ahead[x])
        old = new
        done += step
        spare = 1 - spare
    return old


@helper
def _sum_points(ring, grid, gain, weight, lanes, scratch, total):
    """`total[t] ⊗= ⊕_v h(v) ⊗ G[t + v]`, a block of points in one pass."""
    acc = scratch[: len(total)]
    fill(acc, ring.zero)
    for q in range(0, len(weight), BLOCK):
        u, v, w, x, y, z = weight[q], weight[q + 1], weight[q + 2], weight[q + 3], weight[q + 4], weight[q + 5]
        a, b = gain[(grid.points[q] - grid.low) * lanes :], gain[(grid.points[q + 1] - grid.low) * lanes :]
        c, d = gain[(grid.points[q + 2] - grid.low) * lanes :], gain[(grid.points[q + 3] - grid.low) * lanes :]
        e, f = gain[(grid.points[q + 4] - grid.low) * lanes :], gain[(grid.points[q + 5] - grid.low) * lanes :]
        for i in range(len(acc)):
            one = plus(ring, plus(ring, times(ring, u, a[i]), times(ring, v, b[i])), times(ring, w, c[i]))
            two = plus(ring, plus(ring, times(ring, x, d[i]), times(ring, y, e[i])), times(ring, z, f[i]))
            acc[i] = plus(ring, acc[i], plus(ring, one, two))
    multiply(ring, total, total, acc)


@helper
def evaluate(ring, grid, fold, size, start, folds):
    """The value of `base`, which is at depth `start`, bounded after `folds` folds in all: exact if no more are needed.

    Leaves the terms of the value in `fold.terms`: by the point of the next column, or by intercept if `folds == start`.
    """
    terms, n_points, opened = fold.terms, grid.n_points, min(grid.widest, folds - start)
    first = start + opened  # depth of the lanes
    lanes = n_points**opened
    n, intercept = grid.n_intercepts * lanes, grid.intercept_weight[opened]
    source, depth = fold.base, start
    while depth < first:
        target = fold.wide[row(size, depth + 1) - (1 << size) :] if depth == first - 1 else fold.narrow
        live = fold.live[row(size, depth + 1) :][: 1 << (size - depth - 1)]
        _open_lanes(ring, grid, live, source, n_points ** (depth - start), target)
        source = target
        depth += 1
    for deeper in range(first + 1, folds + 1):
        for c in range(1 << (size - deeper)):
            if not fold.live[row(size, deeper) + c]:
                fill(fold.wide[row(size, deeper) - (1 << size) + c], ring.unit)
    fold.choice[depth] = 0
    while True:
        if depth == folds:
            value = fold.wide[row(size, depth) - (1 << size) :] if depth > start else fold.base
            live = fold.live[row(size, depth) :][: 1 << (size - depth)]
            _bound(ring, grid, fold, size, live, value, lanes, intercept, fold.total[depth, :n])
        elif fold.choice[depth] < n_points:
            source = fold.wide[row(size, depth) - (1 << size) :]
            target = fold.wide[row(size, depth + 1) - (1 << size) :]
            live = fold.live[row(size, depth + 1) :][: 1 << (size - depth - 1)]
            if fold.choice[depth] == 0:
                fill(fold.total[depth, :n], ring.zero)
            _fold_lanes(ring, grid, live, source, lanes, grid.points[fold.choice[depth]], target)
            depth += 1
            fold.choice[depth] = 0
            continue
        if depth == first:
            break
        depth -= 1
        total, term, weight = fold.total[depth], fold.total[depth + 1], fold.weight[depth, fold.choice[depth]]
        for x in range(n):
            total[x] = plus(ring, total[x], times(ring, weight, term[x]))
        fold.choice[depth] += 1
    if opened == 0:
        copy(terms[:n], fold.total[start])
        return add_up(ring, terms[:n])
    fill(terms[:n_points], ring.zero)
    for x in range(n):
        lane = x % lanes
        term, p = fold.total[first, x], lane
        if opened == 2:
            p = lane // n_points
            term = times(ring, fold.weight[start + 1, lane % n_points], term)
        terms[p] = plus(ring, terms[p], term)
    multiply(ring, terms[:n_points], terms[:n_points], fold.weight[start])
    return add_up(ring, terms[:n_points])


@helper
def add_up(ring, terms):
    """⊕ of all terms."""
    value = ring.zero
    for x in range(len(terms)):
        value = plus(ring, value, terms[x])
    return value
