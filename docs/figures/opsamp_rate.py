"""Excess risk of OPSamp against n, proved and published calibration: writes opsamp_rate.png beside this file.

Run: python docs/figures/opsamp_rate.py   (about two minutes)
"""

from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np

from privsolve.continuous.opsamp import opsamp
from privsolve.continuous.problem import BoxProblem, PiecewiseLinear, absolute_deviation
from privsolve.continuous.stability import Calibration, SamplingNoise, draws_needed, plan_opsamp
from privsolve.errors import PrivacyWarning

mpl.use("Agg")
from matplotlib import pyplot as plt

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
EPSILON, DELTA = 1.0, 1e-6
RUNS = {
    Calibration.PROVED: 60,
    Calibration.PUBLISHED: 10,
}  # the published number of draws is up to a hundred times larger


def losses(n: int, dim: int) -> dict[str, PiecewiseLinear]:
    """Mean absolute deviation of two data sets: one as steep as can be at its minimum, one rounded there."""
    box = [(0.0, 1.0)] * dim
    spread = np.random.default_rng(n).beta(2, 5, (n, dim))
    return {
        "all records at 0.4": absolute_deviation(np.full((n, dim), 0.4), box),
        "beta(2, 5)": absolute_deviation(spread, box),
    }


def measured(loss: PiecewiseLinear, calibration: Calibration) -> float:
    """Mean excess of the mean loss over the runs."""
    dim, n = loss.dim, loss.n
    box = [(0.0, 1.0)] * dim
    draws = None if calibration is Calibration.PUBLISHED else draws_needed(n, [1.0] * dim, 1.0, EPSILON, DELTA)
    best = np.array([[x[np.argmin(y)] for x, y in zip(loss.knots, loss.heights, strict=True)]])
    total = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        for seed in range(RUNS[calibration]):
            run = opsamp(
                BoxProblem(loss, box), EPSILON, DELTA, draws, noise=SamplingNoise(calibration), random_state=seed
            )
            total += float(np.diff(loss.values(np.vstack([best, run.release.model.point])))[0])
    return total / n / RUNS[calibration]


def bounds(dim: int, calibration: Calibration) -> list[float]:
    """The bound on the expected excess, which needs no data."""
    found = []
    for n in SIZES:
        draws = None if calibration is Calibration.PUBLISHED else draws_needed(n, [1.0] * dim, 1.0, EPSILON, DELTA)
        plan = plan_opsamp(n, [1.0] * dim, 1.0, EPSILON, DELTA, draws, noise=SamplingNoise(calibration))
        found.append(plan.excess)
    return found


def main() -> None:
    """Measure, print and draw."""
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.4), sharey=True)
    for dim, panel in zip((1, 2), panels, strict=True):
        for calibration, colour in ((Calibration.PROVED, "C0"), (Calibration.PUBLISHED, "C3")):
            panel.loglog(SIZES, bounds(dim, calibration), colour, linestyle="--", label=f"{calibration}: bound")
            curves: dict[str, list[float]] = {}
            for n in SIZES:
                for name, loss in losses(n, dim).items():
                    curves.setdefault(name, []).append(measured(loss, calibration))
            for (name, values), marker in zip(curves.items(), "os", strict=True):
                panel.loglog(SIZES, values, colour, marker=marker, label=f"{calibration}: measured, {name}")
                print(dim, calibration, name, [f"{v:.2e}" for v in values], flush=True)
        panel.loglog(SIZES, [1 / np.sqrt(n) for n in SIZES], "0.6", linestyle=":", label="1/sqrt(n)")
        panel.set(xlabel="records n", title=f"mean absolute deviation on the unit cube, d = {dim}")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("excess risk (epsilon = 1, delta = 1e-6)")
    panels[1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main()
