"""Three slips about inputs and outputs: β of OPSamp, points outside W, and which τ is too much noise.

Run: python examples/errata/opsamp_inputs.py
"""

import numpy as np

import privsolve as ps
from privsolve.continuous.stability import published_sensitivity, published_sigma

N, WIDTHS, RUNS = 10_000, (1.0, 1.0), 10_000


def main() -> None:
    sigmas = [published_sigma(N, WIDTHS, 1.0, 1.0, beta=beta) for beta in (0.5, 0.05, 0.005)]
    print("sigma of OPSamp for beta = 0.5, 0.05, 0.005:", ", ".join(f"{sigma:.2e}" for sigma in sigmas))
    scale = published_sensitivity(N, WIDTHS, 1.0, 1.0, sigmas[1])
    points = 0.5 + np.random.default_rng(0).laplace(scale=scale, size=(RUNS, 2))
    outside = ((points < 0) | (points > 1)).any(axis=1).mean()
    print(f"n = {N:,}, W = [0, 1]^2, epsilon = 1: Laplace scale {scale:.2f}; from the middle of W", end=" ")
    print(f"{outside:.0%} of the outputs leave it")
    scales = [ps.sphere_noise(ps.IntegerBall(4, k * k), 1.0).scale for k in (1, 2, 4)]
    print("OPDisc on the unit ball, scale of the noise for tau = 1, 1/2, 1/4:", ", ".join(f"{s:.0f}" for s in scales))


if __name__ == "__main__":
    main()
