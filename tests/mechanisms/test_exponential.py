"""The exponential mechanism against exact probabilities from enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2

import privsolve as ps
from privsolve.mechanisms.exponential import ExponentialSampler, inverse_temperature
from privsolve.problems.priors import Prior, log_weights
from random_problems import random_problem

DRAWS, MANY = 30_000, 50_000
PROBLEMS = 16
FAMILYWISE = 1e-4  # chance that any of the laws below is rejected although all are right


def exact_law(problem: ps.Problem, kappa: float, prior: Prior) -> tuple[np.ndarray, np.ndarray]:
    members = problem.domain.members()
    logs = log_weights(prior, problem.domain, members) - kappa * problem.losses_of(members)
    logs -= logs.max()
    return members, np.exp(logs) / np.exp(logs).sum()


def p_value(draws: np.ndarray, members: np.ndarray, law: np.ndarray) -> float:
    """Chi-square with rare members pooled."""
    position = {tuple(m): i for i, m in enumerate(members.tolist())}
    counts = np.bincount([position[tuple(w)] for w in draws.tolist()], minlength=len(members))
    order = np.argsort(law)
    expected, observed = law[order] * len(draws), counts[order]
    rare = np.cumsum(expected) < 10
    start = int(rare.sum())
    expected = np.concatenate([[expected[:start].sum()], expected[start:]])
    observed = np.concatenate([[observed[:start].sum()], observed[start:]])
    pools = np.cumsum(expected) // 10  # neighbours share a pool until it expects ten
    labels = np.unique(pools, return_inverse=True)[1]
    expected, observed = np.bincount(labels, expected), np.bincount(labels, observed)
    keep = expected > 0
    if keep.sum() < 2:
        return 1.0
    statistic = ((observed - expected)[keep] ** 2 / expected[keep]).sum()
    return float(chi2.sf(statistic, keep.sum() - 1))


def case(seed: int) -> tuple[ps.Problem, float, str, Prior]:
    rng = np.random.default_rng([7, seed])
    kind = ("integer-ball", "ternary-cube", "sparse-signs", "sign-cube", "sparse-points", "finite-set")[seed % 6]
    problem = random_problem(rng, kind)
    epsilon = float(rng.choice([0.05, 0.5, 2.0, 8.0]))
    adjacency = ("replace", "add-remove")[int(rng.integers(2))]
    prior: Prior = ps.UniformPrior() if rng.random() < 0.5 else ps.SparsePrior(0.6, 0.5)
    return problem, epsilon, adjacency, prior


@pytest.mark.parametrize("seed", range(PROBLEMS))
def test_draws_and_partitions_are_exact(seed: int) -> None:
    problem, epsilon, adjacency, prior = case(seed)
    sampler = ExponentialSampler(problem, epsilon, adjacency=adjacency, prior=prior, random_state=seed)
    kappa = inverse_temperature(epsilon, adjacency, problem.loss)
    members, law = exact_law(problem, kappa, prior)
    assert p_value(sampler.draw(DRAWS), members, law) > FAMILYWISE / PROBLEMS
    logs = log_weights(prior, problem.domain, members) - kappa * (problem.losses_of(members) - sampler.reference)
    assert sampler.log_partition() == pytest.approx(np.logaddexp.reduce(logs), abs=1e-9)


def test_a_wrong_temperature_is_noticed() -> None:
    caught = 0
    for seed in range(6):
        problem, _, adjacency, prior = case(seed)
        kappa = 1.0 / problem.loss.largest
        epsilon = kappa * problem.loss.largest * (2 if adjacency == "replace" else 1)
        draws = ExponentialSampler(problem, epsilon, adjacency=adjacency, prior=prior, random_state=seed).draw(MANY)
        assert p_value(draws, *exact_law(problem, kappa, prior)) > FAMILYWISE / PROBLEMS
        caught += p_value(draws, *exact_law(problem, 1.1 * kappa, prior)) < FAMILYWISE / PROBLEMS
    assert caught >= 4  # the others have nearly one likely member


@pytest.mark.parametrize("seed", range(6))
def test_the_methods_have_one_law(seed: int) -> None:
    """Scorecards over 0/1 columns can be drawn three ways."""
    rng = np.random.default_rng([3, seed])
    rows = rng.integers(0, 2, size=(25, 4))
    intercept = None if seed % 2 else (-2, 1)
    if intercept is not None:
        rows[:, -1] = 1
    table = ps.PatternTable(rows, *rng.integers(0, 6, size=(2, 25)))
    problem = ps.Problem(table, ps.SparsePoints(4, 2, 2, intercept))
    prior: Prior = ps.UniformPrior() if seed < 3 else ps.SparsePrior(0.6, 0.5)
    law = exact_law(problem, inverse_temperature(1.0, "replace", problem.loss), prior)
    totals = set()
    for method in ("supports", "tree", "enumeration"):
        sampler = ExponentialSampler(problem, 1.0, prior=prior, method=method, random_state=seed)
        assert p_value(sampler.draw(20_000), *law) > 1e-6
        kappa = inverse_temperature(1.0, "replace", problem.loss)
        totals.add(round(sampler.log_partition() - kappa * sampler.reference, 9))
    assert len(totals) == 1


def test_the_best_scorecard_of_adult_and_draws_near_it() -> None:
    """Theory's companion page: 5,052 mistakes, and accuracies of exact draws around 0.8425 and 0.8448."""
    table = ps.datasets.adult_scorecard()
    problem = ps.Problem(table, ps.SparsePoints(22, 6, 3, intercept=(-8, 8)))
    best = ps.oracles.get("tree").minimise(problem, ps.Perturbation.zero(problem.domain))
    assert best.certified
    assert best.objective == 5052
    for epsilon, accuracy, deviation in ((0.1, 0.8425, 0.0015), (1.0, 0.8448, 0.0002)):
        draws = ExponentialSampler(problem, epsilon, random_state=0).draw(20)
        assert abs(np.mean([table.accuracy(w) for w in draws]) - accuracy) < deviation


