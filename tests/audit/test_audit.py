"""The auditor itself: it never claims too much, finds what is there, and holds trees to their exact laws."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

import privsolve as ps
from all_trees import AllTrees
from parity_pair import ParityOracle
from privsolve import audit
from privsolve.audit import exact, suite
from privsolve.audit.exact import all_trees
from privsolve.mechanisms import trees
from privsolve.noise.entropy import Randomness

RNG = np.random.default_rng


def response(truth: int, runs: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Randomised response: the bit, or its opposite with probability `1/(1+e^ε)`."""
    return np.where(rng.random(runs) < 1 / (1 + math.exp(epsilon)), 1 - truth, truth)


def responder(epsilon: float, seed: int):  # type: ignore[no-untyped-def]
    rng = RNG(seed)
    return lambda truth, runs: response(truth, runs, epsilon, rng)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("pair", [(0, 1), (1, 0)])
def test_randomised_response_is_measured(epsilon: float, pair: tuple[int, int]) -> None:
    finding = audit.lower_bound(responder(epsilon, 1), *pair, 400_000)
    assert 0.8 * epsilon < finding.epsilon <= epsilon
    assert finding.held_out == 200_000
    assert finding.refutes(0.7 * epsilon)
    assert not finding.refutes(epsilon)


def test_the_bound_is_rarely_too_high() -> None:
    """At confidence 0.8, over many small audits of a law that uses up its epsilon in one outcome of each direction."""
    rng = RNG(0)
    laws = {0: [0.6, 0.1, 0.3], 1: [0.2, 0.3, 0.5]}
    true = math.log(3.0)
    trials = 1000
    too_high = sum(
        audit.lower_bound(lambda d, n: rng.choice(3, n, p=laws[d]), 0, 1, 200, confidence=0.8).epsilon > true
        for _ in range(trials)
    )
    assert too_high < 0.2 * trials + 3 * math.sqrt(0.16 * trials)


def test_equal_laws_give_nothing() -> None:
    finding = audit.lower_bound(lambda d, n: RNG(d).integers(0, 1000, n), 3, 4, 20_000)
    assert finding.epsilon == 0.0


def test_delta_buys_what_it_should() -> None:
    """The record is shown with probability 0.05 and nothing otherwise: (0, 0.05)-DP, and no better."""
    rng = RNG(2)

    def shame(secret: int, runs: int) -> np.ndarray:
        return np.where(rng.random(runs) < 0.05, secret, 0)

    assert audit.lower_bound(shame, 1, 2, 40_000, delta=0.05).epsilon < 0.05
    assert audit.lower_bound(shame, 1, 2, 40_000, delta=0.01).refutes(3.0)
    assert audit.lower_bound(shame, 1, 2, 40_000).refutes(4.0)


def test_events_of_many_outputs_are_found() -> None:
    rng = RNG(3)
    finding = audit.lower_bound(lambda d, n: 2 * rng.integers(0, 50, n) + response(d, n, 2.0, rng), 0, 1, 200_000)
    assert 1.8 < finding.epsilon <= 2.0


# --- kinds of outputs -----------------------------------------------------------------------------


def test_kinds_of_outputs_are_the_same_thing() -> None:
    bits = {truth: response(truth, 2000, 2.0, RNG(truth)) for truth in (0, 1)}
    vectorised = [
        lambda d, n: bits[d],
        lambda d, n: bits[d].astype(bool),
        lambda d, n: -bits[d],
        lambda d, n: np.stack([bits[d], 1 - bits[d]], axis=1),
        lambda d, n: ["yes" if b else "no" for b in bits[d]],
        lambda d, n: [np.array([b, 7]) for b in bits[d]],
        lambda d, n: tuple((int(b),) for b in bits[d]),
    ]
    findings = {audit.lower_bound(mechanism, 0, 1, 2000) for mechanism in vectorised}
    assert len(findings) == 1
    streams = {truth: iter(bits[truth]) for truth in (0, 1)}
    assert audit.lower_bound(lambda d: next(streams[d]), 0, 1, 2000) in findings


def test_releases_are_outputs() -> None:
    case = audit.CASES[0]
    rng = Randomness.seeded(1)

    def run(problem: ps.Problem) -> ps.Run:
        return ps.exponential(problem, 5.0, method="enumeration", random_state=rng)

    with_run = audit.lower_bound(run, case.data, case.neighbour, 300)
    assert with_run.refutes(0.5)
    assert audit.lower_bound(lambda p: run(p).release, case.data, case.neighbour, 300).refutes(0.5)
    assert not with_run.refutes(5.0)


