"""Sizes, norms and separations of many domains, and what is refused; `test_conformance` has the rest."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privsolve as ps
from privsolve.domains import Domain, domain_from_dict

BALLS = [(1, r) for r in (1, 2, 3, 4, 10, 30)] + [(2, r) for r in (1, 2, 3, 6, 12)] + [(3, 1), (3, 7), (3, 8), (4, 7)]
SPARSE = [(d, k) for d in range(1, 5) for k in range(1, d + 1)]
DOMAINS: list[Domain] = [
    *(ps.IntegerBall(d, r) for d, r in BALLS),
    *(ps.SignCube(d) for d in range(1, 6)),
    *(ps.TernaryCube(d) for d in range(1, 6)),
    *(ps.SparseSigns(d, k) for d, k in SPARSE),
    ps.SparsePoints(1, 1, 3),
    ps.SparsePoints(3, 2, 2),
    ps.SparsePoints(3, 1, 3, intercept=(-1, 4)),
    ps.SparsePoints(3, 2, 1, intercept=(2, 3)),
    ps.SparsePoints(2, 1, 2, intercept=0),
    ps.FiniteSet([[3, 0], [0, 0], [1, 1], [3, 0]]),
    ps.FiniteSet([[3, 4], [5, 0], [-4, 3]]),
    ps.FiniteSet([[2**20, -(2**20)], [2**20, 1 - 2**20]]),
]


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_closed_forms_are_those_of_the_members(domain: Domain) -> None:
    """The members themselves are held to the definition by the conformance suite."""
    members = domain.members()
    norms = (members**2).sum(axis=1)
    assert domain.size == len(members)
    assert domain.radius_sq_bound == norms.max()
    assert domain.equal_norms == (len(set(norms.tolist())) == 1)
    distances = [((a - b) ** 2).sum() for a, b in itertools.combinations(members, 2)]
    assert domain.separation_sq == min(distances)


def test_large_sizes_are_exact() -> None:
    assert ps.IntegerBall(23, 23).size == 22_097_867_887_045
    assert ps.SignCube(200).size == 2**200
    assert ps.TernaryCube(100).size == 3**100
    assert ps.SparseSigns(300, 7).size == math.comb(300, 7) * 2**7
    # radius 1: zero and the unit vectors; radius 2: also the pairs
    assert ps.IntegerBall(5000, 1).size == 10_001
    assert ps.IntegerBall(1000, 2).size == 2001 + math.comb(1000, 2) * 4


@settings(deadline=None)
@given(st.integers(1, 6), st.integers(1, 400))
def test_ball_radius_is_the_largest_attained_norm(dim: int, radius_sq: int) -> None:
    squares = {0}
    for _ in range(min(dim, 4)):
        squares = {s + v * v for s in squares for v in range(math.isqrt(radius_sq - s) + 1)}
    assert ps.IntegerBall(dim, radius_sq).radius_sq_bound == max(squares)


@pytest.mark.parametrize("domain", [ps.SparseSigns(1500, 1), ps.IntegerBall(1200, 1)], ids=repr)
def test_long_vectors_can_be_listed(domain: Domain) -> None:
    members = domain.members()
    assert members.shape == (domain.size, domain.dim)
    assert (np.abs(members).sum(axis=1) <= 1).all()


def test_large_domains_are_not_listed() -> None:
    with pytest.raises(ValueError, match="33,554,432 members, too many to list"):
        ps.SignCube(25).members()
    with pytest.raises(ValueError, match=r"about 10\^4771 members"):
        ps.TernaryCube(10_000).members()


@pytest.mark.parametrize("wrong", [0, -1, 1.0, "3", None, True, np.nan, 10_001])
def test_wrong_dimensions(wrong: Any) -> None:
    for make in (ps.SignCube, ps.TernaryCube, lambda d: ps.IntegerBall(d, 1), lambda d: ps.SparseSigns(d, 1)):
        with pytest.raises(ValueError, match=r"^dim must be"):
            make(wrong)
    with pytest.raises(ValueError, match=r"^radius_sq must be"):
        ps.IntegerBall(2, wrong)
    with pytest.raises(ValueError, match=r"^k must be"):
        ps.SparseSigns(2, wrong)
    with pytest.raises(ValueError, match=r"^k must be between 1 and 2"):
        ps.SparseSigns(2, 3)


@pytest.mark.parametrize("intercept", [(3, 1), (1,), (1, 2, 3), "ab", 1.5, (0.5, 1), True, -1, (0, 10**9)])
def test_wrong_intercepts(intercept: Any) -> None:
    with pytest.raises(ValueError, match=r"^intercept must"):
        ps.SparsePoints(3, 1, 1, intercept)


def test_wrong_grids() -> None:
    for low, high, message in (
        ([1], [0], "low must not be above"),
        ([], [], "one length"),
        ([0], [1, 2], "one length"),
        (0, 1, "low must be a list"),
    ):
        with pytest.raises(ValueError, match=message):
            ps.IntegerGrid(low, high)  # type: ignore[arg-type]


def test_numpy_integers_are_taken_as_integers() -> None:
    domain = ps.IntegerBall(np.int64(2), np.int32(3))
    assert domain == ps.IntegerBall(2, 3)
    assert json.loads(json.dumps(domain.to_dict())) == {"kind": "integer-ball", "dim": 2, "radius_sq": 3}


FLAT = [[], [[]], [1, 2], 5, None, [[1.0, 2.0]], [[np.nan]], [["a"]], [[True]], [[1], [1, 2]]]
BEYOND = [[[2**20 + 1]], [[-(2**20) - 1]], [[2**70]], np.array([[2**63]], dtype=np.uint64)]


@pytest.mark.parametrize("points", [*FLAT, *BEYOND, np.array([[-(2**63)]]), np.array([[-(2**63)], [3]])], ids=str)
def test_wrong_points(points: Any) -> None:
    with pytest.raises(ValueError, match=r"^points"):
        ps.FiniteSet(points)


def test_points_of_a_small_dtype() -> None:
    domain = ps.FiniteSet(np.array([[-128, 127], [0, 0]], dtype=np.int8))
    assert domain.radius_sq_bound == 128**2 + 127**2
    assert domain.separation_sq == 128**2 + 127**2
    with pytest.raises(ValueError, match="FiniteSet is not cut out by additive costs"):
        domain.knapsack()


NO_DOMAINS = [None, 5, [], "sign-cube", {}, {"kind": "ball"}, {"kind": []}, {"kind": {}}, {"kind": "sign-cube"}]
WRONG_FIELDS = [
    {"kind": "sign-cube", "dim": 2, "k": 1},
    {"kind": "sign-cube", "dim": "2"},
    {"kind": "sign-cube", "dim": [2]},
    {"kind": "finite-set", "points": {}},
    {"kind": "finite-set", "points": [[1], [1, 2]]},
    {"kind": "integer-ball", "dim": 2, "radius_sq": -1},
]


@pytest.mark.parametrize("description", NO_DOMAINS + WRONG_FIELDS, ids=str)
def test_wrong_descriptions(description: Any) -> None:
    with pytest.raises(ValueError, match=r"domain|^dim|^radius_sq|^points"):
        domain_from_dict(description)


def test_the_zero_vector_alone_has_no_lift() -> None:
    with pytest.raises(ValueError, match="only the zero vector"):
        ps.FiniteSet([[0, 0]]).lift([0, 0])
