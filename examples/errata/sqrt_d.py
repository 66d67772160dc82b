"""OPDisc's utility theorem: no Gaussian scale that is private on the parity data sets has an excess of order √d.

Run: python examples/errata/sqrt_d.py
"""

from math import log, sqrt

from parity import DELTA, true_epsilon
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

EPSILON, BETA = 1.0, 0.05


def least_sigma(dim: int) -> float:
    """The smallest deviation at which the parity data sets lose no more than claimed. W = {-1, 1}^d, c = 4GD²/τ = d."""

    def too_much(log_share: float) -> float:
        return true_epsilon(dim, dim * 2.0**log_share) - EPSILON

    return float(dim * sqrt(dim) * 2.0 ** brentq(too_much, -8, 3))


def excess(dim: int, sigma: float) -> float:
    """The worst mean excess over data sets in which k records want every coordinate to be 1.

    A coordinate is wrong when its noise 2η/√d is below -k, and that costs k mistakes.
    """
    deviation = 2 * sigma / sqrt(dim)
    found = minimize_scalar(lambda x: -x * norm.sf(x), bounds=(0, 5), method="bounded")
    return float(dim * deviation * -found.fun)


def main() -> None:
    print(f"W = {{-1, 1}}^d, epsilon = {EPSILON:g}, delta = {DELTA:g}: the least sigma that the parity data sets allow")
    print("        d   sigma/c   sigma/(c·√d)   mean excess with it   published bound, beta = 0.05")
    for dim in (100, 1_000, 10_000, 100_000, 1_000_000):
        sigma = least_sigma(dim)
        bound = 14 * 0.5 * dim * sqrt(2 * (dim + 1) * log(4 / BETA) * log(1 / DELTA)) / (2 * EPSILON)
        mark = "  <- above it" if excess(dim, sigma) > bound else ""
        print(
            f"{dim:9,}{sigma / dim:10.2f}{sigma / dim / sqrt(dim):15.3f}{excess(dim, sigma):22.3g}{bound:31.3g}{mark}"
        )


if __name__ == "__main__":
    main()
