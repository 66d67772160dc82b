"""What is compared on Adult: each method is one function from a budget and a seed to weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

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
Tables = tuple[ps.PatternTable, ps.PatternTable]

RADIUS_SQ = 23
"""The paper's ball has the radius √d, d = 23."""

PAPER_UNIT, OTHER_UNIT = 99_999, 5_000
"""Of capital gain. In the paper's unit the best weight is 34, and its ball allows at most 4."""

UNITS = (1_000, 2_500, OTHER_UNIT, 10_000, 25_000, PAPER_UNIT)
UNIT_EPSILONS = (0.1, 1.0)
"""The table over units is run at these."""


@dataclass(frozen=True)
class Tuned:
    """Settings of DP-SGD for one epsilon, chosen on the data without privacy as the paper does it."""

    printed: DPSGDSettings
    tuned: DPSGDSettings
    tuned_other: DPSGDSettings


@dataclass(frozen=True)
class Setup:
    """The paper's data in any unit of capital gain, and the settings that were tuned."""

    tuned: Mapping[float, Tuned]
    _tables: dict[int, Tables] = field(default_factory=dict)

    def tables(self, unit: int = PAPER_UNIT) -> Tables:
        """The 15,682 records that the methods learn from, and records of the test file."""
        if not self._tables:
            self._tables[PAPER_UNIT] = (
                ps.datasets.adult_paper(seed=0),
                ps.datasets.adult_paper(seed=0, split="test"),
            )
        if unit not in self._tables:
            train, test = self._tables[PAPER_UNIT]
            self._tables[unit] = _in_unit(train, unit), _in_unit(test, unit)
        return self._tables[unit]

    def train(self, unit: int = PAPER_UNIT) -> ps.PatternTable:
        """The table to learn from."""
        return self.tables(unit)[0]

    @property
    def delta(self) -> float:
        """`1 / n²`, as in the paper."""
        return float(self.train().n) ** -2

    def ball(self, unit: int = PAPER_UNIT) -> ps.Problem:
        """Integer weights of norm at most √23."""
        table = self.train(unit)
        return ps.Problem(table, ps.IntegerBall(table.dim, RADIUS_SQ))

    def ternary(self) -> ps.Problem:
        """Weights in `{-1, 0, 1}`."""
        return ps.Problem(self.train(), ps.TernaryCube(self.train().dim))


def _in_unit(table: ps.PatternTable, unit: int) -> ps.PatternTable:
    scales = [unit if name == "capital-gain" else s for name, s in zip(table.names, table.scales, strict=True)]
    return ps.PatternTable(table.features, table.positives, table.negatives, table.names, scales, table.ranges)


# --- as printed -----------------------------------------------------------------------------------


def published_sigma(setup: Setup, epsilon: float) -> float:
    """The scale of the paper's algorithm box: `7GD²√ln(1/δ)/(τε)` with `G = τ = 1`."""
    return gaussian_sigma_published(RADIUS_SQ, 1.0, 1.0, epsilon, setup.delta)


def opdisc_printed(share: float) -> Fit:
    """OPDisc with that share of the published scale."""

    def fit(setup: Setup, epsilon: float, seed: Seed) -> Weights:
        problem = setup.ball()
        eta = np.random.default_rng(seed).normal(
            scale=share * published_sigma(setup, epsilon), size=problem.domain.dim + 1
        )
        return _solve(problem, ps.Perturbation.lifted(problem.domain, eta))

    return fit


def rspm_printed(setup: Setup, epsilon: float, seed: Seed) -> Weights:
    """The paper's program for RSPM: mistakes minus `Σ η_j w_j` over `{-1, 0, 1}^d`, with `m = d` in the scale."""
    problem = setup.ternary()
    sigma = separator_sigma_published(problem.domain.dim, epsilon, setup.delta)
    eta = np.random.default_rng(seed).normal(scale=sigma, size=problem.domain.dim)
    tables = (np.rint(-UNIT * x * problem.domain.values(j)).astype(np.int64) for j, x in enumerate(eta))
    return _solve(problem, ps.Perturbation(problem.domain, tuple(tables)))


