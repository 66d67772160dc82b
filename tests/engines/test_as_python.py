"""Engines as the interpreter runs them: the same results as compiled code, and fast paths against slow ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import privsolve as ps
import tiny_engines
from privsolve.domains.trees import TreeQuestions
from privsolve.engines.semirings import COSTS, WEIGHTS
from privsolve.engines.supports.bits import count_bits, pack
from privsolve.engines.supports.chain import new_current
from privsolve.engines.supports.fold import evaluate, fill_up, folding_order, load, new_fold, sketch
from privsolve.engines.supports.instance import CardInstance
from privsolve.engines.supports.moments import add_least
from privsolve.engines.trees.sampler import TreeSums
from privsolve.engines.trees.sums import _any_values, _two_values, add_pairs, pairs, rows_of
from privsolve.models.leaves import LabelLeaves


def test_every_engine_gives_the_same_without_the_compiler() -> None:
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    script = Path(tiny_engines.__file__)
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(json.dumps(tiny_engines.results(), default=str))


def instance(seed: int) -> CardInstance:
    rng = np.random.default_rng(seed)
    rows, counts = rng.integers(0, 2, (70, 4)), rng.integers(0, 4, (2, 70))
    return CardInstance.of(rows, *counts, ps.ZeroOneLoss(), 4, [-2, -1, 1], [-1, 0, 1, 2])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("ring", [COSTS, WEIGHTS], ids=["costs", "weights"])
def test_sketches_of_a_step_are_those_of_a_table(seed: int, ring: object) -> None:
    inst, rng = instance(seed), np.random.default_rng(seed)
    exact = ring is COSTS
    weight = rng.integers(-50, 50, (4, 3)) if exact else rng.random((4, 3))
    intercept = rng.integers(-50, 50, 4) if exact else rng.random(4)
    grid, fold = new_fold(inst, intercept)
    filled, now = fill_up(weight, 2**61 if exact else 0.0), new_current(inst)
    now.columns[:] = range(4)
    now.cells[:] = rng.integers(-20, 20, 16)
    folding_order(now.cells, 4, fold)
    arguments = ring, grid, fold, 4, now.cells, 8 if exact else -0.1, now.columns, filled
    fast = sketch(*arguments)
    load(*arguments)
    assert fast == pytest.approx(evaluate(ring, grid, fold, 4, 0, 0), rel=1e-12, abs=0)


@pytest.mark.parametrize("seed", range(5))
def test_bits_are_counted_as_rows_are(seed: int) -> None:
    inst = instance(seed)
    bits = pack(inst, np.zeros(4, dtype=np.bool_))
    mask, counted = bits.columns[:, 0].copy(), np.zeros(4, dtype=np.int64)
    count_bits(bits.columns, bits.start, bits.weight, mask, 1, counted)
    has = inst.rows[:, 0] == 1
    assert counted[1:].tolist() == (inst.row_cell[has] @ inst.rows[has])[1:].tolist()


def test_narrow_and_wide_cells_lose_the_same() -> None:
    rng = np.random.default_rng(0)
    both, one, other = rng.integers(-99, 99, (3, 50))
    for whole in (-40, 7):
        losses = []
        for kind in (np.int32, np.int64):
            loss = np.zeros(50, dtype=kind)
            add_least(both.astype(kind), one.astype(kind), other.astype(kind), kind(whole), loss)
            losses.append(loss.tolist())
        assert losses[0] == losses[1]


def grown(seed: int) -> tuple[ps.TreeProblem, TreeSums]:
    rng = np.random.default_rng(seed)
    table = ps.PatternTable(rng.integers(0, 2, (40, 4)), *rng.integers(0, 5, (2, 40)))
    trees = ps.DecisionTrees(TreeQuestions.plain(4), 3, LabelLeaves([0, 1]))
    problem = ps.TreeProblem.from_table(table, trees)
    return problem, TreeSums(problem, 0.3)


@pytest.mark.parametrize("seed", range(5))
def test_pairs_are_counted_and_two_values_are_any_values(seed: int) -> None:
    problem, sums = grown(seed)
    rows, law, m, width = rows_of(problem), sums.law, 4, 2
    assert law.costs.shape == (2, width)
    cell = np.zeros((pairs(m) + 1, width), dtype=np.int64)
    everything = np.full(rows.sets.shape[1], ~np.uint64(0), dtype=np.uint64)
    add_pairs(rows, everything, cell, np.zeros_like(everything))
    each = problem.answers[:, :, None] * problem.answers[:, None, :]
    both = np.einsum("rij,rs->ijs", each.astype(np.int64), problem.statistics)
    assert np.array_equal(cell[:-1], both[np.triu_indices(m)])
    assert np.array_equal(cell[-1], problem.statistics.sum(axis=0))
    scratch, cost, opened = (
        np.zeros((4, width), dtype=np.int64),
        np.zeros(2, dtype=np.int64),
        np.ones(m, dtype=np.bool_),
    )
    for i in range(m):
        loss, weight = np.zeros((2, 4, m), dtype=np.int64), np.zeros((2, 4, m))
        _any_values(law, cell, opened, i, scratch, cost, loss[0], weight[0])
        _two_values(law, cell, opened, i, loss[1], weight[1])
        assert loss[0].tolist() == loss[1].tolist()
        assert weight[0] == pytest.approx(weight[1], rel=1e-14)
