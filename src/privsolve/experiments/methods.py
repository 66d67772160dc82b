"""What is compared on Adult: each method is one function from a budget and a seed to weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

import privsolve as ps
from privsolve.experiments import dpsgd
from privsolve.experiments.dpsgd import Accounting, DPSGDSettings
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.calibration import gaussian_sigma_published, separator_sigma_published
from privsolve.problems.perturbation import UNIT

Weights = NDArray[np.float64] | NDArray[np.int64]
Seed = np.random.SeedSequence
Fit = Callable[[float, Seed], Weights]

RADIUS_SQ = 23
"""The paper's ball has the radius √d, d = 23."""

PAPER_UNIT, OTHER_UNIT = 99_999, 5_000
"""Of capital gain. In the paper's unit the best weight is 34, and its ball allows at most 4."""

UNITS = (1_000, 2_500, OTHER_UNIT, 10_000, 25_000, PAPER_UNIT)
UNIT_EPSILONS = (0.1, 1.0)
"""The table over units is run at these."""


@cache
def tables(unit: int = PAPER_UNIT) -> tuple[ps.PatternTable, ps.PatternTable]:
    """The 15,682 records that the methods learn from, and records of the test file, in a unit of capital gain."""
    if unit == PAPER_UNIT:
        return ps.datasets.adult_paper(seed=0), ps.datasets.adult_paper(seed=0, split="test")
    train, test = (_in_unit(table, unit) for table in tables())
    return train, test


def _in_unit(table: ps.PatternTable, unit: int) -> ps.PatternTable:
    scales = [unit if name == "capital-gain" else s for name, s in zip(table.names, table.scales, strict=True)]
    return ps.PatternTable(table.features, table.positives, table.negatives, table.names, scales, table.ranges)


def delta(n: int) -> float:
    """`1 / n²`, as in the paper."""
    return float(n) ** -2


def ball(unit: int = PAPER_UNIT) -> ps.Problem:
    """Integer weights of norm at most √23."""
    table, _ = tables(unit)
    return ps.Problem(table, ps.IntegerBall(table.dim, RADIUS_SQ))


def ternary(table: ps.PatternTable) -> ps.Problem:
    """Weights in `{-1, 0, 1}`."""
    return ps.Problem(table, ps.TernaryCube(table.dim))


@cache
def settings() -> dict[float, dict[str, DPSGDSettings]]:
    """What was chosen for DP-SGD at each epsilon on the data without privacy (docs/experiments/adult.md)."""
    text = resources.files("privsolve.experiments").joinpath("adult_tuning.json").read_text(encoding="utf-8")
    return {
        float(epsilon): {name: DPSGDSettings(**chosen) for name, chosen in found.items()}
        for epsilon, found in json.loads(text)["tuned"].items()
    }


# --- as printed -----------------------------------------------------------------------------------


def published_sigma(n: int, epsilon: float) -> float:
    """The scale of the paper's algorithm box: `7GD²√ln(1/δ)/(τε)` with `G = τ = 1`."""
    return gaussian_sigma_published(RADIUS_SQ, 1.0, 1.0, epsilon, delta(n))


def opdisc_printed(problem: ps.Problem, share: float, epsilon: float, seed: Seed) -> Weights:
    """OPDisc with that share of the published scale."""
    scale = share * published_sigma(problem.n, epsilon)
    eta = np.random.default_rng(seed).normal(scale=scale, size=problem.domain.dim + 1)
    return _solve(problem, ps.Perturbation.lifted(problem.domain, eta))


def rspm_printed(problem: ps.Problem, epsilon: float, seed: Seed) -> Weights:
    """The paper's program for RSPM: mistakes minus `Σ η_j w_j` over `{-1, 0, 1}^d`, with `m = d` in the scale."""
    sigma = separator_sigma_published(problem.domain.dim, epsilon, delta(problem.n))
    eta = np.random.default_rng(seed).normal(scale=sigma, size=problem.domain.dim)
    coordinates = (np.rint(-UNIT * x * problem.domain.values(j)).astype(np.int64) for j, x in enumerate(eta))
    return _solve(problem, ps.Perturbation(problem.domain, tuple(coordinates)))


