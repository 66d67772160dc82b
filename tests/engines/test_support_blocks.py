"""Moments by bit sets and sums by blocks, against sums over the rows."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

import privsolve as ps
from privsolve.engines.card_rules import no_rule
from privsolve.engines.supports import cells
from privsolve.engines.supports.bits import MANY_LATER, advance, begin, new_walk, pack, turned
from privsolve.engines.supports.block_sums import FINE, ROUGH, TINY, first_sums, rough_exp, target_of
from privsolve.engines.supports.instance import CardInstance, sum_of_least
from privsolve.engines.supports.moments import count_moments

MANY = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
LOSSES = (ps.ZeroOneLoss(), ps.ZeroOneLoss(3, 7))


@dataclass(frozen=True)
class Case:
    """An instance with all its sets of columns."""

    inst: CardInstance

    @classmethod
    def of(cls, seed: int, columns: int, rows: int, most: int, loss: ps.ZeroOneLoss, cost: int) -> Case:
        rng = np.random.default_rng(seed)
        table = (rng.random((rows, columns)) < rng.random(columns)).astype(np.int64)
        counts = rng.integers(0, cost + 1, (2, rows))
        return cls(CardInstance.of(table, *counts, loss, most, [-1, 1], [-1, 0, 1]))

    def sets(self, most: int) -> list[tuple[int, ...]]:
        """All sets of at most so many columns, by number."""
        columns = range(self.inst.n_columns)
        return [s for size in range(most + 1) for s in itertools.combinations(columns, size)]

    def least(self, columns: tuple[int, ...]) -> int:
        """The least that the cells of a support cost, from the rows."""
        at = (self.inst.rows[:, list(columns)] << np.arange(len(columns))).sum(axis=1)
        total = np.zeros(1 << len(columns), dtype=np.int64)
        np.add.at(total, at, self.inst.row_cell)
        return int(sum_of_least(total))


cases = st.builds(
    Case.of,
    st.integers(0, 10**6),
    st.integers(2, 8),
    st.sampled_from((0, 1, 7, 64, 65, 300)),
    st.integers(2, 5),
    st.sampled_from(LOSSES),
    st.sampled_from((1, 5, 1000)),
)


@MANY
@given(cases, st.integers(0, 10**6))
def test_moments_are_sums_over_the_rows(case: Case, seed: int) -> None:
    inst = case.inst
    flip = turned(inst) if seed % 2 else np.random.default_rng(seed).random(inst.n_columns) < 0.5
    found = count_moments(inst, pack(inst, flip)).moment
    has = inst.rows != flip
    wanted = [int(inst.row_cell[has[:, list(s)].all(axis=1)].sum()) for s in case.sets(inst.max_features - 1)]
    assert found.tolist() == wanted


@pytest.mark.nightly
@MANY
@given(cases, st.sampled_from((0.0, 0.02, 0.7, 50.0)), st.integers(0, 10**6))
def test_rows_and_blocks_bound_the_supports_they_stand_for(case: Case, kappa: float, seed: int) -> None:
    """Also where columns are turned round. The sums are close, unless a row weighs nothing beside its block."""
    inst = case.inst
    log_mass = np.random.default_rng(seed).normal(size=inst.n_columns)
    bits, reference = pack(inst, turned(inst)), inst.base + int(sum_of_least(inst.row_cell))
    target = target_of(inst, kappa, log_mass, 0.5, reference)
    sums = first_sums(inst, bits, count_moments(inst, bits), target, no_rule(inst.n_columns, inst.max_features))
    prefix = inst.max_features - 2
    # each row has TINY on top, relative to the heaviest pair beside it but for the prior of two columns
    negligible = np.log(ROUGH / TINY) - 2 * np.ptp(log_mass)
    top = {
        s: 0.5 + log_mass[list(s)].sum() - kappa * (inst.base + case.least(s) - reference)
        for s in case.sets(inst.max_features)
    }
    numbers = {s: i for i, s in enumerate(case.sets(inst.max_features - 1))}
    for s, number in numbers.items():
        below = logsumexp([log for other, log in top.items() if other[: len(s)] == s])
        if len(s) == inst.max_features - 1:
            row = sums.row[number - sums.first_row]
            assert row >= below
            near = 3 * ROUGH
            block = logsumexp([log for other, log in top.items() if other[:prefix] == s[:prefix]])
            assert row < below + near or row < block - negligible
        elif len(s) == prefix:
            assert sums.block[number] >= below
            assert sums.block[number] < below + 4 * ROUGH
        else:
            assert sums.block[number] == pytest.approx(top[s], abs=1e-7)


def test_listing_counts_the_same_moments_by_bits_as_by_scattering(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed, most in itertools.product(range(3), range(5)):
        inst = Case.of(seed, 6, 200, most, ps.ZeroOneLoss(2, 3), 9).inst
        scattered = cells.list_supports(inst)
        monkeypatch.setattr(cells, "LARGEST_SCATTER", 0)
        counted = cells.list_supports(inst)
        monkeypatch.undo()
        assert (counted.moment == scattered.moment).all()
        assert (counted.bayes == scattered.bayes).all()


def test_moments_are_the_same_where_rows_are_copied_for_the_last_column() -> None:
    case = Case.of(3, MANY_LATER + 8, 3000, 5, ps.ZeroOneLoss(3, 7), 3)
    inst = case.inst
    bits = pack(inst, np.zeros(inst.n_columns, dtype=np.bool_))
    walk, copied = new_walk(bits, inst.n_columns, 2), set()
    more = begin(walk, 0)
    while more:
        copied.add(int(walk.level[0]) == 2)
        more = advance(walk)
    assert copied == {True, False}
    moment, sets = count_moments(inst, bits).moment, case.sets(4)
    for number in np.random.default_rng(0).integers(len(sets), size=2000):
        has = inst.rows[:, list(sets[number])].all(axis=1)
        assert moment[number] == inst.row_cell[has].sum(), sets[number]


def test_single_precision_is_as_good_as_the_sums_assume() -> None:
    x = -np.concatenate([np.linspace(0, 60, 20_001), [0.0]]).astype(np.float32)
    found = np.array([rough_exp(v) for v in x], dtype=np.float64)
    assert np.abs(found / np.exp(x.astype(np.float64)) - 1).max() < 1e-5
    assert 0 < rough_exp(np.float32(-5000.0)) < 1e-35
    assert FINE < ROUGH
