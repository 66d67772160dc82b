"""Domains against brute force over the product of their values."""

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


def belongs(domain: Domain, w: tuple[int, ...]) -> bool:
    """Membership by the definition."""
    if isinstance(domain, ps.IntegerBall):
        return sum(v * v for v in w) <= domain.radius_sq
    if isinstance(domain, ps.SignCube):
        return all(abs(v) == 1 for v in w)
    if isinstance(domain, ps.TernaryCube):
        return all(abs(v) <= 1 for v in w)
    if isinstance(domain, ps.SparseSigns):
        return all(abs(v) <= 1 for v in w) and sum(v != 0 for v in w) == domain.k
    if isinstance(domain, ps.SparsePoints):
        points = w if domain.intercept is None else w[:-1]
        low, high = domain.intercept or (w[-1], w[-1])
        few = sum(v != 0 for v in points) <= domain.max_features
        return few and max(map(abs, points)) <= domain.max_points and low <= w[-1] <= high
    assert isinstance(domain, ps.FiniteSet)
    return list(w) in domain.points.tolist()


def brute_force(domain: Domain) -> list[tuple[int, ...]]:
    if isinstance(domain, ps.FiniteSet):
        return sorted(set(map(tuple, domain.points.tolist())))
    largest = math.isqrt(domain.radius_sq_bound)
    box = itertools.product(range(-largest, largest + 1), repeat=domain.dim)
    return [w for w in box if belongs(domain, w)]


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_members_and_what_is_known_of_them(domain: Domain) -> None:
    expected = brute_force(domain)
    members = domain.members()
    assert members.dtype == np.int64
    assert members.tolist() == [list(w) for w in expected]
    assert domain.size == len(expected)
    norms = [sum(v * v for v in w) for w in expected]
    assert domain.radius_sq_bound == max(norms)
    assert domain.equal_norms == (len(set(norms)) == 1)
    assert set(norms) <= set(domain.norms_sq.tolist())
    distances = [sum((a - b) ** 2 for a, b in zip(w, u, strict=True)) for w, u in itertools.combinations(expected, 2)]
    assert domain.separation_sq == min(distances)
    for j in range(domain.dim):
        values = domain.values(j).tolist()
        assert values == sorted(values)
        assert {w[j] for w in expected} <= set(values) <= {-1, 0, 1} | {w[j] for w in expected}
        assert np.issubdtype(domain.values(j).dtype, np.int64)


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_lift(domain: Domain) -> None:
    members = domain.members()
    lifted = domain.lift(members)
    assert lifted.shape == (len(members), domain.lift_dim)
    assert domain.lift_dim == domain.dim + (not domain.equal_norms)
    assert np.allclose(np.linalg.norm(lifted, axis=1), 1.0, rtol=0, atol=1e-12)
    assert np.array_equal(domain.lift(members[0]), lifted[0])
    radius = math.sqrt(domain.radius_sq_bound)
    for w, image in zip(members, lifted, strict=True):
        apart = np.linalg.norm(lifted - image, axis=1)
        assert (apart >= np.linalg.norm(members - w, axis=1) / radius * (1 - 1e-9)).all()
    assert np.allclose(lifted[:, : domain.dim] * radius, members)


@pytest.mark.parametrize("domain", [d for d in DOMAINS if not isinstance(d, ps.FiniteSet)], ids=repr)
def test_contains_and_knapsack_agree_with_the_members(domain: Domain) -> None:
    largest = math.isqrt(domain.radius_sq_bound) + 1
    members = set(brute_force(domain))
    knapsack = domain.knapsack_with_norms()
    for w in itertools.product(range(-largest, largest + 1), repeat=domain.dim):
        inside = w in members
        assert domain.contains(w) == inside
        if inside:
            costs = [
                int(c[domain.values(j).tolist().index(v)])
                for j, (c, v) in enumerate(zip(knapsack.costs, w, strict=True))
            ]
            assert knapsack.norm_sq is not None
            assert knapsack.allowed[sum(costs)]
            assert knapsack.norm_sq[sum(costs)] == sum(v * v for v in w)


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_contains_refuses_other_things(domain: Domain) -> None:
    w = domain.members()[-1]
    assert domain.contains(w)
    assert domain.contains(w.tolist())
    wrong = [w.astype(float), w[None], np.append(w, 0), w.tolist()[1:], "x", None, w.astype(object), w + 2**40]
    assert not any(domain.contains(x) for x in wrong)


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_description_round_trip(domain: Domain) -> None:
    again = domain_from_dict(json.loads(json.dumps(domain.to_dict())))
    assert type(again) is type(domain)
    assert again == domain
    assert hash(again) == hash(domain)
    assert all(other != domain for other in DOMAINS if other.to_dict() != domain.to_dict())


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


def test_numpy_integers_are_taken_as_integers() -> None:
    domain = ps.IntegerBall(np.int64(2), np.int32(3))
    assert domain == ps.IntegerBall(2, 3)
    assert json.loads(json.dumps(domain.to_dict())) == {"kind": "integer-ball", "dim": 2, "radius_sq": 3}


@pytest.mark.parametrize(
    "points",
    [
        [],
        [[]],
        [1, 2],
        5,
        None,
        [[1.0, 2.0]],
        [[np.nan]],
        [["a"]],
        [[True]],
        [[1], [1, 2]],
        [[2**20 + 1]],
        [[-(2**20) - 1]],
        [[2**70]],
        np.array([[2**63]], dtype=np.uint64),
        np.array([[-(2**63)]]),
        np.array([[-(2**63)], [3]]),
    ],
    ids=str,
)
def test_wrong_points(points: Any) -> None:
    with pytest.raises(ValueError, match=r"^points"):
        ps.FiniteSet(points)


def test_points_of_a_small_dtype() -> None:
    domain = ps.FiniteSet(np.array([[-128, 127], [0, 0]], dtype=np.int8))
    assert domain.radius_sq_bound == 128**2 + 127**2
    assert domain.separation_sq == 128**2 + 127**2
    with pytest.raises(ValueError, match="FiniteSet is not cut out by additive costs"):
        domain.knapsack()


@pytest.mark.parametrize(
    "description",
    [
        None,
        5,
        [],
        "sign-cube",
        {},
        {"kind": "ball"},
        {"kind": []},
        {"kind": {}},
        {"kind": "sign-cube"},
        {"kind": "sign-cube", "dim": 2, "k": 1},
        {"kind": "sign-cube", "dim": "2"},
        {"kind": "sign-cube", "dim": [2]},
        {"kind": "finite-set", "points": {}},
        {"kind": "finite-set", "points": [[1], [1, 2]]},
        {"kind": "integer-ball", "dim": 2, "radius_sq": -1},
    ],
    ids=str,
)
def test_wrong_descriptions(description: Any) -> None:
    with pytest.raises(ValueError, match=r"domain|^dim|^radius_sq|^points"):
        domain_from_dict(description)


def test_the_zero_vector_alone_has_no_lift() -> None:
    with pytest.raises(ValueError, match="only the zero vector"):
        ps.FiniteSet([[0, 0]]).lift([0, 0])
