"""Random small problems for tests: every domain, ties, negative and fixed-point features, zero to huge noise."""

from __future__ import annotations

import numpy as np

import privsolve as ps
from privsolve.domains import Domain

DOMAIN_KINDS = ("integer-ball", "sign-cube", "ternary-cube", "sparse-signs", "sparse-points", "finite-set")


def random_domain(rng: np.random.Generator, kind: str, dim: int) -> Domain:
    if kind == "integer-ball":
        return ps.IntegerBall(dim, int(rng.integers(1, {1: 60, 2: 30, 3: 20, 4: 12, 5: 8}.get(dim, 5))))
    if kind == "sign-cube":
        return ps.SignCube(dim)
    if kind == "ternary-cube":
        return ps.TernaryCube(dim)
    if kind == "sparse-signs":
        return ps.SparseSigns(dim, int(rng.integers(1, dim + 1)))
    if kind == "sparse-points":
        intercept = (-int(rng.integers(0, 4)), int(rng.integers(0, 4))) if dim > 1 and rng.random() < 0.7 else None
        columns = dim - (intercept is not None)
        features = int(rng.integers(1, min(columns, 3) + 1))
        return ps.SparsePoints(dim, features, int(rng.integers(1, 4)), intercept)
    return ps.FiniteSet(rng.integers(-6, 7, size=(int(rng.integers(2, 40)), dim)))


def random_features(rng: np.random.Generator, rows: int, dim: int) -> tuple[np.ndarray, list[int]]:
    """Integer features and scales: indicators, one-hot groups, small integers with ties, or fixed-point columns."""
    style = rng.integers(4)
    if style == 0:
        return rng.integers(0, 2, size=(rows, dim)), [1] * dim
    if style == 1:
        return np.eye(dim, dtype=int)[rng.integers(0, dim, size=rows)] | rng.integers(0, 2, size=(rows, dim)), [1] * dim
    if style == 2:
        return rng.integers(-3, 4, size=(rows, dim)), [1] * dim
    features = rng.integers(0, 2, size=(rows, dim))
    scales = [1] * dim
    for j in range(dim):
        if rng.random() < 0.5:
            scales[j] = int(rng.choice([7, 99, 1000]))
            features[:, j] = rng.integers(-scales[j], scales[j] + 1, size=rows)
    return features, scales


def random_problem(rng: np.random.Generator, kind: str, dim: int | None = None) -> ps.Problem:
    """At most a few thousand members and thirty rows; mistakes with random costs."""
    dim = int(rng.integers(1, 9)) if dim is None else dim
    rows = int(rng.integers(1, 30))
    features, scales = random_features(rng, rows, dim)
    positives, negatives = rng.integers(0, 4, size=(2, rows))
    positives[0] += 1
    # a scorecard over features that declare nothing must be 0/1: these declare that they may be 2
    wide = [(int(c.min()), max(2, int(c.max()))) for c in np.asarray(features).T]
    ranges = wide if kind == "sparse-points" else None
    costs = (1, 1) if rng.random() < 0.7 else tuple(int(c) for c in rng.integers(1, 5, size=2))
    return ps.Problem(
        ps.PatternTable(features, positives, negatives, scales=scales, ranges=ranges),
        random_domain(rng, kind, dim),
        ps.ZeroOneLoss(*costs),
    )


def random_eta(rng: np.random.Generator, domain: Domain) -> np.ndarray:
    """Noise for the lifted domain: zero, of the size of the loss, huge, or with a negative last coordinate."""
    scale = float(rng.choice([0.0, 0.3, 3.0, 30.0, 1e6]))
    eta = rng.normal(size=domain.lift_dim) * scale
    if rng.random() < 0.5:
        eta[-1] = -abs(eta[-1])
    return eta


def random_perturbation(rng: np.random.Generator, problem: ps.Problem) -> ps.Perturbation:
    """Noise on the lifted domain, or arbitrary tables."""
    domain = problem.domain
    if domain.radius_sq_bound > 0 and rng.random() < 0.8:
        return ps.Perturbation.lifted(domain, random_eta(rng, domain))
    tables = tuple(rng.integers(-(2**22), 2**22, size=len(domain.values(j))) for j in range(domain.dim))
    return ps.Perturbation(domain, tables)
