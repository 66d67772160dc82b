"""The published MIP when the last noise coordinate is negative: another objective than the one that is analysed.

Run: python examples/errata/negative_noise_mip.py
"""

import numpy as np

import privsolve as ps
from privsolve.noise.entropy import Randomness

RUNS = 2000


def minimiser(problem: ps.Problem, eta: np.ndarray, last_noise: float) -> np.ndarray:
    """Best member for the noise with another last coordinate, by the exact enumeration oracle."""
    perturbation = ps.Perturbation.lifted(problem.domain, [*eta[:-1], last_noise])
    return ps.oracles.get("enumeration").minimise(problem, perturbation).weights


def main() -> None:
    table = ps.PatternTable.from_records([[1, 0], [0, 1], [1, 1]], [True, False, True])
    problem = ps.Problem(table, ps.IntegerBall(2, 9))
    law, rng = ps.sphere_noise(problem.domain, 1.0), Randomness.seeded(0)
    negative = free = bounded = 0
    for _ in range(RUNS):
        eta = law.draw(rng)
        if eta[-1] >= 0:
            continue
        negative += 1
        right = minimiser(problem, eta, eta[-1])
        # min over lambda of -eta_last·lambda subject to lambda² <= D² - |w|² is -|eta_last|·sqrt(D² - |w|²);
        # with lambda >= 0 (the default of most solvers) it is 0
        free += not np.array_equal(right, minimiser(problem, eta, -eta[-1]))
        bounded += not np.array_equal(right, minimiser(problem, eta, 0.0))
    print(f"integer points of norm at most 3 in the plane, OPDisc's noise at epsilon = 1, {RUNS:,} draws")
    print(
        f"last coordinate negative: {negative:,} draws; there the MIP has another optimum than the stated objective in"
    )
    print(f"  {free / negative:.0%} of them if lambda may be negative, {bounded / negative:.0%} if lambda >= 0")
    right, wrong = (minimiser(problem, np.zeros(3), last) for last in (-100.0, 100.0))
    print(
        f"noise (0, 0, -100): the objective wants the longest vectors, {right.tolist()}; the MIP returns {wrong.tolist()}"
    )


if __name__ == "__main__":
    main()
