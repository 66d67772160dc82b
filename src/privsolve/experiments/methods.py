"""What is compared on Adult: each method as one function from a budget and a seed to weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

import privsolve as ps
from privsolve import baselines
from privsolve.errors import PrivacyWarning

Weights = NDArray[np.float64] | NDArray[np.int64]

NORM_BOUND_SQ = 7.0
"""Of a record's squared length: four one-hot groups and three numbers between 0 and 1."""


CAPITAL_GAIN_UNIT = 5_000
"""The other unit of capital gain: in the paper's, 99,999, a weight of 34 is needed, and its ball allows at most 4."""

UNITS = ("paper", "other")


@dataclass(frozen=True)
class Tuned:
    """What was tuned on the data without privacy, as the paper does it, for one epsilon: DP-SGD for both units."""

    dp_sgd: baselines.DPSGDSettings
    dp_sgd_other: baselines.DPSGDSettings
    regularisation: float

    def settings(self, unit: str) -> baselines.DPSGDSettings:
        """Those of DP-SGD in one of the `UNITS`."""
        return self.dp_sgd if unit == "paper" else self.dp_sgd_other


@dataclass(frozen=True)
class Setup:
    """The paper's problem: the balanced training table and a balanced table of the test file."""

    tuned: Mapping[float, Tuned]

    @cached_property
    def tables(self) -> dict[str, tuple[ps.PatternTable, ps.PatternTable]]:
        """For each unit of capital gain: the 15,682 records the methods learn from, and records that none has seen."""
        paper = ps.datasets.adult_paper(seed=0), ps.datasets.adult_paper(seed=0, split="test")
        return {"paper": paper, "other": (_in_other_unit(paper[0]), _in_other_unit(paper[1]))}

    def train(self, unit: str) -> ps.PatternTable:
        """The table to learn from."""
        return self.tables[unit][0]

    @property
    def delta(self) -> float:
        """`1 / n²`, as in the paper."""
        n = self.train("paper").n
        return 1.0 / (n * n)

    def ball(self, radius_sq: int, unit: str = "paper") -> ps.Problem:
        """Integer weights of squared length at most `radius_sq`."""
        table = self.train(unit)
        return ps.Problem(table, ps.IntegerBall(table.dim, radius_sq))

    def ternary(self) -> ps.Problem:
        """Weights in `{-1, 0, 1}`."""
        table = self.train("paper")
        return ps.Problem(table, ps.TernaryCube(table.dim))


def _in_other_unit(table: ps.PatternTable) -> ps.PatternTable:
    scales = [
        CAPITAL_GAIN_UNIT if name == "capital-gain" else s for name, s in zip(table.names, table.scales, strict=True)
    ]
    return ps.PatternTable(table.features, table.positives, table.negatives, table.names, scales, table.ranges)


Seed = np.random.SeedSequence
Fit = Callable[[Setup, float, Seed], Weights]


@dataclass(frozen=True)
class Method:
    """One curve of the figure."""

    key: str
    label: str
    short: str
    family: str
    privacy: str
    fit: Fit
    unit: str = "paper"


FAMILIES = ("OPDisc and RSPM", "exponential mechanism", "private logistic regression")
PERTURBED, EXPONENTIAL, LOGISTIC = FAMILIES


def _discrete(run: Callable[[Setup, float, Seed], ps.Run]) -> Fit:
    def fit(setup: Setup, epsilon: float, seed: Seed) -> Weights:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)  # as published is the point here, and the label says it
            return run(setup, epsilon, seed).release.weights

    return fit


def _dp_sgd(unit: str) -> Fit:
    def fit(setup: Setup, epsilon: float, seed: Seed) -> Weights:
        settings = setup.tuned[epsilon].settings(unit)
        return baselines.dp_sgd(setup.train(unit), epsilon, setup.delta, settings, random_state=seed).weights

    return fit


