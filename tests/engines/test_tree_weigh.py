"""The tree's weight bounds at every node of small problems, and the choices that sampling is made of."""

from __future__ import annotations

import math

import numpy as np
import pytest

import privsolve as ps
from privsolve.engines.coordinates import weigh as weigh_module
from privsolve.engines.coordinates.bound import new_workspace
from privsolve.engines.coordinates.instance import lay_out
from privsolve.engines.coordinates.weigh import advance, new_weighing, weigh
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
        assert float(np.logaddexp.reduce(shares)) == pytest.approx(own, abs=1e-11) or own == -math.inf
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
    for seed in range(4):
        problem = random_problem(np.random.default_rng([seed, *kind.encode()]), kind, 4 + seed % 2)
        if problem.domain.size > 2500:
            continue
        walk = Walk(problem, kappa, ps.SparsePrior(0.5, 0.5))
        walk.check_below(0, np.ones(len(walk.logs), dtype=bool))
        assert walk.nodes > 1


def test_large_temperatures_need_logarithms_and_raised_terms_stay_bounds() -> None:
    """Losses of thousands at a large κ: rescaled sums underflow, and both ways around it are met."""
    rng = np.random.default_rng(0)
    features = np.eye(4, dtype=int)[rng.integers(0, 4, size=40)] + rng.integers(0, 2, size=(40, 4))
    table = ps.PatternTable(features, rng.integers(0, 4000, size=40), rng.integers(0, 4000, size=40))
    problem = ps.Problem(table, ps.IntegerBall(4, 4))
    walk = Walk(problem, 2.0, ps.SparsePrior(0.5, 0.5))
    assert walk.logs.min() < math.log(weigh_module.SMALLEST) * 10
    walk.check_below(0, np.ones(len(walk.logs), dtype=bool))
