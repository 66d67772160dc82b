"""A relative MIP gap of 1e-4, the solver's default, is not an exact oracle.

Run: python examples/errata/mip_gap.py
"""

from math import sqrt

import numpy as np

import privsolve as ps
from privsolve.privacy import calibration

GAP, DIM = 1e-4, 23


def main() -> None:
    table = ps.datasets.adult_paper(seed=0)
    problem = ps.Problem(table, ps.IntegerBall(DIM, DIM))
    oracle = ps.oracles.get("tree")
    print(f"Adult as in the paper, relative gap {GAP:g}: what the answer may be worse than the best by, in mistakes")
    print("epsilon   mean length of the noise   objective of the answer   allowed error A   noise that A needs")
    for epsilon in (0.1, 1.0):
        sigma = calibration.gaussian_sigma_published(DIM, 1.0, 1.0, epsilon, float(table.n) ** -2)
        eta = np.random.default_rng(0).normal(scale=sigma, size=DIM + 1)
        best = oracle.minimise(problem, ps.Perturbation.lifted(problem.domain, eta)).weights
        value = problem.total_loss(best) - float(eta @ problem.domain.lift(best))
        error = GAP * abs(value)
        print(f"{epsilon:7}{sigma * sqrt(DIM + 1):27,.0f}{value:26,.0f}{error:18.2f}{(2 + 2 * error) / 2 - 1:+20.0%}")


if __name__ == "__main__":
    main()
