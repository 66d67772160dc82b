"""Perturbations against high-precision arithmetic, and problems: their loss, its sensitivity and their limits."""

from __future__ import annotations

import itertools
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privsolve as ps
from privsolve.domains import Domain
from privsolve.errors import IntegerRangeError
from privsolve.privacy import calibration
from privsolve.privacy.adjacency import Adjacency
from privsolve.problems.perturbation import OBJECTIVE_LIMIT, UNIT

DOMAINS: list[Domain] = [
    ps.IntegerBall(1, 7),
    ps.IntegerBall(3, 6),
    ps.SignCube(3),
    ps.TernaryCube(3),
    ps.SparseSigns(4, 2),
    ps.FiniteSet([[3, 0], [0, 0], [1, 1], [-2, 5]]),
    ps.FiniteSet([[3, 4], [5, 0], [-4, 3]]),
]
SQUARE = ps.SignCube(2)
SIZES = st.sampled_from([0.0, 1e-300, 2.0**-21, 0.3, 1.0, 1234.5, 2.0**28, 1e10])


def exact(domain: Domain, eta: list[float], w: list[int]) -> Decimal:
    """`-<η, π(w)>` to 400 digits."""
    with localcontext(Context(prec=400)):
        rest = Decimal(domain.radius_sq_bound - sum(v * v for v in w)).sqrt()
        lifted = [Decimal(v) for v in w] + ([] if domain.equal_norms else [rest])
        product = sum((Decimal(e) * x for e, x in zip(eta, lifted, strict=True)), Decimal(0))
        return -product / Decimal(domain.radius_sq_bound).sqrt()


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_lifted_noise_is_rounded_once_per_table(data: st.DataObject) -> None:
    domain = data.draw(st.sampled_from(DOMAINS))
    unit = st.floats(-1, 1, allow_subnormal=False)
    eta = [data.draw(SIZES) * data.draw(unit) for _ in range(domain.lift_dim)]
    perturbation = ps.Perturbation.lifted(domain, eta)
    members = domain.members()
    together = perturbation.of_members(members)
    allowed = Decimal(domain.lift_dim) / 2**21
    assert allowed <= Decimal(calibration.rounding_error(domain.dim))
    for w, value in zip(members.tolist(), together.tolist(), strict=True):
        assert perturbation.of(w) == value
        with localcontext(Context(prec=400)):
            assert abs(Decimal(value) / UNIT - exact(domain, eta, w)) <= allowed
    assert perturbation.largest >= np.abs(together).max()


def test_entries_are_the_nearest_integers() -> None:
    # with D = 1 the entries of SparseSigns(1, 1) are ∓η: halves round away from zero
    table = ps.Perturbation.lifted(ps.SparseSigns(1, 1), [2.5 / UNIT]).coordinate[0]
    assert table.tolist() == [3, 0, -3]
    assert ps.Perturbation.lifted(ps.SparseSigns(1, 1), [2.4999 / UNIT]).coordinate[0].tolist() == [2, 0, -2]
    # the norm table of {-1, 0, 1}: sqrt(1 - 0) at zero, 0 at norm 1
    norm = ps.Perturbation.lifted(ps.TernaryCube(1), [0.0, -3.0]).norm
    assert norm is not None
    assert norm.tolist() == [3 * UNIT, 0]


@pytest.mark.parametrize(
    ("eta", "message"),
    [
        ([1.0], "eta must have 2 entries"),
        ([[1.0, 2.0]], "eta must have 2 entries"),
        (3.0, "eta must have 2 entries"),
        (None, "eta must have 2 entries"),
        ([1.0, np.nan], "eta has NaN"),
        ([1.0, -np.inf], "eta has NaN"),
        (["a", "b"], "eta must be 2 real"),
        ([1j, 1.0], "eta must be 2 real"),
        ([[1.0], [1.0, 2.0]], "eta must be 2 real"),
        ([2.0**60, 0.0], "exact integer range"),
        ([2.0**39, 2.0**39], "exact integer range"),
        ([-1e300, 0.0], "exact integer range"),
    ],
)
def test_wrong_noise(eta: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ps.Perturbation.lifted(ps.SignCube(2), eta)


@pytest.mark.parametrize(
    ("tables", "norm", "message"),
    [
        (([0, 0],), None, r"coordinate must hold 2 tables"),
        (([0, 0], [0, 0, 0]), None, r"coordinate\[1\] must hold 2 integers"),
        (([0, 0], 0), None, r"coordinate\[1\] must hold 2 integers"),
        (([0.5, 0.5], [0, 0]), None, r"coordinate\[0\].*units of 2\^-20.*float64"),
        (([0, np.nan], [0, 0]), None, r"coordinate\[0\].*float64"),
        (([0, 0], [0, 2**70]), None, r"coordinate\[1\].*object"),
        (([0, 0], [0, 0]), [0, 0], r"norm must hold 3 integers"),
        (([0, 0], [0, 0]), [0.0, 0.0, 0.0], r"norm must hold 3 integers"),
        (([0, 2**59], [0, 0]), None, r"exact integer range"),
        (([0, -(2**59)], [0, 0]), None, r"exact integer range"),
        (([0, 2**58], [-(2**58), 0]), None, r"exact integer range"),
        (([0, 0], [0, -(2**63)]), None, r"exact integer range"),
        (([0, 0], [0, 0]), [2**59, 0, 0], r"exact integer range"),
    ],
)
def test_wrong_tables(tables: Any, norm: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ps.Perturbation(ps.SignCube(2), tables, norm)


@pytest.mark.parametrize("weights", [[0, 1], [2, 1], [1], [1, 1, 1], [1.0, 1.0]])
def test_only_members_have_a_perturbation(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="not a member"):
        ps.Perturbation.zero(SQUARE).of(weights)


# --- problems -------------------------------------------------------------------------------------

TABLE = ps.PatternTable([[1, 0], [0, 1], [1, 1]], [1, 2, 3], [4, 5, 6])


WIDE = ps.PatternTable([[2**60, 2**60]], [1], [0])
MANY = ps.PatternTable([[1]], [2**38], [2**38 - 1])


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (ps.Problem, (TABLE, ps.SignCube(3)), "domain has dimension 3 but the table has 2 features"),
        (ps.Problem, ([[1, 0]], SQUARE), "table must be a PatternTable"),
        (ps.Problem, (TABLE, "sign-cube"), "domain must be a Domain"),
        (ps.Problem, (TABLE, SQUARE, 2), "loss must be a ZeroOneLoss"),
        (ps.Problem, (WIDE, ps.IntegerBall(2, 4)), "scores"),
        (ps.Problem, (MANY, ps.SignCube(1), ps.ZeroOneLoss(2, 1)), "records times largest cost"),
        (ps.Problem, (ps.PatternTable([[1]], [2**38], [2**38]), ps.SignCube(1)), "records times largest cost"),
        (ps.Problem(TABLE, SQUARE).objective, ([1, 1], ps.Perturbation.zero(ps.TernaryCube(2))), "another domain"),
        (ps.Perturbation, (2, ()), "domain must be a Domain"),
        (ps.Perturbation.lifted, (ps.FiniteSet([[0]]), [1.0]), "only the zero vector"),
        (ps.ZeroOneLoss, (0, 0), "both 0"),
    ],
)
def test_wrong_problems(make: Any, arguments: tuple[Any, ...], message: str) -> None:
    error = IntegerRangeError if message in ("scores", "records times largest cost") else ValueError
    with pytest.raises(error, match=message):
        make(*arguments)


