"""One price for everybody, chosen from what buyers say they would pay, without betraying any of them.

Revenue `p·1[p <= v]` jumps from v to 0 when the price passes a buyer's valuation, and OPSamp needs losses that change
gradually. So the jump becomes a ramp: a buyer counts fully up to `v - ramp` and linearly less up to v. The smoothed
revenue is never above the true one, so what it promises is earned.

Run: python examples/posted_price.py
"""

from __future__ import annotations

import argparse

import numpy as np

import privsolve as ps
from privsolve.continuous.problem import posted_price
from privsolve.continuous.stability import draws_needed, plan_opsamp

PRICES = [(10.0, 60.0)]  # the range of prices on offer, public
HIGHEST = 100.0  # valuations above count as this, public
RAMP = 4.0  # width of the ramp, public: wider needs a smaller perturbation and gives more revenue away
EPSILON, DELTA = 1.0, 1e-9


def buyers(n: int, seed: int) -> np.ndarray:
    """Made-up valuations."""
    return np.random.default_rng(seed).gamma(9.0, 5.0, n)


def revenue(price: float, valuations: np.ndarray) -> float:
    """True revenue per buyer."""
    return float(price * np.mean(valuations >= price))


def main() -> None:
    """Plan, release, and (for the curator alone) compare with the best price."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--seed", type=int, help="repeat a run; a seeded run is not private")
    options = parser.parse_args()
    n = options.records
    valuations = buyers(n, seed=1)

    loss = posted_price(valuations, PRICES, RAMP, highest=HIGHEST)
    widths = [high - low for low, high in PRICES]
    draws = draws_needed(n, widths, loss.lipschitz, EPSILON, DELTA)
    plan = plan_opsamp(n, widths, loss.lipschitz, EPSILON, DELTA, draws)
    print(f"Before anything is spent: {n:,} buyers, {draws:,} oracle calls,")
    print(f"  price noise of about {plan.noise_scale:.2f} is to be expected.")
    print(f"  The loss of a buyer changes by at most {loss.lipschitz:g} per unit of price (ramp of {RAMP:g}).\n")

    run = ps.opsamp(ps.BoxProblem(loss, PRICES), EPSILON, DELTA, draws, random_state=options.seed)
    point = run.release.model.point
    price = float(point[0])
    print(f"Released price: {price:.2f}")
    print(f"Guarantee: {run.release.guarantee}\n")

    best = max(np.linspace(10, 60, 501), key=lambda p: revenue(p, valuations))
    print("For the curator only, not private:")
    print(f"  revenue per buyer at the released price  {revenue(price, valuations):.3f}")
    print(f"  smoothed revenue at the released price   {-float(loss.values(point[None, :])[0]) / n:.3f}")
    print(f"  best fixed price {best:.2f}, revenue         {revenue(best, valuations):.3f}")
    print(f"  {run.diagnostics.seconds:.1f} s")


if __name__ == "__main__":
    main()