def _solve(problem: ps.Problem, perturbation: ps.Perturbation) -> Weights:
    weights: Weights = ps.oracles.get("tree").minimise(problem, perturbation).weights
    return weights


def _dp_sgd(chosen: str, unit: int = PAPER_UNIT) -> Fit:
    """DP-SGD with one of the settings; `"printed"` by a plain reading: moments, one record added or removed."""

    def fit(epsilon: float, seed: Seed) -> Weights:
        train, _ = tables(unit)
        printed = chosen == "printed"
        adjacency = Adjacency.ADD_REMOVE if printed else Adjacency.REPLACE
        accounting = Accounting(epsilon, delta(train.n), adjacency, moments=printed)
        return dpsgd.dp_sgd(train, accounting, settings()[epsilon][chosen], seed)

    return fit


# --- proved ---------------------------------------------------------------------------------------


def _exponential(unit: int) -> Fit:
    prior = ps.SparsePrior()
    return lambda e, seed: ps.exponential(ball(unit), e, prior=prior, random_state=seed).release.weights


@dataclass(frozen=True)
class Method:
    """One curve. `epsilons` limits where it is run; everywhere if left out."""

    key: str
    label: str
    privacy: str
    fit: Fit
    unit: int = PAPER_UNIT
    epsilons: tuple[float, ...] | None = None


CLAIMED = "(ε, δ) claimed"
OPDISC, HALF, RSPM, LR = PRINTED = ("opdisc-printed", "opdisc-half", "rspm-printed", "lr-printed")
EXTENDED = ("opdisc", "rspm", "exponential", "exponential-5000", "dp-sgd", "dp-sgd-5000")
"""The curves of the second figure."""

METHODS = {
    method.key: method
    for method in (
        Method(OPDISC, "OPDisc", CLAIMED, lambda e, seed: opdisc_printed(ball(), 1.0, e, seed)),
        Method(HALF, "OPDisc, half scale", CLAIMED, lambda e, seed: opdisc_printed(ball(), 0.5, e, seed)),
        Method(RSPM, "RSPM", CLAIMED, lambda e, seed: rspm_printed(ternary(tables()[0]), e, seed)),
        Method(LR, "private LR", "(ε, δ), add-remove", _dp_sgd("printed")),
        Method("opdisc", "OPDisc, proved", "ε", lambda e, s: ps.opdisc(ball(), e, random_state=s).release.weights),
        Method(
            "rspm",
            "RSPM, proved",
            "ε",
            lambda e, s: ps.rspm(ternary(tables()[0]), e, random_state=s).release.weights,
        ),
        Method("exponential", "exponential", "ε", _exponential(PAPER_UNIT)),
        Method("exponential-5000", "exponential, 5,000s", "ε", _exponential(OTHER_UNIT), OTHER_UNIT),
        Method("dp-sgd", "LR, tuned", "(ε, δ)", _dp_sgd("tuned")),
        Method("dp-sgd-5000", "LR, tuned, 5,000s", "(ε, δ)", _dp_sgd("tuned_other", OTHER_UNIT), OTHER_UNIT),
        *(
            Method(f"exponential-{unit}", f"exponential, {unit:,}s", "ε", _exponential(unit), unit, UNIT_EPSILONS)
            for unit in UNITS
            if unit not in (PAPER_UNIT, OTHER_UNIT)
        ),
    )
}


def unit_key(unit: int) -> str:
    """The exponential mechanism with capital gain in that unit."""
    return "exponential" if unit == PAPER_UNIT else f"exponential-{unit}"


def accuracy(table: ps.PatternTable, weights: Weights) -> float:
    """Share of records that "positive iff the score is above 0" classifies correctly."""
    return table.accuracy(weights) if weights.dtype.kind == "i" else dpsgd.accuracy(table, np.asarray(weights, float))
