"""How far the noise must move: twice as far as the published density-ratio lemma allows for.

Run: python examples/errata/shift.py
"""

import numpy as np

import privsolve as ps
from privsolve import audit
from privsolve.noise.entropy import Randomness
from privsolve.privacy import calibration

RUNS = 2000


def failures(length: float) -> int:
    """Draws whose output on one data set is not the output on the other after moving by `length` times its lift."""
    case = audit.CASES[0]
    domain, oracle = case.data.domain, ps.oracles.get("enumeration")
    rng, count = Randomness.seeded(0), 0
    law = ps.sphere_noise(domain, 1.0)
    for eta in (law.draw(rng) for _ in range(RUNS)):
        chosen = oracle.minimise(case.data, ps.Perturbation.lifted(domain, eta)).weights
        moved = eta + length * domain.lift(chosen)
        again = oracle.minimise(case.neighbour, ps.Perturbation.lifted(domain, moved)).weights
        count += int(not np.array_equal(chosen, again))
    return count


def main() -> None:
    # W = {-1, 1}: D = 1, tau = 2, G = 1/2
    radius_sq, tau, lipschitz = 1.0, 2.0, 0.5
    published, needed = 2 * lipschitz * radius_sq / tau, 4 * lipschitz * radius_sq / tau
    assert needed == calibration.sphere_shift(2, radius_sq, tau**2)
    print(f"W = {{-1, 1}}, one of two records changed, {RUNS:,} draws of the noise")
    for name, length in (("2GD²/tau (published lemma)", published), ("4GD²/tau (needed)", needed)):
        rounding = 1e-5  # ties and the unit of the exact oracles
        print(f"moved by {name:26} = {length}: the output is lost in {failures(length + rounding)} draws")


if __name__ == "__main__":
    main()
