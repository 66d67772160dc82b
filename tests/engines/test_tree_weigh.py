"""The tree's weight bounds at every node of small problems, and the choices that sampling is made of."""

from __future__ import annotations

import itertools
import math
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest
from scipy.stats import chi2, chisquare

import privsolve as ps
from privsolve.engines.coordinates import weigh as weigh_module
from privsolve.engines.coordinates.bound import new_workspace
from privsolve.engines.coordinates.instance import lay_out
from privsolve.engines.coordinates.sample import TreeSampler
from privsolve.engines.coordinates.weigh import advance, new_weighing, weigh
from privsolve.noise.coins import Stream, choose_log, sort_indices
from privsolve.noise.entropy import Randomness
from privsolve.problems.priors import log_weights
from random_problems import random_problem

KINDS = ("integer-ball", "sign-cube", "ternary-cube", "sparse-signs", "sparse-points")


class Walk:
    """All nodes of a small tree, each checked against the sum over its members."""

    def __init__(self, problem: ps.Problem, kappa: float, prior: ps.SparsePrior) -> None:
        self.inst = lay_out(problem, ps.Perturbation.zero(problem.domain))
        members = problem.domain.members()
        losses = problem.losses_of(members)
        self.reference = int(losses.min())
        self.logs = log_weights(prior, problem.domain, members) - kappa * (losses - self.reference)
        columns = [problem.domain.values(j) for j in range(problem.domain.dim)]
        self.indices = np.stack([np.searchsorted(columns[j], members[:, j]) for j in self.inst.order], axis=1)
        tables = prior.log_tables(problem.domain)
        log_prior = np.zeros(self.inst.values.shape)
        for row, j in zip(log_prior, self.inst.order, strict=True):
            row[: len(tables[j])] = tables[j]
        self.ws = new_workspace(self.inst)
        self.weighing = new_weighing(self.inst, kappa, self.reference, log_prior)
        self.nodes = 0
        self.rounding = 1e-13 + 1e-15 * kappa * problem.table.n * problem.loss.largest

    def check_below(self, k: int, inside: np.ndarray) -> float:
        """Checks the node at level k and everything below it; returns its log bound."""
        self.nodes += 1
        own = float(weigh(self.inst, self.ws, self.weighing, k))
        exact = float(np.logaddexp.reduce(self.logs[inside])) if inside.any() else -math.inf
        assert own >= exact - 1e-12 * max(1.0, abs(exact))
        if k >= self.inst.exact_from:
            assert own == pytest.approx(exact, abs=1e-10, rel=1e-13) or own == exact
        if k == len(self.inst.order):
            return own
        shares = self.weighing.child_log[k, : self.inst.n_values[k]].copy()
        total = float(np.logaddexp.reduce(shares))
        assert total == pytest.approx(own, abs=1e-11, rel=4e-16) or own == -math.inf  # or two units in the last place
        # above the exact levels inflation covers rounding
        slack = 0.0 if k < self.inst.exact_from else self.rounding
        bounds = []
        for x, share in enumerate(shares):
            below = inside & (self.indices[:, k] == x)
            if share == -math.inf:
                assert not below.any()
                continue
            advance(self.inst, self.ws, self.weighing, k, x)
            bounds.append(self.check_below(k + 1, below))
            assert bounds[-1] <= share + slack
        if bounds:
            assert np.logaddexp.reduce(bounds) <= own + slack
        return own


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kappa", [0.01, 0.7, 40.0, 3000.0])
def test_bounds_at_every_node(kind: str, kappa: float) -> None:
    for seed in range(8):
        rng = np.random.default_rng([seed, *kind.encode()])
        problem = random_problem(rng, kind, 4 + seed % 2)
        if problem.domain.size > 2500:
            continue
        walk = Walk(problem, kappa, ps.SparsePrior(0.5, 0.5))
        walk.check_below(0, np.ones(len(walk.logs), dtype=bool))
        assert walk.nodes > 1


