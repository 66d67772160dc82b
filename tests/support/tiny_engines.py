"""Every engine on tiny cases, with fixed seeds: what compiled code and the interpreter must agree on."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import privsolve as ps
from privsolve.domains import ConstrainedPoints
from privsolve.domains.trees import TreeQuestions
from privsolve.engines.supports import SupportSampler, minimise_supports
from privsolve.mechanisms.exponential import ExponentialSampler
from privsolve.models.leaves import LabelLeaves
from privsolve.noise.entropy import Randomness
from privsolve.oracles import TreeOracle

PATHS = {"listed": 10**6, "blocks": 0}


def cards(path: str) -> dict[str, Any]:
    """Draws with and without constraints, and the best card."""
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 2, (9, 5))
    arrays = rows, rng.integers(0, 6, 9), rng.integers(0, 6, 9), ps.ZeroOneLoss(), 3, [-1, 1], [-1, 0, 1]
    prior = rng.normal(size=(5, 2)), rng.normal(size=3)
    rule = ConstrainedPoints(6, 3, 1, 1, variables=["a", "a", "b", "b", "c"], max_questions=2, required=["c"])
    tables = rng.integers(-(2**20), 2**20, (5, 2)), rng.integers(-(2**20), 2**20, 3), np.zeros(5, dtype=np.int64)
    samplers = [
        SupportSampler(*arrays, *prior, 0.4, Randomness.seeded(1), max_listed=PATHS[path], constraints=constraints)
        for constraints in (None, rule)
    ]
    best = minimise_supports(*arrays, *tables)
    return {
        "draws": [sampler.draw(4).tolist() for sampler in samplers],
        "bound": [round(sampler.log_bound(), 6) for sampler in samplers],
        "best": [best.value, best.weights.tolist()],
    }


def results() -> dict[str, Any]:
    """What every engine gives."""
    rng = np.random.default_rng(3)
    table = ps.PatternTable(rng.integers(0, 2, (8, 4)), *rng.integers(0, 5, (2, 8)))
    ball = ps.Problem(table, ps.IntegerBall(4, 3))
    eta = rng.normal(size=ball.domain.lift_dim) * 3
    trees = ps.DecisionTrees(TreeQuestions.plain(4), 3, LabelLeaves([0, 1]))
    grown = ps.private_tree(ps.TreeProblem.from_table(table, trees), 1.0, random_state=0)
    found: dict[str, Any] = {path: cards(path) for path in PATHS}
    found["coordinates, draws"] = ExponentialSampler(ball, 0.5, random_state=2, method="tree").draw(3).tolist()
    best = TreeOracle(threads=1).minimise(ball, ps.Perturbation.lifted(ball.domain, eta))
    found["coordinates, best"] = np.asarray(best.weights).tolist()
    found["tree"] = grown.release.model.to_dict()
    return found


if __name__ == "__main__":
    print(json.dumps(results(), default=str))
