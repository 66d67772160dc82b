"""The tree's bound at every node of small problems, against the minimum over the members below it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import privsolve as ps
from privsolve.engines.coordinates import instance
from privsolve.engines.coordinates.bound import new_workspace
from privsolve.engines.coordinates.instance import INFEASIBLE, WIDEST_TABLE, Layout, lay_out
from privsolve.engines.coordinates.minimise import FEASIBLE_LIMIT, enter, new_search, step
from privsolve.problems.perturbation import UNIT
from random_problems import random_perturbation, random_problem

KINDS = ("integer-ball", "sign-cube", "ternary-cube", "sparse-signs", "sparse-points")
SMALL = 1500  # members at most, so that a tree has a few thousand nodes


class Walk:
    """Every node of one problem's tree that the budget allows, parents before children."""

    def __init__(self, problem: ps.Problem, perturbation: ps.Perturbation) -> None:
        self.inst: Layout = lay_out(problem, perturbation)
        self.ws, self.search = new_workspace(self.inst), new_search(self.inst)
        self.dim = problem.domain.dim
        members = problem.domain.members()
        self.values = problem.losses_of(members) * UNIT + perturbation.of_members(members)
        columns = [problem.domain.values(j) for j in range(self.dim)]
        self.indices = np.stack([np.searchsorted(columns[j], members[:, j]) for j in self.inst.order], axis=1)

    def nodes(self) -> Iterator[tuple[int, int, int, int]]:
        """Level, bound, the bound its parent gave it, and the true minimum (INFEASIBLE without members)."""
        yield from self._below(0, INFEASIBLE * -1, np.ones(len(self.values), dtype=bool))

    def _below(self, k: int, promised: int, inside: np.ndarray) -> Iterator[tuple[int, int, int, int]]:
        best = int(self.values[inside].min()) if inside.any() else INFEASIBLE
        bound = int(enter(self.inst, self.ws, self.search, k))
        yield k, bound, promised, best
        if k < self.dim:
            children = self.search.child_bound[k].copy()
            assert min(children[: self.inst.n_values[k]]) == bound
            for x in range(int(self.inst.n_values[k])):
                below = inside & (self.indices[:, k] == x)
                if not below.any():
                    assert children[x] >= FEASIBLE_LIMIT
                    continue
                step(self.inst, self.ws, self.search, k, x)
                yield from self._below(k + 1, int(children[x]), below)


def check(problem: ps.Problem, perturbation: ps.Perturbation, message: str) -> dict[str, int]:
    seen = {"nodes": 0, "tight": 0, "improved": 0}
    walk = Walk(problem, perturbation)
    for level, bound, promised, best in walk.nodes():
        where = f"{message} level {level}"
        assert bound <= best, where
        assert bound >= promised, where
        if level >= walk.inst.exact_from or level == walk.dim:
            assert bound == best, where
        seen["nodes"] += 1
        seen["tight"] += bound == best
        seen["improved"] += bound > promised
    return seen


@pytest.mark.parametrize("widest", [4, WIDEST_TABLE])
@pytest.mark.parametrize("kind", KINDS)
def test_bound_holds_at_every_node(kind: str, widest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Narrow tables force columns into row levels; wide ones leave nearly all to the table levels."""
    monkeypatch.setattr(instance, "WIDEST_TABLE", widest)
    total = {"nodes": 0, "tight": 0, "improved": 0}
    row_levels = table_levels = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, *kind.encode()])
        problem = random_problem(rng, kind, int(rng.integers(1, 8)))
        if problem.domain.size > SMALL:
            continue
        perturbation = random_perturbation(rng, problem)
        seen = check(problem, perturbation, f"{kind} seed {seed}")
        total = {name: count + seen[name] for name, count in total.items()}
        levels = lay_out(problem, perturbation).row_levels
        row_levels, table_levels = row_levels + levels, table_levels + problem.domain.dim - levels
    assert total["nodes"] > 1500
    assert 0 < total["tight"] < total["nodes"]  # not vacuous: some bounds are strict, and children improve on parents
    assert total["improved"] > 50
    assert (row_levels > table_levels) == (widest == 4)


def slice_of_adult(columns: list[int]) -> ps.PatternTable:
    adult = ps.datasets.adult_paper(seed=0)
    rows = adult.features[:, columns]
    return ps.PatternTable(rows, adult.positives, adult.negatives, scales=[adult.scales[j] for j in columns])


@pytest.mark.parametrize("columns", [[0, 5, 13, 20], [3, 18, 21, 22], [20, 21, 22]])
def test_bound_on_slices_of_adult(columns: list[int]) -> None:
    """Numeric columns are wide, so these have row levels above table levels."""
    problem = ps.Problem(slice_of_adult(columns), ps.IntegerBall(len(columns), 4))
    for scale in (0.0, 100.0):
        eta = np.random.default_rng(1).normal(size=problem.domain.lift_dim) * scale
        perturbation = ps.Perturbation.lifted(problem.domain, eta)
        assert lay_out(problem, perturbation).row_levels > 0
        check(problem, perturbation, f"columns {columns}")


def test_bound_with_counts_beyond_32_bits() -> None:
    rng = np.random.default_rng(0)
    features = rng.integers(0, 2, size=(12, 4))
    table = ps.PatternTable(features, rng.integers(0, 2**33, 12), rng.integers(0, 2**33, 12))
    for domain in (ps.TernaryCube(4), ps.IntegerBall(4, 5)):
        problem = ps.Problem(table, domain)
        check(problem, ps.Perturbation.zero(domain), repr(domain))


def test_a_penalty_on_the_norm_is_part_of_the_bound() -> None:
    rng = np.random.default_rng(4)
    problem = random_problem(rng, "integer-ball", 3)
    norm = rng.integers(-(2**22), 2**22, size=len(problem.domain.norms_sq))
    zero = tuple(np.zeros(len(problem.domain.values(j)), dtype=np.int64) for j in range(3))
    check(problem, ps.Perturbation(problem.domain, zero, norm), "norm")


@pytest.mark.parametrize("exclusive", [True, False])
def test_exact_from_is_where_rows_have_one_free_column(exclusive: bool) -> None:
    """One-hot columns never meet in a row, so the root is solved by its bound."""
    features: Any = np.eye(4, dtype=int) if exclusive else np.ones((1, 4), dtype=int)
    problem = ps.Problem(ps.PatternTable(features, [1] * len(features), [2] * len(features)), ps.TernaryCube(4))
    inst = lay_out(problem, ps.Perturbation.zero(problem.domain))
    assert inst.exact_from == (0 if exclusive else 3)
    assert sorted(inst.order.tolist()) == [0, 1, 2, 3]
