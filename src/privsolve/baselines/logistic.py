"""Logistic regression solved to machine precision: not private, and private by objective perturbation (section B2)."""

from __future__ import annotations

import time
from math import expm1, log1p

import numpy as np
from scipy.special import expit

from privsolve.arrays import Floats
from privsolve.baselines.linear import LinearFit, Rows
from privsolve.checks import check_positive
from privsolve.data.patterns import PatternTable
from privsolve.errors import OracleNotCertified
from privsolve.noise.draws import l2_gamma
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.calibration import check_epsilon
from privsolve.privacy.guarantee import Guarantee, Proof
from privsolve.privacy.profiles import Pure

_STEPS = 200
_SHORTEST = 1e-6  # part of a Newton step below which only rounding is left
_TOLERANCE = 1e-13  # of the largest gradient there could be: what float64 can reach


def logistic_regression(table: PatternTable, regularisation: float = 1e-3) -> LinearFit:
    """Logistic regression with the penalty `regularisation/2·‖w‖²` on the total loss. NOT private: a reference line."""
    start = time.perf_counter()
    rows = Rows.of(table)
    weights = minimise(rows, check_positive("regularisation", regularisation), np.zeros(rows.dim))
    return LinearFit(weights, None, time.perf_counter() - start)


def objective_perturbation(
    table: PatternTable,
    epsilon: float,
    regularisation: float,
    norm_bound: float,
    *,
    random_state: int | np.random.SeedSequence | Randomness | None = None,
) -> LinearFit:
    """Private logistic regression by objective perturbation (Chaudhuri, Monteleoni and Sarwate 2011).

    Minimises the total logistic loss plus `regularisation/2·‖w‖²` plus a random linear term. `norm_bound` is a public bound
    on the norm of any record's features `x / scales`; rows above it are refused. A regularisation so small that it would
    cost more than half of epsilon is raised to the value that costs half.

    Guarantee:
        Proved in real arithmetic only: real weights would be `epsilon`-DP under `"replace"` for a fixed `regularisation`
        (docs, baselines, section B2). Those in float64 are not, because their last bits depend on the data, and
        `privsolve.audit` shows it; the guarantee says so.
    """
    start = time.perf_counter()
    rows = Rows.of(table)
    norm_bound = check_positive("norm_bound", norm_bound)
    penalty, scale = perturbation(epsilon, regularisation, norm_bound)
    if (longest := float(rows.norms.max())) > norm_bound * (1 + 1e-12):
        raise ValueError(
            f"norm_bound={norm_bound:g} is exceeded by a row of norm {longest:.6g}: state a larger public bound, or clip "
            "the features by a public rule first"
        )
    rng = as_randomness(random_state)
    weights = minimise(rows, penalty, l2_gamma(rng, rows.dim, scale))
    guarantee = Guarantee(
        Pure(epsilon), Adjacency.REPLACE, "objective perturbation of logistic regression", "l2-gamma noise",
        theory="B2", oracle="Newton, trusted to machine precision", proof=Proof.REAL_ARITHMETIC, seeded=rng.is_seeded,
    )  # fmt: skip
    return LinearFit(weights, guarantee, time.perf_counter() - start)


def perturbation(epsilon: float, regularisation: float, norm_bound: float) -> tuple[float, float]:
    """The penalty λ and the scale of the ℓ2-gamma noise: `2R/ε'` with `ε' = ε - ln(1 + R²/4λ) >= ε/2`."""
    epsilon = check_epsilon(epsilon)
    norm_bound = check_positive("norm_bound", norm_bound)
    curvature = norm_bound**2 / 4
    # a larger penalty than the proof asks for is private too, and e^700 is as far as float64 goes
    costs_half = curvature / expm1(min(epsilon / 2, 700.0))
    penalty = max(check_positive("regularisation", regularisation), costs_half)
    return penalty, 2 * norm_bound / (epsilon - log1p(curvature / penalty))


def minimise(rows: Rows, penalty: float, linear: Floats) -> Floats:
    """The minimiser of the total logistic loss plus `penalty/2·‖w‖² + <linear, w>`, by Newton's method."""
    dense = rows.rows.toarray()
    largest = float(rows.norms @ (rows.positives + rows.negatives) + np.linalg.norm(linear))

    def gradient(w: Floats) -> Floats:
        score = dense @ w
        factor = rows.negatives * expit(score) - rows.positives * expit(-score)
        return np.asarray(factor @ dense + penalty * w + linear)

    w = np.zeros(rows.dim)
    slope = gradient(w)
    for _ in range(_STEPS):
        if not slope.any():  # nothing is left to gain, and nothing would stop the search
            break
        p = expit(dense @ w)
        curvature = (rows.positives + rows.negatives) * p * (1 - p)
        hessian = (dense * curvature[:, None]).T @ dense + penalty * np.eye(rows.dim)
        direction = np.linalg.solve(hessian, -slope)
        # the norm of the gradient falls along Newton's direction too, and unlike the value it does so down to rounding
        length, moved = 1.0, gradient(w + direction)
        while np.linalg.norm(moved) > (1 - 1e-4 * length) * np.linalg.norm(slope) and length > _SHORTEST:
            length /= 2
            moved = gradient(w + length * direction)
        if length <= _SHORTEST:
            break
        w, slope = w + length * direction, moved
    if np.linalg.norm(slope) <= _TOLERANCE * largest:
        return w
    raise OracleNotCertified(
        "Newton's method did not reach the minimiser, so nothing is released: use a larger regularisation"
    )