def test_problems_just_within_the_range_are_taken() -> None:
    ps.Problem(WIDE, SQUARE)
    ps.Problem(MANY, ps.SignCube(1))


@pytest.mark.parametrize("oracle", ["enumeration", "tree"])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_problem_is_solved_exactly(oracle: str, sign: int) -> None:
    """Loss and perturbation both just below their limits: still the exact optimum, no overflow, no false infinity."""
    count, entry = 2**38 - 1, sign * (2**58 - 1)
    problem = ps.Problem(ps.PatternTable([[1, 0], [0, 1]], [count, 0], [0, count]), ps.SignCube(2))
    perturbation = ps.Perturbation(problem.domain, ([entry, entry], [entry, entry]))
    assert count * 2 * UNIT + 2 * abs(entry) < OBJECTIVE_LIMIT
    solution = ps.oracles.get(oracle).minimise(problem, perturbation)
    assert solution.weights.tolist() == [1, -1]
    assert solution.value == 2 * entry
    worst = ps.Problem(ps.PatternTable([[0, 0]], [2 * count], [0]), ps.SignCube(2))
    assert ps.oracles.get(oracle).minimise(worst, perturbation).value == 2 * entry + 2 * count * UNIT


@pytest.mark.parametrize("costs", [(1, 1), (3, 1), (1, 4), (0, 2), (5, 0)])
@pytest.mark.parametrize("adjacency", tuple(Adjacency))
def test_sensitivity_by_brute_force(costs: tuple[int, int], adjacency: str) -> None:
    """No change of one record moves the difference of two losses by more than Δ, and some change attains it."""
    loss = ps.ZeroOneLoss(*costs)
    domain = ps.TernaryCube(2)
    members = domain.members()
    rows = [list(x) for x in itertools.product((-1, 0, 1), repeat=2)]
    base = [([1, 0], True), ([0, 1], False)]

    def losses(records: list[tuple[list[int], bool]]) -> np.ndarray:
        table = ps.PatternTable.from_records([x for x, _ in records], [y for _, y in records])
        problem = ps.Problem(table, domain, loss)
        result = problem.losses_of(members)
        assert result.tolist() == [problem.total_loss(w) for w in members]
        return result

    everything = list(itertools.product(rows, (True, False)))
    ranges = []
    for old, new in itertools.product(everything, repeat=2):
        without = base if adjacency == "add-remove" else [*base, old]
        change = losses([*base, new]) - losses(without)
        ranges.append(int(change.max() - change.min()))
    assert max(ranges) == Adjacency.of(adjacency).range_factor * loss.largest


def test_weighted_loss_by_hand() -> None:
    problem = ps.Problem(TABLE, ps.SignCube(2), ps.ZeroOneLoss(false_positive=10, false_negative=100))
    # w = (1, -1): row (1,0) positive, rows (0,1) and (1,1) negative
    assert problem.total_loss([1, -1]) == 4 * 10 + 2 * 100 + 3 * 100
    assert problem.objective([1, -1], ps.Perturbation.zero(problem.domain)) == 540 * UNIT


@pytest.mark.parametrize("wrong", [-1, 1.0, "1", None, True, np.nan, 2**20 + 1])
def test_wrong_costs(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"^false_positive must be"):
        ps.ZeroOneLoss(wrong, 1)
    with pytest.raises(ValueError, match=r"^false_negative must be"):
        ps.ZeroOneLoss(1, wrong)


def test_costs_become_plain_integers() -> None:
    loss = ps.ZeroOneLoss(np.int32(3), np.int64(2))
    assert ps.ZeroOneLoss.from_dict(loss.to_dict()) == ps.ZeroOneLoss(3, 2)
    assert type(loss.false_positive) is type(loss.false_negative) is int