def _solve(problem: ps.Problem, perturbation: ps.Perturbation) -> Weights:
    weights: Weights = ps.oracles.get("tree").minimise(problem, perturbation).weights
    return weights


def lr_printed(setup: Setup, epsilon: float, seed: Seed) -> Weights:
    """DP-SGD by a plain reading: moments accountant as in TensorFlow Privacy, the mean of all iterates."""
    return dpsgd.dp_sgd(setup.train(), moments(epsilon, setup.delta), setup.tuned[epsilon].printed, seed)


def moments(epsilon: float, delta: float) -> Accounting:
    """The accounting of TensorFlow Privacy: moments, one record added or removed."""
    return Accounting(epsilon, delta, Adjacency.ADD_REMOVE, moments=True)


def printed_grid(n: int) -> list[DPSGDSettings]:
    """What the paper names: clip norm, mini-batch size and learning rate; ten epochs, the mean of all iterates."""
    grid: list[DPSGDSettings] = []
    for batch in (256, 1024, 4096):
        rate = batch / n
        grid += dpsgd.settings_grid(
            n, clips=(0.3, 1.0), rates=(rate,), steps=(round(10 / rate),), reaches=(0.1, 0.3, 1.0, 3.0), averaged=(1.0,)
        )
    return grid


# --- proved ---------------------------------------------------------------------------------------


def _run(run: Callable[[Setup, float, Seed], ps.Run]) -> Fit:
    return lambda setup, epsilon, seed: run(setup, epsilon, seed).release.weights


def _exponential(unit: int) -> Fit:
    return _run(lambda s, e, r: ps.exponential(s.ball(unit), e, prior=ps.SparsePrior(), random_state=r))


def _dp_sgd(unit: int) -> Fit:
    def fit(setup: Setup, epsilon: float, seed: Seed) -> Weights:
        tuned = setup.tuned[epsilon]
        settings = tuned.tuned if unit == PAPER_UNIT else tuned.tuned_other
        return dpsgd.dp_sgd(setup.train(unit), Accounting(epsilon, setup.delta), settings, seed)

    return fit


Fit = Callable[[Setup, float, Seed], Weights]


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

METHODS = (
    Method(OPDISC, "OPDisc", CLAIMED, opdisc_printed(1.0)),
    Method(HALF, "OPDisc, half scale", CLAIMED, opdisc_printed(0.5)),
    Method(RSPM, "RSPM", CLAIMED, rspm_printed),
    Method(LR, "private LR", "(ε, δ), add-remove", lr_printed),
    Method("opdisc", "OPDisc, proved", "ε", _run(lambda s, e, r: ps.opdisc(s.ball(), e, random_state=r))),
    Method("rspm", "RSPM, proved", "ε", _run(lambda s, e, r: ps.rspm(s.ternary(), e, random_state=r))),
    Method("exponential", "exponential", "ε", _exponential(PAPER_UNIT)),
    Method("exponential-5000", "exponential, 5,000s", "ε", _exponential(OTHER_UNIT), OTHER_UNIT),
    Method("dp-sgd", "LR, tuned", "(ε, δ)", _dp_sgd(PAPER_UNIT)),
    Method("dp-sgd-5000", "LR, tuned, 5,000s", "(ε, δ)", _dp_sgd(OTHER_UNIT), OTHER_UNIT),
    *(
        Method(f"exponential-{unit}", f"exponential, {unit:,}s", "ε", _exponential(unit), unit, UNIT_EPSILONS)
        for unit in UNITS
        if unit not in (PAPER_UNIT, OTHER_UNIT)
    ),
)


def method(key: str) -> Method:
    """The method of that key."""
    return next(m for m in METHODS if m.key == key)


def unit_method(unit: int) -> Method:
    """The exponential mechanism with capital gain in that unit."""
    return method("exponential" if unit == PAPER_UNIT else f"exponential-{unit}")


def accuracy(table: ps.PatternTable, weights: Weights) -> float:
    """Share of records that "positive iff the score is above 0" classifies correctly."""
    return table.accuracy(weights) if weights.dtype.kind == "i" else dpsgd.accuracy(table, np.asarray(weights, float))
