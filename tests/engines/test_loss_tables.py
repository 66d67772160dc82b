"""Losses of several steps, through the public interface: optima against enumeration, laws against exact probabilities."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import privsolve as ps
from privsolve.engines.supports.costs import hull_of
from privsolve.losses import LinearLoss, ScoreLoss, loss_from_dict
from privsolve.mechanisms.exponential import ExponentialSampler, inverse_temperature
from privsolve.oracles import EnumerationOracle, TreeOracle
from privsolve.problems.priors import log_weights
from random_problems import DOMAIN_KINDS, TABLES, random_perturbation, random_problem, random_table


def declared(problem: ps.Problem) -> ps.Problem:
    """The same problem with its 0/1 columns declared, so that scorecards go to the supports-first tree."""
    table, domain = problem.table, problem.domain
    assert isinstance(domain, ps.SparsePoints)
    features = (table.features > 0).astype(int)
    features[:, domain.columns :] = 1
    ranges = [(0, 1)] * domain.columns + [(1, 1)] * (domain.dim - domain.columns)
    binary = ps.PatternTable(features, table.positives, table.negatives, ranges=ranges)
    return ps.Problem(binary, domain, problem.loss)


def random_case(seed: int, kind: str) -> ps.Problem:
    rng = np.random.default_rng([seed, *kind.encode()])
    loss = list(TABLES.values())[seed] if seed < len(TABLES) else random_table(rng)
    problem = random_problem(rng, kind if kind != "scorecards" else "sparse-points", int(rng.integers(1, 7)), loss)
    return declared(problem) if kind == "scorecards" else problem


@pytest.mark.parametrize("kind", [*DOMAIN_KINDS, "scorecards"])
def test_the_optimum_is_that_of_enumeration(kind: str) -> None:
    rng = np.random.default_rng(5)
    for seed in range(25):
        problem = random_case(seed, kind)
        perturbations = [ps.Perturbation.zero(problem.domain), random_perturbation(rng, problem)]
        if kind == "scorecards":  # tables without a norm are what the supports-first tree takes
            tables = tuple(
                rng.integers(-(2**21), 2**21, len(problem.domain.values(j))) for j in range(problem.domain.dim)
            )
            perturbations[1] = ps.Perturbation(problem.domain, tables)
        for perturbation in perturbations:
            found = TreeOracle().minimise(problem, perturbation)
            assert ("supports" in found.work) == (kind == "scorecards")
            assert found.value == found.lower == EnumerationOracle().minimise(problem, perturbation).value


def chi_square(draws: np.ndarray, problem: ps.Problem, kappa: float) -> float:
    """The statistic per degree of freedom, members expected fewer than ten times taken together."""
    members = problem.domain.members()
    logs = log_weights(ps.UniformPrior(), problem.domain, members) - kappa * problem.losses_of(members)
    law = np.exp(logs - logs.max())
    expected = len(draws) * law / law.sum()
    at = {tuple(m): i for i, m in enumerate(members.tolist())}
    counts = np.bincount([at[tuple(w)] for w in draws.tolist()], minlength=len(members))
    rare = expected < 10
    counts, expected = np.append(counts[~rare], counts[rare].sum()), np.append(expected[~rare], expected[rare].sum())
    keep = expected >= 10
    assert keep.sum() > 3
    statistic = ((counts - expected)[keep] ** 2 / expected[keep]).sum()
    return float((statistic - keep.sum()) / np.sqrt(2 * keep.sum()))


@pytest.mark.parametrize("name", ["Brier", "not monotone", "stairs"])
@pytest.mark.parametrize("method", ["tree", "supports", "enumeration"])
def test_draws_have_the_exact_law_and_a_wrong_temperature_is_noticed(method: str, name: str) -> None:
    rng = np.random.default_rng(2)
    features = rng.integers(0, 2, size=(40, 4))
    features[:, -1] = 1
    table = ps.PatternTable(features, *rng.integers(0, 40, size=(2, 40)))
    problem = ps.Problem(table, ps.SparsePoints(4, 2, 2, (-2, 2)), TABLES[name])
    epsilon = 0.1
    draws = ExponentialSampler(problem, epsilon, method=method, random_state=1).draw(20_000)
    kappa = inverse_temperature(epsilon, "replace", problem.loss)
    assert abs(chi_square(draws, problem, kappa)) < 5
    assert chi_square(draws, problem, 1.1 * kappa) > 8


@pytest.mark.parametrize("kind", ["integer-ball", "ternary-cube", "sparse-points"])
def test_the_coordinate_tree_draws_with_fixed_point_features(kind: str) -> None:
    """Scores between whole points are rounded up, on row levels and table levels alike."""
    tested = 0
    for seed in range(12):
        problem = random_case(seed, kind)
        members = problem.domain.members()
        kappa = inverse_temperature(1.0, "replace", problem.loss)
        sampler = ExponentialSampler(problem, 1.0, method="tree", random_state=seed)
        logs = -kappa * (problem.losses_of(members) - sampler.reference)
        assert sampler.log_partition() == pytest.approx(np.logaddexp.reduce(logs), abs=1e-9)
        tested += problem.table.unit > 1
    assert tested > 1


def test_the_range_is_what_a_record_can_change() -> None:
    loss = ps.ScoreTable(-1, [7, 4, 4, 0], [3, 4, 5, 6])
    assert (loss.largest, loss.highest, loss.is_step) == (7, 7, False)
    assert ps.ZeroOneLoss(2, 5).largest == 5
    assert ps.ZeroOneLoss().is_step
    assert ps.ZeroOneLoss(2, 5).table.tolist() == [[5, 0], [0, 2]]
    assert inverse_temperature(1.0, "replace", loss) == pytest.approx(1 / 14, rel=1e-5)
    assert inverse_temperature(1.0, "add-remove", loss) == pytest.approx(1 / 7, rel=1e-5)


def test_zero_one_loss_is_the_table_with_one_step() -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        problem = random_problem(rng, "ternary-cube", 4)
        false_negative, false_positive = (int(problem.loss.table[y].max()) for y in (0, 1))
        table = ps.ScoreTable(-1, [false_negative] * 2 + [0] * 2, [0] * 2 + [false_positive] * 2)
        same = ps.Problem(problem.table, problem.domain, table)
        members = problem.domain.members()
        assert (same.losses_of(members) == problem.losses_of(members)).all(), seed
        assert same.total_loss(members[3]) == problem.total_loss(members[3])


def test_losses_are_written_and_read_back() -> None:
    for loss in (*TABLES.values(), ps.ZeroOneLoss(2, 3), LinearLoss(4)):
        assert loss_from_dict(json.loads(json.dumps(loss.to_dict()))) == loss
    assert ps.ZeroOneLoss(2, 3).to_dict() == {"kind": "zero-one", "false_positive": 2, "false_negative": 3}
    assert LinearLoss(4).to_dict() == {"kind": "linear", "largest": 4}
    release = ps.exponential(random_case(0, "ternary-cube"), 1.0, random_state=0).release
    assert ps.Release.from_json(release.to_json()).loss == TABLES["Brier"]


def test_a_loss_of_ones_own_is_one_class() -> None:
    @dataclass(frozen=True)
    class Margin(ScoreLoss):
        """A mistake costs two, a right answer by less than `margin` points one."""

        margin: int
        kind: ClassVar[str] = "margin-of-a-test"
        first: ClassVar[int] = 0  # type: ignore[assignment]

        @property
        def table(self) -> np.ndarray:
            positive = [2, *[1] * (self.margin - 1), 0]
            return np.array([positive, [0, *[2] * self.margin]])

    problem = random_problem(np.random.default_rng(3), "sparse-points", 3, Margin(2))  # type: ignore[arg-type]
    run = ps.exponential(problem, 1.0, random_state=0)
    assert isinstance(loss_from_dict(run.release.loss.to_dict()), Margin)
    best = TreeOracle().minimise(problem, ps.Perturbation.zero(problem.domain))
    assert best.objective == problem.losses_of(problem.domain.members()).min()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.5, [1], [0]), "start"),
        ((0, [], []), "positive"),
        ((0, "12", [1, 2]), "positive"),
        ((0, [1, 2], [1]), "one entry per score"),
        ((0, [1, -2], [1, 3]), "positive"),
        ((0, [1, 2], [1, 2.5]), "negative"),
        ((0, [1, 2**21], [1, 2]), "positive"),
        ((0, [3, 3], [1, 1]), "constant"),
    ],
)
def test_wrong_tables_are_named(arguments: tuple[int, list[int], list[int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ps.ScoreTable(*arguments)


@pytest.mark.parametrize("name", ["highs", "gurobi"])
def test_mip_oracles_refuse_before_noise_is_drawn(name: str) -> None:
    account = ps.Accountant(epsilon=1.0, delta=0.0)
    problem = random_case(0, "ternary-cube")
    with pytest.raises(ValueError, match=r"loss of several steps"):
        ps.opdisc(problem, 1.0, oracle=name, budget=account)
    assert ps.opdisc(problem, 1.0, oracle="tree", budget=account, random_state=0)


def test_the_hull_holds_every_best_score() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        positive, negative = rng.integers(0, 12, size=(2, int(rng.integers(1, 12))))
        hull = hull_of(positive, negative)
        for records in [(0, 1), (1, 0), *rng.integers(0, 30, size=(20, 2)).tolist()]:
            costs = records[0] * positive + records[1] * negative
            assert (hull @ records).min() == costs.min()


def test_too_many_records_for_a_table_are_refused_before_paying() -> None:
    domain = ps.SparsePoints(2, 1, 1)
    table = ps.PatternTable([[1, 0], [0, 1]], [2**30, 2**30], [1, 1], ranges=[(0, 1)] * 2)
    with pytest.raises(ps.PrivsolveError, match=r"2\^31"):
        ps.exponential(ps.Problem(table, domain, ps.ScoreTable(0, [2, 1, 0], [0, 1, 2])), 1e-4)