@pytest.mark.parametrize("seed", range(6))
def test_bounds_never_grow_at_the_largest_logarithms(seed: int) -> None:
    """κ·n around 2.5e8: roundings of logarithms are larger than the usual inflation, and children still fit."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2, size=(30, 5)) * rng.integers(1, 3, size=(30, 5))
    table = ps.PatternTable(rows, *rng.integers(0, 16_000_000, size=(2, 30)))
    walk = Walk(ps.Problem(table, ps.TernaryCube(5)), 0.5, ps.SparsePrior(0.5, 0.5))
    assert 1e8 < 0.5 * table.n < 5e8
    walk.rounding = 1e-15 * 0.5 * table.n  # of exact nodes alone
    walk.check_below(0, np.ones(len(walk.logs), dtype=bool))


def test_the_stated_relative_error_covers_the_weights_of_exact_nodes() -> None:
    """Against forty digits: what an attempt weighs an exact node with is off by far less than is paid for."""
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 2, size=(30, 5)) * rng.integers(1, 3, size=(30, 5))
    problem = ps.Problem(ps.PatternTable(rows, *rng.integers(0, 16_000_000, size=(2, 30))), ps.TernaryCube(5))
    kappa = 0.05
    inst = lay_out(problem, ps.Perturbation.zero(problem.domain))
    sampler = TreeSampler(inst, kappa, np.zeros(inst.values.shape), Randomness.seeded(0), max_nodes=99, max_attempts=9)
    stated = sampler.relative_error(problem.n)
    assert stated < 5e-7
    walk = Walk(problem, kappa, ps.SparsePrior(0.5, 0.5))
    weighing = new_weighing(inst, kappa, walk.reference, np.zeros(inst.values.shape))
    losses = problem.losses_of(problem.domain.members())
    worst = 0.0
    with localcontext(Context(prec=40)):
        for prefix in itertools.product(*(range(int(n)) for n in inst.n_values[: inst.exact_from])):
            for k, x in enumerate(prefix):
                advance(inst, walk.ws, weighing, k, x)
            own = Decimal(float(weigh(inst, walk.ws, weighing, inst.exact_from)))
            below = losses[(walk.indices[:, : inst.exact_from] == prefix).all(axis=1)].tolist()
            exact = sum((-Decimal(kappa) * (loss - min(below))).exp() for loss in below).ln()
            exact -= Decimal(kappa) * (min(below) - walk.reference)
            worst = max(worst, float(abs(own - exact)))
    assert 0 < worst < stated


def test_columns_with_thousands_of_values() -> None:
    """Bounds hold at every node, and draws have the law, where a column has 3,001 values."""
    table = ps.PatternTable([[2, 1], [1, 1], [0, 1]], [40, 0, 3], [0, 25, 9])
    problem = ps.Problem(table, ps.SparsePoints(2, 1, 1, intercept=1500))
    for kappa in (0.05, 30.0):
        walk = Walk(problem, kappa, ps.SparsePrior(0.5, 0.5))
        walk.check_below(0, np.ones(len(walk.logs), dtype=bool))
        assert walk.nodes > 3000
    draws = ps.ExponentialSampler(problem, 0.2, method="tree", random_state=0).draw(4000)
    members = problem.domain.members()
    losses = problem.losses_of(members)
    weight = np.exp(-0.1 * (losses - losses.min()))
    cells = np.unique(np.stack([members[:, 0], np.sign(members[:, 1]), losses], axis=1), axis=0, return_inverse=True)[1]
    at = {tuple(m): c for m, c in zip(members.tolist(), cells.tolist(), strict=True)}
    expected = 4000 * np.bincount(cells, weight) / weight.sum()
    counts = np.bincount([at[tuple(w)] for w in draws.tolist()], minlength=len(expected))
    common = expected > 8
    assert common.sum() > 4
    statistic = ((counts - expected)[common] ** 2 / expected[common]).sum()
    assert chi2.sf(statistic, common.sum() - 1) > 1e-4


@pytest.mark.nightly
def test_choices_among_thousands_have_their_probabilities() -> None:
    weight = np.random.default_rng(0).random(5000) ** 3
    order = np.empty(5000, dtype=np.int64)
    sort_indices(weight, 5000, order)
    assert order.tolist() == np.argsort(weight, kind="stable").tolist()
    sort_indices(np.round(weight, 1), 5000, order)
    assert order.tolist() == np.argsort(np.round(weight, 1), kind="stable").tolist()
    source = Stream(Randomness.seeded(3).uniform(30_000_000), np.zeros(1, dtype=np.int64))
    counts = np.bincount([choose_log(source, np.log(weight), 5000) for _ in range(5000)], minlength=5000)
    groups = np.arange(5000) % 20
    expected = 5000 * np.bincount(groups, weight) / weight.sum()
    assert chisquare(np.bincount(groups, counts), expected).pvalue > 1e-4


def test_large_temperatures_need_logarithms_and_raised_terms_stay_bounds() -> None:
    """Losses of thousands at a large κ: rescaled sums underflow, and both ways around it are met."""
    rng = np.random.default_rng(0)
    features = np.eye(4, dtype=int)[rng.integers(0, 4, size=40)] + rng.integers(0, 2, size=(40, 4))
    table = ps.PatternTable(features, rng.integers(0, 4000, size=40), rng.integers(0, 4000, size=40))
    problem = ps.Problem(table, ps.IntegerBall(4, 4))
    walk = Walk(problem, 2.0, ps.SparsePrior(0.5, 0.5))
    assert walk.logs.min() < math.log(weigh_module.SMALLEST) * 10
    walk.check_below(0, np.ones(len(walk.logs), dtype=bool))
