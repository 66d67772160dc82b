"""A stronger bound for OPDisc's problem over 59 one-hot columns: every row gets a share of every column's cost.

    python benchmarks/lagrange.py [--radius 59] [--iterations 9000]

The objective is `Σ_r cost_r(Σ_{j in r} w_j) + Σ_j h_j(w_j) + ψ(‖w‖²)` over a ball of integers, with one row per distinct
record and h, ψ the noise. For any numbers `λ_{r,j}(v)` it is at least

    Σ_r min_v [cost_r(Σ v_j) - Σ_j λ_{r,j}(v_j)]  +  min_w [Σ_j (h_j + Σ_r λ_{r,j})(w_j) + ψ(‖w‖²)],

because a sum of minima is at most the minimum of the sum, and the λ cancel where all rows and the ball agree. Each row is a
dynamic programme over its columns and the sum so far, the ball one over the columns and the norm so far; all numbers are
integers (units of 2^-20 mistakes), so the bound is exact whatever the λ are. They are improved by subgradients: where a row's
best value of a column differs from the ball's, the share of the ball's value grows and that of the row's shrinks. The ball's
minimiser, improved one coordinate at a time, is a good vector. Nothing here certifies an optimum: it says how far off the
best vector can be.
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import numpy as np
from numba import njit

import privsolve as ps
from opdisc import published_noise
from privsolve.problems.perturbation import UNIT

PATIENCE, SHRINK, FIRST_STEP = 100, 0.85, 0.7
"""After so many iterations without a better bound the step shrinks by a factor, and the best λ are taken up again."""

FAR = np.iinfo(np.int64).max // 4


class Rows(NamedTuple):
    """The columns of every row and what it costs if the sum is not positive, or is, beyond what it costs either way."""

    columns: np.ndarray
    not_positive: np.ndarray
    positive: np.ndarray


class Noise(NamedTuple):
    """`h_j(v)` for v in -reach..reach, and `ψ` by squared norm."""

    coordinate: np.ndarray
    norm: np.ndarray


def lay_out(problem: ps.Problem, perturbation: ps.Perturbation) -> tuple[Rows, Noise, int]:
    """Rows that can cost something, the noise, and what is lost whatever is chosen; all in units."""
    table, radius_sq = problem.table, problem.domain.radius_sq_bound
    sure = np.minimum(table.positives, table.negatives)
    open_rows = table.positives != table.negatives
    columns = np.array([np.flatnonzero(row) for row in table.features[open_rows]])
    rows = Rows(columns, ((table.positives - sure)[open_rows]) * UNIT, ((table.negatives - sure)[open_rows]) * UNIT)
    norm = np.asarray(perturbation.of_norms(np.arange(radius_sq + 1)))
    return rows, Noise(np.array(perturbation.coordinate), norm), int(sure.sum()) * UNIT


@njit(cache=True, nogil=True)
def gather(noise, rows, shares):
    """`h_j + Σ_r λ_{r,j}`."""
    total = noise.coordinate.copy()
    for r in range(len(rows.columns)):
        for i in range(rows.columns.shape[1]):
            total[rows.columns[r, i]] += shares[r, i]
    return total


@njit(cache=True, nogil=True)
def least_in_ball(tables, norm):
    """The least of `Σ_j tables_j(w_j) + ψ(‖w‖²)`, and where it is."""
    dim, count = tables.shape
    reach, limit = count // 2, len(norm)
    least = np.full((dim + 1, limit), FAR)
    least[0, 0] = 0
    for j in range(dim):
        for q in range(limit):
            for x in range(count):
                after = q + (x - reach) ** 2
                if least[j, q] < FAR and after < limit:
                    least[j + 1, after] = min(least[j + 1, after], least[j, q] + tables[j, x])
    q = np.argmin(np.where(least[dim] < FAR, least[dim] + norm, FAR))
    value, w = least[dim, q] + norm[q], np.zeros(dim, np.int64)
    for j in range(dim - 1, -1, -1):
        for x in range(count):
            before = q - (x - reach) ** 2
            if before >= 0 and least[j, before] < FAR and least[j, before] + tables[j, x] == least[j + 1, q]:
                w[j], q = x - reach, before
                break
    return value, w


@njit(cache=True, nogil=True)
def least_of_rows(rows, shares, w, chosen):
    """The sum over rows of their minima; `chosen` is where each is, that of w if it is one of them."""
    n, ones, count = shares.shape
    reach = count // 2
    middle, total = ones * reach, 0
    least, came = np.empty((ones + 1, 2 * middle + 1), np.int64), np.empty((ones, 2 * middle + 1), np.int64)
    for r in range(n):
        least[:] = FAR
        least[0, middle] = 0
        for i in range(ones):
            for s in range(middle - i * reach, middle + i * reach + 1):
                for x in range(count):
                    value = least[i, s] - shares[r, i, x]
                    if value < least[i + 1, s + x - reach]:
                        least[i + 1, s + x - reach], came[i, s + x - reach] = value, x
        best, at = FAR, 0
        for s in range(2 * middle + 1):
            value = least[ones, s] + (rows.not_positive[r] if s <= middle else rows.positive[r])
            if value < best:
                best, at = value, s
        total += best
        own, score = 0, 0
        for i in range(ones):
            score += w[rows.columns[r, i]]
            own -= shares[r, i, w[rows.columns[r, i]] + reach]
        agrees = own + (rows.not_positive[r] if score <= 0 else rows.positive[r]) == best
        for i in range(ones - 1, -1, -1):
            chosen[r, i] = w[rows.columns[r, i]] + reach if agrees else came[i, at]
            at -= came[i, at] - reach
    return total


@njit(cache=True, nogil=True)
def move(rows, shares, w, chosen, step):
    """One step along the subgradient; with step 0 nothing moves. Returns its squared length."""
    length, reach = 0, shares.shape[2] // 2
    for r in range(len(shares)):
        for i in range(shares.shape[1]):
            ball = w[rows.columns[r, i]] + reach
            if ball != chosen[r, i]:
                length += 2
                shares[r, i, ball] += step
                shares[r, i, chosen[r, i]] -= step
    return length


@njit(cache=True, nogil=True)
def objective(rows, noise, w):
    """Mistakes beyond the sure ones, and noise, of one vector."""
    total, reach = noise.norm[(w * w).sum()], noise.coordinate.shape[1] // 2
    for j in range(len(w)):
        total += noise.coordinate[j, w[j] + reach]
    for r in range(len(rows.columns)):
        score = 0
        for i in range(rows.columns.shape[1]):
            score += w[rows.columns[r, i]]
        total += rows.not_positive[r] if score <= 0 else rows.positive[r]
    return total


@njit(cache=True, nogil=True)
def improve(rows, noise, w, having):
    """Change one coordinate at a time while that helps; `having[j]` marks the rows with column j."""
    reach, limit = noise.coordinate.shape[1] // 2, len(noise.norm) - 1
    score, norm = np.zeros(len(rows.columns), np.int64), (w * w).sum()
    for r in range(len(score)):
        for i in range(rows.columns.shape[1]):
            score[r] += w[rows.columns[r, i]]
    better = True
    while better:
        better = False
        for j in range(len(w)):
            costs = np.zeros(2 * reach + 1, np.int64)
            for x in range(2 * reach + 1):
                after = norm - w[j] ** 2 + (x - reach) ** 2
                costs[x] = noise.coordinate[j, x] + noise.norm[after] if after <= limit else FAR
            for r in range(len(score)):
                if having[j, r]:
                    for x in range(2 * reach + 1):
                        positive = score[r] + x - reach - w[j] > 0
                        costs[x] += rows.positive[r] if positive else rows.not_positive[r]
            x = np.argmin(costs)
            if costs[x] < costs[w[j] + reach]:
                better = True
                for r in range(len(score)):
                    score[r] += (x - reach - w[j]) * having[j, r]
                norm += (x - reach) ** 2 - w[j] ** 2
                w[j] = x - reach


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--radius", type=int, default=59, help="squared radius of the ball")
    parser.add_argument("--iterations", type=int, default=9000)
    arguments = parser.parse_args()
    table = ps.datasets.adult_categorical(seed=0)
    problem = ps.Problem(table, ps.IntegerBall(table.dim, arguments.radius))
    perturbation = published_noise(problem, 1.0, 0)
    rows, noise, sure = lay_out(problem, perturbation)
    shares = np.zeros((*rows.columns.shape, noise.coordinate.shape[1]), dtype=np.int64)
    chosen = np.zeros(rows.columns.shape, dtype=np.int64)
    having = np.zeros((table.dim, len(rows.columns)), dtype=np.bool_)
    having[rows.columns.T, np.arange(len(rows.columns))] = True
    bound, best, kept, step, waited = -FAR, FAR, shares.copy(), FIRST_STEP, 0
    start = time.process_time()
    print("iteration, CPU s: bound, best vector, gap in records")
    for iteration in range(arguments.iterations + 1):
        inside, w = least_in_ball(gather(noise, rows, shares), noise.norm)
        found = int(inside + least_of_rows(rows, shares, w, chosen))
        improve(rows, noise, w_better := w.copy(), having)
        here = int(objective(rows, noise, w_better))
        if here < best:
            best, weights = here, w_better
        if found > bound:
            bound, kept, waited = found, shares.copy(), 0
        else:
            waited += 1
        if iteration % 500 == 0:
            gap = (best - bound) / UNIT
            figures = f"{(bound + sure) / UNIT:.1f}, {(best + sure) / UNIT:.1f}, {gap:.1f} ({gap / table.n:.2%})"
            print(f"{iteration:6}, {time.process_time() - start:6.1f}: {figures}", flush=True)
        if waited >= PATIENCE:
            step, waited, shares = step * SHRINK, 0, kept.copy()
            continue
        length = move(rows, shares, w, chosen, 0)
        if length == 0:
            print("the bound is reached: the vector is optimal")
            break
        move(rows, shares, w, chosen, max(1, int(step * (best - found) / length)))
    check = problem.objective(weights, perturbation)
    print(
        f"the best vector's objective, by the library: {check / UNIT:.1f}; mistakes {table.mistakes(weights):,} of {table.n:,}"
    )


if __name__ == "__main__":
    main()