@pytest.mark.parametrize(
    ("mechanism", "error", "message"),
    [
        (lambda d, n: np.zeros(n), ValueError, "bin continuous outputs"),
        (lambda d, n: np.zeros(n - 1, dtype=int), ValueError, "list of 100 outputs"),
        (lambda d, n: 3, ValueError, "list of 100 outputs"),
        (lambda d: [3], TypeError, "hashable"),
        (lambda d: np.array([0.5]), ValueError, "bin continuous outputs"),
        (lambda a, b, c: 0, TypeError, "must take"),
        (lambda *a: 0, TypeError, "must take"),
        (7, TypeError, "must take"),
    ],
)
def test_wrong_mechanisms(mechanism, error: type[Exception], message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=message):
        audit.lower_bound(mechanism, 0, 1, 100)


@pytest.mark.parametrize(
    ("message", "change"),
    [
        ("runs must be a whole number of at least 100", {"runs": 10}),
        ("runs must be", {"runs": 100.0}),
        *(("delta must be", {"delta": delta}) for delta in (-0.1, 1.0, float("nan"))),
        *(("confidence must", {"confidence": confidence}) for confidence in (1.0, True)),
    ],
)
def test_wrong_numbers(message: str, change: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=message):
        audit.lower_bound(**({"mechanism": lambda data, runs=5: data, "data": 0, "neighbour": 1, "runs": 100} | change))


# --- exact laws -----------------------------------------------------------------------------------


def test_exact_epsilon_of_known_laws() -> None:
    p, q = np.log([0.5, 0.3, 0.2]), np.log([0.4, 0.2, 0.4])
    assert audit.exact_epsilon(p, q) == pytest.approx(math.log(2))
    assert audit.exact_epsilon(q, p) == pytest.approx(math.log(2))
    with np.errstate(divide="ignore"):
        never, also_never = np.log([0.5, 0.5, 0.0]), np.log([0.25, 0.75, 0.0])
    assert audit.exact_epsilon(p, never) == math.inf
    assert audit.exact_epsilon(never, also_never) == pytest.approx(math.log(2))
    for wrong in ((np.log([0.5, 0.4]), np.log([0.5, 0.5])), (np.zeros(1), np.zeros(2))):
        with pytest.raises(ValueError, match=r"law"):
            audit.exact_epsilon(*wrong)


def test_the_parity_pair_costs_the_exponential_mechanism_half_of_its_budget() -> None:
    """`P(odd)` is `1/(1+e^-κ)` on one and `e^-κ/(1+e^-κ)` on the other, `κ = (ε - 1e-6)/2`: the ratio is `e^κ`."""
    case = audit.parity(6)
    found = audit.exact_loss(audit.exponential_law, case.data, case.neighbour, epsilon=1.0)
    assert found.epsilon == pytest.approx((1 - 1e-6) / 2, abs=1e-12)
    assert found.members == 64