def test_utility_bound_of_the_theory_page() -> None:
    ball = ps.IntegerBall(23, 23)
    assert ps.exponential_utility_bound(ball, 1.0) == pytest.approx(67, abs=0.6)
    assert ps.exponential_utility_bound(ball, 1.0) / ps.sphere_noise(ball, 1.0).utility_bound(0.05) < 1 / 80
    with pytest.raises(ValueError, match="weights must be given"):
        ps.exponential_utility_bound(ball, 1.0, prior=ps.SparsePrior())
    sparse = ps.exponential_utility_bound(ball, 1.0, weights=np.zeros(23, dtype=int), prior=ps.SparsePrior())
    assert sparse == pytest.approx(2 * (23 * math.log(1 / 0.9) + math.log(20)), rel=1e-5)


def test_utility_bound_holds() -> None:
    problem = random_problem(np.random.default_rng(1), "ternary-cube", 6)
    bound = ps.exponential_utility_bound(problem.domain, 1.0, loss=problem.loss, beta=0.1)
    best = problem.losses_of(problem.domain.members()).min()
    draws = ExponentialSampler(problem, 1.0, random_state=0).draw(3000)
    assert (problem.losses_of(draws) - best > bound).mean() < 0.1


def test_a_run_is_a_release_with_diagnostics_apart() -> None:
    problem = random_problem(np.random.default_rng(2), "ternary-cube", 4)
    run = ps.exponential(problem, epsilon=1.0, random_state=4)
    again = ps.exponential(problem, epsilon=1.0, random_state=4)
    assert run.release.to_json() == again.release.to_json()
    guarantee = run.release.guarantee
    assert (guarantee.epsilon, guarantee.delta, guarantee.zcdp, guarantee.proved) == (1.0, 0.0, 0.125, True)
    assert guarantee.seeded
    assert not ps.exponential(problem, epsilon=1.0).release.guarantee.seeded
    assert run.diagnostics.attempts >= 1
    assert "attempts" not in run.release.to_json()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 1e-9}, "epsilon must be at least"),
        ({"epsilon": 1e9}, "is too large"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": 1.0, "adjacency": "swap"}, "adjacency"),
        ({"epsilon": 1.0, "method": "guess"}, "method"),
        ({"epsilon": 1.0, "method": "supports"}, "needs a SparsePoints domain"),
        ({"epsilon": 1.0, "max_nodes": 0}, "max_nodes"),
        ({"epsilon": 1.0, "random_state": -1}, "random_state"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    problem = random_problem(np.random.default_rng(2), "ternary-cube", 2)
    with pytest.raises(ValueError, match=message):
        ps.exponential(problem, **arguments)  # type: ignore[arg-type]


def test_limits_release_nothing() -> None:
    problem = ps.Problem(ps.datasets.adult_paper(), ps.IntegerBall(23, 23))
    with pytest.raises(ps.WorkLimitReached, match="max_attempts=10: nothing is released"):
        ps.exponential(problem, 10.0, max_attempts=10, random_state=0)
    with pytest.raises(ps.WorkLimitReached, match="max_nodes"):
        ps.exponential(problem, 10.0, max_nodes=1000, random_state=0)


def test_extreme_temperatures() -> None:
    problem = random_problem(np.random.default_rng(5), "integer-ball", 4)
    best = problem.losses_of(problem.domain.members()).min()
    cold = ExponentialSampler(problem, 2000.0, random_state=0).draw(200)
    assert (problem.losses_of(cold) == best).all()
    hot = ExponentialSampler(problem, 1e-5, random_state=0).draw(20_000)
    assert p_value(hot, *exact_law(problem, 0.0, ps.UniformPrior())) > 1e-6


@pytest.mark.parametrize(
    ("epsilon", "prior", "accuracy", "deviation"),
    [
        (0.01, None, 0.749, 0.011),
        (0.1, None, 0.771, 0.003),
        (0.01, ps.SparsePrior(0.9, 0.4), 0.759, 0.009),
        (0.03, ps.SparsePrior(0.9, 0.4), 0.764, 0.005),
        (0.1, ps.SparsePrior(0.9, 0.4), 0.772, 0.002),
    ],
)
def test_accuracy_on_the_papers_problem(epsilon: float, prior: Prior | None, accuracy: float, deviation: float) -> None:
    table = ps.datasets.adult_paper(seed=0)
    problem = ps.Problem(table, ps.IntegerBall(23, 23))
    draws = ExponentialSampler(problem, epsilon, prior=prior, random_state=0).draw(15)
    mean = np.mean([table.accuracy(w) for w in draws])
    assert abs(mean - accuracy) < 4 * deviation * math.sqrt(1 / 15 + 1 / 20)


def test_columns_with_more_values_than_a_short_integer() -> None:
    """An intercept of 80,001 values: indices into it do not wrap around."""
    table = ps.PatternTable([[2, 1], [0, 1]], [1, 0], [0, 1], ranges=[(0, 2), (1, 1)])
    problem = ps.Problem(table, ps.SparsePoints(2, 1, 1, intercept=40_000))
    draws = ExponentialSampler(problem, 1.0, random_state=0).draw(5)
    assert all(problem.domain.contains(w) for w in draws)
    assert np.abs(draws[:, 1]).max() > 2**12


def test_the_guarantee_does_not_tell_neighbours_apart() -> None:
    """Nor does the sampler: which one is used follows from what is declared, whatever the records."""
    domain = ps.SparsePoints(3, 2, 2)
    neighbours = ([1, 1, 0], [1, 2, 0]), ([1, 1, 0], [1, 0, 0])
    for ranges, lasts, method in (([(0, 2)] * 3, neighbours[0], "tree"), ([(0, 1)] * 3, neighbours[1], "supports")):
        tables = [
            ps.PatternTable.from_records([[0, 1, 0], [1, 0, 1], last], [True, False, True], ranges=ranges)
            for last in lasts
        ]
        runs = [ps.exponential(ps.Problem(t, domain), 1.0, random_state=0) for t in tables]
        assert [run.diagnostics.method for run in runs] == [method, method]
        assert runs[0].release.guarantee == runs[1].release.guarantee


@pytest.mark.parametrize("positives", [2496, 2497])
def test_tiny_probabilities_of_exact_nodes_are_exact(positives: int) -> None:
    """Shares below an exact node are drawn from without rejection: none of them may be an upper bound only."""
    table = ps.PatternTable([[1, 0], [0, 1]], [positives, 3000], [1400, 0])
    problem = ps.Problem(table, ps.IntegerBall(2, 1))
    sampler = ExponentialSampler(problem, 1.0, method="tree", random_state=0)
    inner = sampler._draws._sampler  # type: ignore[attr-defined]
    assert inner.inst.exact_from == 0
    members = problem.domain.members()
    logs = -inverse_temperature(1.0, "replace", problem.loss) * problem.losses_of(members)
    first = int(inner.inst.order[0])
    for x, share in enumerate(inner._weighing.child_log[0, :3]):
        below = members[:, first] == inner.inst.values[0, x]
        expected = np.logaddexp.reduce(logs[below]) - np.logaddexp.reduce(logs)
        total = np.logaddexp.reduce(inner._weighing.child_log[0, :3])
        assert share - total == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("epsilon", [1e-3, 0.02])
def test_billions_of_records_cancel_in_integers(epsilon: float) -> None:
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.integers(0, 2, size=(60, 5)), rng.integers(-50, 50, size=(60, 2))], axis=1)
    table = ps.PatternTable(rows, *rng.integers(0, 30_000_000, size=(2, 60)))
    problem = ps.Problem(table, ps.IntegerBall(7, 3))
    best = problem.losses_of(problem.domain.members()).min()
    draws = ExponentialSampler(problem, epsilon, random_state=0).draw(20)
    assert (problem.losses_of(draws) - best <= ps.exponential_utility_bound(problem.domain, epsilon, beta=1e-4)).all()


def test_priors_are_checked() -> None:
    for name, value in (("p_zero", 0.0), ("p_zero", 1.0), ("decay", 0.0), ("decay", 1.5)):
        with pytest.raises(ValueError, match=name):
            ps.SparsePrior(**{name: value})
    problem = random_problem(np.random.default_rng(2), "ternary-cube", 2)

    class Broken(ps.UniformPrior):
        def log_tables(self, domain):  # type: ignore[no-untyped-def]
            return [np.array([0.0, -np.inf, 0.0])] * domain.dim

    with pytest.raises(ValueError, match="finite log weight"):
        ps.exponential(problem, 1.0, prior=Broken())
    with pytest.raises(ValueError, match="member of the domain"):
        ps.exponential_utility_bound(problem.domain, 1.0, weights=np.array([5, 5]), prior=ps.SparsePrior())
