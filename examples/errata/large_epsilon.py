"""OPDisc's theorem names no range of ε: at ε = 15, δ = 0.01 it is false in one dimension.

Run: python examples/errata/large_epsilon.py
"""

from math import log

from scipy.stats import norm

from privsolve.privacy import calibration

EPSILON, DELTA = 15.0, 0.01


def main() -> None:
    # W = {-1, 1}: D = 1, tau = 2, G = 1/2. Of three records, three want -1 on D' and two on D.
    sigma = calibration.gaussian_sigma_published(1.0, 0.5, 2.0, EPSILON, DELTA)
    # 1 is released iff L(1) - eta < L(-1) + eta, that is eta > (L(1) - L(-1))/2
    on_d, on_neighbour = (norm.sf(difference / 2 / sigma) for difference in (1, 3))
    print(f"W = {{-1, 1}}, claimed epsilon = {EPSILON:g}, delta = {DELTA:g}: sigma = {sigma:.3f}")
    print(f"Pr[1 is released] = {on_d:.4f} on D and {on_neighbour:.2e} on D'")
    print(f"true epsilon at that delta: at least ln(({on_d:.4f} - {DELTA:g})/{on_neighbour:.2e}) = ", end="")
    print(f"{log((on_d - DELTA) / on_neighbour):.2f}")


if __name__ == "__main__":
    main()