@pytest.mark.parametrize("case", audit.CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("prior", [None, ps.SparsePrior(), ps.SparsePrior(p_zero=0.999, decay=0.01)])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_the_exponential_mechanism_holds_exactly(
    case: audit.Case, prior: ps.SparsePrior | None, epsilon: float
) -> None:
    found = audit.exact_loss(
        audit.exponential_law, case.data, case.neighbour, epsilon=epsilon, adjacency=case.adjacency, prior=prior
    )
    assert 0 < found.epsilon <= epsilon
    assert not found.refutes(epsilon)


def test_the_exact_budget_is_used_up_to_the_last_percent() -> None:
    """Of twenty records that agree one turns round: almost nothing is left over."""
    features, domain = [[1]] * 20, ps.SignCube(1)
    data = ps.Problem(ps.PatternTable.from_records(features, [True] * 20), domain)
    neighbour = ps.Problem(ps.PatternTable.from_records(features, [True] * 19 + [False]), domain)
    assert 0.99 < audit.exact_loss(audit.exponential_law, data, neighbour, epsilon=1.0).epsilon <= 1.0
    with pytest.raises(ValueError, match="same domain"):
        audit.exact_loss(audit.exponential_law, data, audit.CASES[1].data, epsilon=1.0)


def test_the_exact_law_is_the_one_that_is_drawn() -> None:
    case = next(c for c in audit.CASES if c.name == "scorecard")
    members = case.data.domain.members()
    law = np.exp(audit.exponential_law(case.data, 2.0, prior=ps.SparsePrior()))
    sampler = ps.ExponentialSampler(case.data, 2.0, prior=ps.SparsePrior(), random_state=5, method="supports")
    drawn = sampler.draw(20_000)
    counts = np.array([(drawn == w).all(axis=1).sum() for w in members])
    expected = law * len(drawn)
    assert ((counts - expected) ** 2 / expected).sum() < len(members) + 6 * math.sqrt(2 * len(members))


# --- cases ----------------------------------------------------------------------------------------


MOVED = {"replace": 2, "add-remove": 1}
"""Records that are in one of two neighbours and not in the other."""


def moved(one: ps.PatternTable, other: ps.PatternTable) -> int:
    counts: Counter[tuple[int, ...]] = Counter()
    for sign, table in ((1, one), (-1, other)):
        for row, p, n in zip(table.features.tolist(), table.positives, table.negatives, strict=True):
            counts[(*row, 1)] += sign * int(p)
            counts[(*row, 0)] += sign * int(n)
    return sum(map(abs, counts.values()))


@pytest.mark.parametrize("case", audit.CASES, ids=lambda case: case.name)
def test_cases_are_neighbours(case: audit.Case) -> None:
    assert case.data.domain == case.neighbour.domain
    assert case.why
    change = case.neighbour.losses_of(case.data.domain.members()) - case.data.losses_of(case.data.domain.members())
    assert 0 < np.ptp(change) <= MOVED[case.adjacency] * case.data.loss.largest
    assert (case.data.n == case.neighbour.n) == (case.adjacency == "replace")
    if isinstance(case.data, ps.Problem):
        assert moved(case.data.table, case.neighbour.table) == MOVED[case.adjacency]


def test_other_cases_are_neighbours() -> None:
    for case in audit.FULL_CARD_CASES:
        assert case.why
        assert moved(case.data, case.neighbour) == MOVED[case.plan.adjacency]
    for case in audit.TREE_CASES:
        assert case.why
        assert (case.data.n == case.neighbour.n) == (case.adjacency == "replace")
        change = [case.neighbour.total_loss(t) - case.data.total_loss(t) for t, _ in all_trees(case.data.trees)]
        assert 0 < np.ptp(change) <= case.data.trees.leaves.range * MOVED[case.adjacency]


def test_parity_oracle_is_exact() -> None:
    problems = [audit.parity(5).data, audit.parity(5).neighbour]
    for seed, problem in product(range(40), problems):
        runs = [ps.opdisc(problem, 30.0, oracle=o, random_state=seed) for o in (ParityOracle(), "enumeration")]
        assert runs[0].release.weights.tolist() == runs[1].release.weights.tolist()
    with pytest.raises(ValueError, match="ParityProblem only"):
        ps.opdisc(audit.CASES[0].data, 1.0, oracle=ParityOracle())


@pytest.mark.parametrize("case", audit.TREE_CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_trees_hold_exactly(case: audit.Case, epsilon: float) -> None:
    found = audit.exact_loss(audit.tree_law, case.data, case.neighbour, epsilon=epsilon, adjacency=case.adjacency)
    assert 0 < found.epsilon <= epsilon
    assert found.members == len(exact.all_trees(case.data.trees))


TREE = audit.TREE_CASES[0]


def test_the_whole_budget_is_used_up_and_the_other_adjacency_is_caught() -> None:
    assert audit.exact_loss(audit.tree_law, TREE.data, TREE.neighbour, epsilon=1.0).epsilon > 0.95
    assert audit.exact_loss(audit.tree_law, TREE.data, TREE.neighbour, epsilon=1.0, adjacency="add-remove").refutes(1.0)


def test_the_lists_agree_with_others() -> None:
    for case in audit.TREE_CASES:
        mine, listed = exact.all_trees(case.data.trees), AllTrees(case.data)
        assert len(mine) == len(listed.losses)
        assert all(log == pytest.approx(listed.log_prior[listed.number(tree)]) for tree, log in mine)


def doubled(original: Callable[..., float]) -> Callable[..., float]:
    return lambda *arguments: 2 * original(*arguments)


def test_a_doubled_temperature_is_caught_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "tree_temperature", doubled(trees.tree_temperature))
    assert audit.exact_loss(audit.tree_law, TREE.data, TREE.neighbour, epsilon=1.0).refutes(1.0)


def sampled() -> audit.Finding:
    found = suite._sampled_tree(audit.TREE_CASES[1], 6000, Randomness.seeded(2)).measure(0.999)
    assert isinstance(found, audit.Finding)
    return found


def test_draws_stand_and_a_doubled_temperature_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.2 < sampled().epsilon <= 1.0
    monkeypatch.setattr(trees, "tree_temperature", doubled(doubled(trees.tree_temperature)))
    assert sampled().refutes(1.0)
