"""Small cards on top of earlier scores: laws and optima against enumeration, bounds on every support."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import privsolve as ps
from privsolve.engines.stages.points import floor, least, load, new_scratch, sketch, take, weigh
from privsolve.engines.stages.sampler import StageInstance, StageSampler, best_addition, supports_of
from privsolve.losses import ScoreLoss
from privsolve.noise.entropy import Randomness

LOSSES = ("brier", "log", "mistakes")


def random_loss(rng: np.random.Generator, name: str) -> ScoreLoss:
    unit = float(rng.choice([0.3, 0.5, 0.7, 1.0]))
    if name == "mistakes":
        return ps.ZeroOneLoss(*rng.integers(1, 4, 2).tolist())
    clip, span = float(rng.choice([1.0, 2.5, 4.0])), float(rng.choice([1.0, 1.5, 3.5]))
    return ps.BrierLoss(unit, span) if name == "brier" else ps.LogLoss(unit, clip, span)


def random_stage(seed: int, name: str, columns: int = 3) -> StageInstance:
    rng = np.random.default_rng([seed, *name.encode()])
    rows = rng.integers(0, 2, size=(int(rng.integers(1, 12)), columns))
    positives, negatives = rng.integers(0, 70, size=(2, len(rows)))
    points = np.array([[-1, 1], [-2, -1, 1, 2], [1, 2, 3], [-3, 1]][int(rng.integers(4))])
    start = int(rng.integers(-3, 2))
    return StageInstance(
        rows, positives, negatives, rng.integers(-3, 4, len(rows)), random_loss(rng, name), int(rng.integers(0, 4)), points,
        np.arange(start, start + int(rng.integers(1, 5))),
    )  # fmt: skip


def all_cards(inst: StageInstance) -> np.ndarray:
    choices = itertools.product([0, *inst.points], repeat=inst.columns)
    few = [points for points in choices if np.count_nonzero(points) <= inst.most]
    return np.array([(*points, t) for points in few for t in inst.intercepts])


def losses_of(inst: StageInstance, cards: np.ndarray) -> np.ndarray:
    scores = cards[:, :-1] @ inst.rows.T + cards[:, -1:] + inst.earlier
    entries = inst.loss.entries(scores)
    return inst.loss.table[0, entries] @ inst.positives + inst.loss.table[1, entries] @ inst.negatives


def random_prior(inst: StageInstance, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(inst.columns, len(inst.points))), rng.normal(size=len(inst.intercepts))


def log_law(inst: StageInstance, kappa: float, prior: tuple[np.ndarray, np.ndarray], reference: int) -> np.ndarray:
    cards = all_cards(inst)
    logs = prior[1][cards[:, -1] - inst.intercepts[0]] - kappa * (losses_of(inst, cards) - reference)
    for j in range(inst.columns):
        at = np.searchsorted(inst.points, cards[:, j])
        logs += np.where(cards[:, j] == 0, 0.0, prior[0][j, np.minimum(at, len(inst.points) - 1)])
    return logs


def surprise(counts: np.ndarray, logs: np.ndarray) -> tuple[float, int]:
    """The chi-square statistic and its degrees of freedom, cards expected fewer than five times taken together."""
    expected = counts.sum() * np.exp(logs - np.logaddexp.reduce(logs))
    rare = expected < 5
    counts, expected = np.append(counts[~rare], counts[rare].sum()), np.append(expected[~rare], expected[rare].sum())
    keep = expected >= 5
    return float(((counts - expected)[keep] ** 2 / expected[keep]).sum()), int(keep.sum()) - 1


def warmth(counts: np.ndarray, logs: np.ndarray, losses: np.ndarray) -> tuple[float, float]:
    """How far the mean loss of the draws is above the law's, in losses of the law's range, and the variance of that."""
    law, scale = np.exp(logs - np.logaddexp.reduce(logs)), max(1, int(np.ptp(losses)))
    mean = float(law @ losses)
    return float(counts @ losses - counts.sum() * mean) / scale, float(
        counts.sum() * (law @ (losses - mean) ** 2)
    ) / scale**2


@pytest.mark.parametrize("name", LOSSES)
def test_draws_have_the_exact_law_and_what_is_wrong_is_noticed(name: str) -> None:
    """Thirty problems together: as stated, with the temperature off by 10%, and with an entry of the table shifted."""
    right, shifted, freedom = 0.0, 0.0, 0
    cool, hot = np.zeros(2), np.zeros(2)
    for seed in range(30):
        inst = random_stage(seed, name)
        losses = losses_of(inst, all_cards(inst))
        kappa, prior = 10 / max(1, int(np.ptp(losses))), random_prior(inst, seed)
        sampler = StageSampler(inst, *prior, kappa, Randomness.seeded(seed))
        logs = log_law(inst, kappa, prior, sampler.reference)
        assert sampler.log_partition() == pytest.approx(np.logaddexp.reduce(logs), abs=1e-9)
        at = {tuple(card): i for i, card in enumerate(all_cards(inst).tolist())}
        counts = np.bincount([at[tuple(sampler.draw().tolist())] for _ in range(1000)], minlength=len(at))
        statistic, degrees = surprise(counts, logs)
        right, freedom = right + statistic, freedom + degrees
        shifted += surprise(counts, log_law(replace(inst, loss=_shifted(inst.loss)), kappa, prior, 0))[0]
        cool += warmth(counts, logs, losses)
        hot += warmth(counts, log_law(inst, 1.1 * kappa, prior, sampler.reference), losses)
    deviation = np.sqrt(2 * freedom)
    assert abs(right - freedom) < 5 * deviation
    assert shifted - freedom > 5 * deviation
    assert abs(cool[0]) < 5 * np.sqrt(cool[1])
    assert abs(hot[0]) > 5 * np.sqrt(hot[1])


def _shifted(loss: ScoreLoss) -> ps.ScoreTable:
    """The same table, one place further."""
    return ps.ScoreTable(loss.first + 1, loss.table[0].tolist(), loss.table[1].tolist())


@pytest.mark.parametrize("name", LOSSES)
def test_the_best_card_is_that_of_enumeration(name: str) -> None:
    for seed in range(350):
        inst = random_stage(1000 + seed, name)
        best = best_addition(inst)
        found = losses_of(inst, all_cards(inst))
        assert best.loss == found.min() == losses_of(inst, best.weights[None, :])[0], seed
        assert tuple(best.weights) in {tuple(card) for card in all_cards(inst)}


@pytest.mark.parametrize("name", LOSSES)
def test_every_bound_holds_on_every_support(name: str) -> None:
    tightened = 0
    for seed in range(40):
        inst = random_stage(5000 + seed, name, columns=4)
        losses, cards = losses_of(inst, all_cards(inst)), all_cards(inst)
        kappa, prior = 8 / max(1, int(np.ptp(losses))), random_prior(inst, seed)
        sampler = StageSampler(inst, *prior, kappa, Randomness.seeded(seed))
        logs = log_law(inst, kappa, prior, sampler.reference)
        shape, law, scratch = sampler._shape, sampler._law, new_scratch(inst.shape)
        for s, support in enumerate(supports_of(inst.columns, inst.most)):
            size = int((support >= 0).sum())
            take(support[None, :], 0, scratch)
            load(sampler._listed.moment, sampler._listed.child_start, scratch, size)
            mine = (cards[:, :-1] != 0).sum(axis=1) == size
            mine &= (cards[:, support[:size]] != 0).all(axis=1)
            lowest, below = int(least(shape, law, scratch, size)), int(floor(shape, scratch, size))
            assert lowest == losses[mine].min() >= below == sampler._frontier.floor[s]
            exact = np.log(weigh(shape, law, scratch, size, lowest)) - kappa * (lowest - below)
            bound = np.log(sketch(shape, law, scratch, size))
            assert sampler._frontier.top[s] + exact == pytest.approx(np.logaddexp.reduce(logs[mine]), abs=1e-9)
            assert exact <= bound + 1e-12 <= 2e-12
            tightened += bound < -1e-3
    assert tightened > 100


def test_light_cards_are_drawn_with_their_exact_weight() -> None:
    """With a cut in the middle of the law, half of the draws come from the prior."""
    right, freedom = 0.0, 0
    for seed in range(10):
        inst = random_stage(seed, "brier")
        kappa, prior = 6 / max(1, int(np.ptp(losses_of(inst, all_cards(inst))))), random_prior(inst, seed)
        sampler = StageSampler(inst, *prior, kappa, Randomness.seeded(seed), cut=0.7)
        logs = log_law(inst, kappa, prior, sampler.reference)
        at = {tuple(card): i for i, card in enumerate(all_cards(inst).tolist())}
        counts = np.bincount([at[tuple(sampler.draw().tolist())] for _ in range(1000)], minlength=len(at))
        statistic, degrees = surprise(counts, logs)
        right, freedom = right + statistic, freedom + degrees
    assert abs(right - freedom) < 5 * np.sqrt(2 * freedom)


def test_many_records_of_a_row_are_counted_by_binary_digits() -> None:
    few = random_stage(7, "brier")
    many: dict[str, Any] = {"positives": few.positives * 1_000_003, "negatives": few.negatives * 1_000_003}
    assert best_addition(replace(few, **many)).loss == 1_000_003 * best_addition(few).loss