def _objective_perturbation(setup: Setup, epsilon: float, seed: Seed) -> Weights:
    table, strength = setup.train("paper"), setup.tuned[epsilon].regularisation
    return baselines.objective_perturbation(table, epsilon, strength, NORM_BOUND_SQ**0.5, random_state=seed).weights


IN_UNITS = "capital gain in 5,000s"
TUNED_WORDS = " (tuned without privacy)"
CLAIMED = "(ε, δ) claimed, not proved"

METHODS = (
    Method(
        "exponential-sparse-other", f"exponential mechanism, sparsity prior, {IN_UNITS}", "exponential, sparse, 5,000s",
        EXPONENTIAL, "ε",
        _discrete(lambda s, e, r: ps.exponential(s.ball(23, "other"), e, prior=ps.SparsePrior(), random_state=r)),
        unit="other",
    ),
    Method(
        "exponential-sparse", "exponential mechanism, sparsity prior", "exponential, sparse prior", EXPONENTIAL, "ε",
        _discrete(lambda s, e, r: ps.exponential(s.ball(23), e, prior=ps.SparsePrior(), random_state=r)),
    ),
    Method(
        "exponential-uniform", "exponential mechanism, uniform prior", "exponential, uniform prior", EXPONENTIAL, "ε",
        _discrete(lambda s, e, r: ps.exponential(s.ball(23), e, random_state=r)),
    ),
    Method(
        "opdisc-4", "OPDisc, proved, radius² 4", "OPDisc, radius² 4", PERTURBED, "ε",
        _discrete(lambda s, e, r: ps.opdisc(s.ball(4), e, random_state=r)),
    ),
    Method(
        "opdisc-23", "OPDisc, proved, radius² 23", "OPDisc, radius² 23", PERTURBED, "ε",
        _discrete(lambda s, e, r: ps.opdisc(s.ball(23), e, random_state=r)),
    ),
    Method(
        "opdisc-published", "OPDisc, as published, radius² 23", "OPDisc as published", PERTURBED, CLAIMED,
        _discrete(
            lambda s, e, r: ps.opdisc(s.ball(23), e, delta=s.delta, noise="gaussian-published", random_state=r)
        ),
    ),
    Method(
        "rspm", "RSPM, proved, {-1, 0, 1}", "RSPM", PERTURBED, "ε",
        _discrete(lambda s, e, r: ps.rspm(s.ternary(), e, random_state=r)),
    ),
    Method(
        "rspm-published", "RSPM, as published, {-1, 0, 1}", "RSPM as published", PERTURBED, CLAIMED,
        _discrete(lambda s, e, r: ps.rspm(s.ternary(), e, delta=s.delta, noise="gaussian-published", random_state=r)),
    ),
    Method(
        "dp-sgd-other", f"logistic regression, DP-SGD, {IN_UNITS}{TUNED_WORDS}", "logistic, DP-SGD, 5,000s *",
        LOGISTIC, "(ε, δ)", _dp_sgd("other"), unit="other",
    ),
    Method(
        "dp-sgd", f"logistic regression, DP-SGD{TUNED_WORDS}", "logistic, DP-SGD *", LOGISTIC, "(ε, δ)", _dp_sgd("paper"),
    ),
    Method(
        "objective-perturbation", f"logistic regression, objective perturbation{TUNED_WORDS}",
        "logistic, obj. perturb. *", LOGISTIC, "ε in real arithmetic", _objective_perturbation,
    ),
)  # fmt: skip

BASELINES = {"paper": "dp-sgd", "other": "dp-sgd-other"}
"""Private logistic regression on the same features."""

BEST = "exponential-sparse-other"


def method(key: str) -> Method:
    """The method of that key."""
    return next(m for m in METHODS if m.key == key)


def accuracy(table: ps.PatternTable, weights: Weights) -> float:
    """Share of records that "positive iff the score is above 0" classifies correctly."""
    if weights.dtype.kind == "i":
        return table.accuracy(weights)
    return baselines.LinearFit(np.asarray(weights, dtype=np.float64), None, 0.0).accuracy(table)
