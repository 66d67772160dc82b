"""A private quantile, and a private decision threshold: two one-dimensional problems with exact oracles.

The quantile minimises a convex loss (pinball), so the excess loss is bounded beforehand. The threshold minimises the
cost of wrong decisions, a sum of steps; each step becomes a ramp, which changes the cost only for scores within half a
ramp of the threshold.

Run: python examples/quantile.py
"""

from __future__ import annotations

import argparse

import numpy as np

import privsolve as ps
from privsolve.continuous.problem import PiecewiseLinear, pinball, threshold_cost
from privsolve.continuous.stability import draws_needed, plan_opsamp

EPSILON, DELTA = 0.5, 1e-9  # of each of the two releases
WAITING = [(0.0, 120.0)]  # minutes, public
SCORES = [(0.0, 1.0)]
RAMP = 0.05
MISS, FALSE_ALARM = 5.0, 1.0


def release(loss: PiecewiseLinear, box: list[tuple[float, float]], seed: int | None) -> ps.Run:
    """One use of the mechanism with as many oracle calls as are worth making."""
    widths = [high - low for low, high in box]
    draws = draws_needed(loss.n, widths, loss.lipschitz, EPSILON, DELTA)
    plan = plan_opsamp(loss.n, widths, loss.lipschitz, EPSILON, DELTA, draws)
    print(f"Before anything is spent: the expected excess loss is at most {plan.excess:.3f}.")
    return ps.opsamp(ps.BoxProblem(loss, box), EPSILON, DELTA, draws, random_state=seed)


def main() -> None:
    """Release both, and (for the curator alone) compare with the truth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--seed", type=int, help="repeat a run; a seeded run is not private")
    options = parser.parse_args()
    n = options.records
    rng = np.random.default_rng(1)

    waiting = rng.gamma(2.0, 12.0, n)
    run = release(pinball(waiting, WAITING, 0.9), WAITING, options.seed)
    minutes = float(run.release.model.point[0])
    print(f"Nine patients in ten wait at most {minutes:.1f} minutes (released).")
    print(f"  Guarantee: {run.release.guarantee}")
    print(f"  For the curator only: {100 * np.mean(waiting <= minutes):.2f}% wait at most that; ", end="")
    print(f"true quantile {np.quantile(waiting, 0.9):.1f}\n")

    ill = rng.random(n) < 0.2
    scores = np.clip(rng.normal(np.where(ill, 0.6, 0.4), 0.12), 0.0, 1.0)
    run = release(threshold_cost(scores, ill, SCORES, RAMP, miss=MISS, false_alarm=FALSE_ALARM), SCORES, options.seed)
    threshold = float(run.release.model.point[0])

    def cost(t: float) -> float:
        return float(np.mean(np.where(ill, MISS * (scores <= t), FALSE_ALARM * (scores > t))))

    best = min(np.linspace(0, 1, 201), key=cost)
    print(f"Call back everybody who scores above {threshold:.3f} (released).")
    print(f"  a missed case counts {MISS:g}, a false alarm {FALSE_ALARM:g}")
    print(f"  Guarantee: {run.release.guarantee}")
    print(f"  For the curator only: cost per patient {cost(threshold):.4f}; ", end="")
    print(f"best threshold {best:.3f} with {cost(best):.4f}\n")
    print(f"Together, two releases: epsilon {2 * EPSILON:g}, delta {2 * DELTA:g} if they concern the same people.")


if __name__ == "__main__":
    main()
