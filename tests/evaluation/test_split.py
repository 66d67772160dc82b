"""Records held out: every record by a coin of its own, whatever it says."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, chisquare

import privsolve as ps
from privsolve.data.patterns import PatternTable
from privsolve.evaluation import split as module
from privsolve.evaluation.split import PARTS, parts_of, split
from privsolve.learn.evaluating import HoldOut
from privsolve.learn.short_card_recipe import CardLimits, ShortCardRecipe
from privsolve.mechanisms.exponential import ExponentialSampler
from privsolve.noise.entropy import Randomness
from privsolve.privacy.accounting import one_after_another, side_by_side
from privsolve.privacy.profiles import Approximate, BoundedRange, Pure
from promises import promise
from small_tables import INDICATORS, patients


def tables(*counts: tuple[int, int]) -> PatternTable:
    rows = np.arange(len(counts))[:, None]
    return PatternTable(rows, [p for p, _ in counts], [n for _, n in counts])


def test_the_parts_add_up() -> None:
    table = tables((5, 0), (1, 900), (0, 3), (70_000, 12))
    training, (held,) = split([table], 0.2, Randomness.seeded(1))
    assert held is not None
    assert training.n + held.n == table.n
    assert held.n / table.n == pytest.approx(0.2, abs=0.01)
    found = {row: (p, n) for (row,), p, n in zip(held.rows.tolist(), held.positives, held.negatives, strict=True)}
    for row, (p, n) in found.items():
        assert p <= table.positives[row]
        assert n <= table.negatives[row]


def test_equal_records_are_decided_one_by_one_by_the_binomial_law() -> None:
    table, rng, runs = tables((4, 3)), Randomness.seeded(2), 4000
    share = parts_of(0.3) / PARTS
    found = np.zeros((5, 4))
    for _ in range(runs):
        drawn = [module._held_out(counts, parts_of(0.3), rng)[0] for counts in (table.positives, table.negatives)]
        found[drawn[0], drawn[1]] += 1
    wanted = np.outer(binom.pmf(np.arange(5), 4, share), binom.pmf(np.arange(4), 3, share)) * runs
    kept = wanted > 4
    observed, expected = (np.append(law[kept], law[~kept].sum()) for law in (found, wanted))
    assert chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-3


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coins in blocks of a few records are as many as asked for, and each belongs to one record."""
    monkeypatch.setattr(module, "BLOCK", 8)
    counts = np.array([3, 0, 25, 1, 7])
    ones = module._held_out(counts, PARTS, Randomness.seeded(1))
    assert ones.tolist() == counts.tolist()
    some = sum(module._held_out(counts, PARTS // 2, Randomness.seeded(k)) for k in range(400)) / 400
    assert np.abs(some - counts / 2).max() < 0.6


def test_groups_are_split_apart_and_fitted_together() -> None:
    one, other = tables((50, 10), (20, 20)), tables((5, 5))
    training, held = split([one, None, other], 0.5, Randomness.seeded(3))
    assert held[1] is None
    sizes = [0 if part is None else part.n for part in held]
    assert training.n + sum(sizes) == one.n + other.n
    assert len(training.features) <= 2


@pytest.mark.parametrize("share", [0, 1, -0.1, float("nan"), "a"])
def test_shares_are_checked(share: Any) -> None:
    with pytest.raises(ValueError, match="holdout"):
        parts_of(share)


def test_nothing_held_out_and_nothing_left_to_fit_on_are_outcomes() -> None:
    whole = tables((1, 0))
    assert split([whole], 2.0**-16, Randomness.seeded(1)) == (whole, (None,))
    training, held = split([whole, None, whole], 1 - 2.0**-16, Randomness.seeded(1))
    assert held == (whole, None, whole)
    assert (training.n, len(training.rows)) == (0, 1)
    assert (training.names, training.scales, training.ranges) == (whole.names, whole.scales, whole.ranges)


def test_a_fit_on_no_records_follows_the_prior() -> None:
    """What the guarantee asks for beside a table of one record: the law without any loss."""
    ranges = [(0, 1), (1, 1)]
    whole = PatternTable([[1, 1]], [1], [0], ranges=ranges)
    training, _ = split([whole], 1 - 2.0**-16, Randomness.seeded(1))
    cards = ps.SparsePoints(2, 1, 1, 1)
    members = [tuple(row) for row in cards.members().tolist()]
    sampler = ExponentialSampler(ps.Problem(training, cards), 5.0, random_state=3)
    drawn = Counter(tuple(row) for row in sampler.draw(3000).tolist())
    assert chisquare([drawn[member] for member in members]).pvalue > 1e-3


def test_guarantees_side_by_side_and_one_after_another() -> None:
    fit, test = promise(1.0), promise(0.5)
    beside, after = side_by_side(fit, test), one_after_another([fit, test])
    assert (beside.epsilon, after.epsilon) == (1.0, 1.5)
    assert beside.rho == max(fit.rho, test.rho)
    assert after.rho == fit.rho + test.rho
    assert one_after_another([fit]) is fit
    assert "ε = 1 and, on other records, " in beside.mechanism
    assert not isinstance(beside.profile, BoundedRange)
    assert isinstance(after.profile, Pure)
    with_delta = promise(0.3, delta=1e-6)
    assert side_by_side(fit, with_delta).profile == Approximate(1.0, 1e-6)
    assert one_after_another([with_delta, with_delta]).profile == Approximate(0.6, 2e-6)
    with pytest.raises(ValueError, match="do not add up"):
        side_by_side(fit, promise(1.0, adjacency="add-remove"))


def test_what_is_measured_is_what_was_held_out() -> None:
    encoded, fit = INDICATORS.table(patients(400)), ShortCardRecipe(1.0, CardLimits(2, 3, (-4, 4))).run
    run = HoldOut.of(0.25, 1.0, None, INDICATORS).fitted(fit, encoded, (encoded.table,), "replace", random_state=1)
    held = run.diagnostics.values["held_out"]["records"]
    assert 60 < held < 140
    assert run.diagnostics.training_records + held == 400
    assert abs(run.release.evaluation.cells.records() - held) < 60


def test_a_coin_of_just_the_share_is_none() -> None:
    words = partial(np.full, fill_value=0x4000_4000_4000_4000, dtype=np.uint64)
    assert split([tables((50, 0))], 0.25, Randomness(words, seeded=True))[1] == (None,)
