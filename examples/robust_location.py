"""Where is the centre of demand? A location that one in seven wrong records cannot drag away, released privately.

Run: python examples/robust_location.py
"""

from __future__ import annotations

import argparse

import numpy as np

import privsolve as ps
from privsolve.continuous.problem import truncated_deviation
from privsolve.continuous.stability import draws_needed, plan_opsamp

CITY = [(0.0, 20.0), (0.0, 20.0)]  # kilometres, public
RADIUS = 4.0  # a record further away than this does not pull, public
EPSILON, DELTA = 1.0, 1e-9


def deliveries(n: int, seed: int) -> np.ndarray:
    """Made-up delivery addresses: six in seven around (7.5, 12), the others left at the default position (0, 0)."""
    rng = np.random.default_rng(seed)
    addresses = rng.normal((7.5, 12.0), (1.5, 1.0), (n, 2))
    addresses[rng.random(n) < 1 / 7] = 0.0
    return addresses


def main() -> None:
    """Plan, release, and (for the curator alone) compare with the truth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--seed", type=int, help="repeat a run; a seeded run is not private")
    options = parser.parse_args()
    n = options.records
    data = deliveries(n, seed=1)

    widths = [high - low for low, high in CITY]
    draws = draws_needed(n, widths, 1.0, EPSILON, DELTA)
    plan = plan_opsamp(n, widths, 1.0, EPSILON, DELTA, draws)
    print(f"Before anything is spent: {n:,} records, {draws:,} oracle calls,")
    print(f"  noise of about {1000 * plan.noise_scale:.0f} m in each direction is to be expected.\n")

    loss = truncated_deviation(data, CITY, RADIUS)  # sum over records and coordinates of min(distance, 4 km)
    run = ps.opsamp(ps.BoxProblem(loss, CITY), EPSILON, DELTA, draws, random_state=options.seed)

    x, y = run.release.model.point
    print(f"Released centre of demand: ({x:.2f} km, {y:.2f} km)")
    print(f"Guarantee: {run.release.guarantee}\n")

    print("For the curator only, not private:")
    print(f"  true centre        (7.50 km, 12.00 km): the release is {np.hypot(x - 7.5, y - 12):.2f} km away")
    print(
        f"  plain average      ({data[:, 0].mean():.2f} km, {data[:, 1].mean():.2f} km), dragged by the wrong records"
    )
    print(
        f"  optimum, no noise  ({run.diagnostics.mean[0]:.2f} km, {run.diagnostics.mean[1]:.2f} km), mean of the answers"
    )
    print(f"  {run.diagnostics.seconds:.1f} s")


if __name__ == "__main__":
    main()
