"""Random constraints on scorecards, and all cards that keep to them, by the definition alone."""

from __future__ import annotations

import itertools

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.domains import ConstrainedPoints


def random_constraints(rng: np.random.Generator, columns: int, most: int, points: int, intercept: tuple[int, int]):
    """Constraints of every kind on columns of a few variables; drawn again until some card keeps to them."""
    while True:
        kinds = int(rng.integers(min(columns, 2), columns + 1))
        variables = [f"v{v}" for v in rng.integers(0, kinds, columns)]
        names = list(rng.permutation(sorted(set(variables))))
        stated = {
            "max_questions": int(rng.integers(1, most + 1)) if rng.random() < 0.8 else None,
            "signs": rng.choice([-1, 0, 0, 1], columns).tolist(),
            "required": names[: int(rng.integers(0, 3))] if rng.random() < 0.6 else [],
            "excluded": [names[-1]] if len(names) > 1 and rng.random() < 0.3 else [],
        }
        try:
            return ConstrainedPoints(columns + 1, most, points, intercept, variables=variables, **stated)
        except ValueError:
            continue


def keeps_to(domain: ConstrainedPoints, card: Int64Array) -> bool:
    """Whether points and intercept of a card keep to every constraint, one after the other."""
    points = np.asarray(card)[: domain.columns]
    with_points = np.flatnonzero(points).tolist()
    asked = {domain.variables[j] for j in with_points}
    return (
        len(with_points) <= domain.max_features
        and len(asked) <= (domain.max_questions or len(points))
        and all(points[j] * domain.signs[j] >= 0 for j in with_points)
        and asked.issuperset(domain.required)
        and asked.isdisjoint(domain.excluded)
        and np.abs(points).max(initial=0) <= domain.max_points
    )


def all_cards(domain: ConstrainedPoints) -> Int64Array:
    """Every card that keeps to the constraints, the intercept last."""
    low, high = domain.intercept or (0, 0)
    values = range(-domain.max_points, domain.max_points + 1)
    kept = [c for c in itertools.product(values, repeat=domain.columns) if keeps_to(domain, np.array(c))]
    return np.array([(*c, t) for c in kept for t in range(low, high + 1)], dtype=np.int64)
