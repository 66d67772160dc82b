"""An error that is divided by n in the oracle and not in the bound: OPSamp's published term for inexact oracles.

Run: python examples/errata/oracle_error.py
"""

import numpy as np

from privsolve.continuous.opsamp import exponential_noise
from privsolve.continuous.stability import loss_change, stability
from privsolve.noise.entropy import Randomness

G, SIGMA, ALPHA, DRAWS = 1.0, 1e-6, 1e-3, 200_000


def mean_distance(n: int) -> float:
    """E|x - y| on [0, 1] for n constant losses: the oracle answers 1 on one data set, and on its neighbour the least
    point that is still within alpha of the optimum of the objective (0 - eta·x)/n.
    """
    eta = exponential_noise(Randomness.seeded(0), SIGMA, (DRAWS, 1), centred=False)[:, 0]
    least = np.maximum(0.0, 1.0 - n * ALPHA / eta)
    gap = (eta * 1.0 - eta * least) / n
    assert gap.max() <= ALPHA * (1 + 1e-6)  # what the oracle is allowed, in the normalised objective
    return float((1.0 - least).mean())


def main() -> None:
    print(f"d = 1, D = 1, G = 1, rate sigma = {SIGMA:g}, oracle error alpha = {ALPHA:g} in the objective divided by n")
    print("        n   measured   published 250·sigma + alpha/10   proved, with A = n·alpha")
    for n in (100, 10_000, 1_000_000):
        published = 250 * SIGMA * G + ALPHA / (10 * G)
        ours = stability(SIGMA, [1.0], loss_change(G, "replace"), n * ALPHA)
        measured = mean_distance(n)
        note = "  <- above the published bound" if measured > published else ""
        print(f"{n:9,}{measured:11.2e}{published:32.2e}{ours:27.2e}{note}")


if __name__ == "__main__":
    main()
