"""A bound on every coordinate used as a bound on their sum: OPSamp's published concentration lemma.

Run: python examples/errata/l1_concentration.py
"""

from math import ceil, log

import numpy as np

from privsolve.continuous.opsamp import exponential_noise
from privsolve.continuous.oracles import PiecewiseLinearOracle
from privsolve.continuous.problem import PiecewiseLinear
from privsolve.models.choices import Box
from privsolve.noise.entropy import Randomness

DELTA, GAMMA, SIGMA, AVERAGES = 1e-6, 0.2, 0.05, 400


def deviations(dim: int, draws: int) -> np.ndarray:
    """l1 distance of averages of `draws` answers from their mean, on the unit cube (so that D_inf = 1).

    The slope of each coordinate is the median of its noise, so its answer is 0 or 1 with equal probability.
    """
    rng, oracle = Randomness.seeded(0), PiecewiseLinearOracle()
    box, ends = Box((0.0,) * dim, (1.0,) * dim), np.array([0.0, 1.0])
    slope = log(2) / SIGMA
    loss = PiecewiseLinear((ends,) * dim, (slope * ends,) * dim, ceil(slope), 1.0)
    etas = exponential_noise(rng, SIGMA, (AVERAGES * draws, dim), centred=False)
    points, _ = oracle.minimise_many(loss, box, etas)
    means = points.reshape(AVERAGES, draws, dim).mean(axis=1)
    return np.abs(means - 0.5).sum(axis=1)


def main() -> None:
    print(f"unit cube, gamma = {GAMMA}, delta = {DELTA:g}: averages of m answers, {AVERAGES} of them")
    print("published: farther than 2·D_inf·gamma in l1 from their mean with probability at most delta/2 = 5e-07")
    for dim in (1, 5, 10, 20, 40):
        draws = ceil(log(2 * dim / DELTA) / (2 * GAMMA**2))
        far = deviations(dim, draws) > 2 * GAMMA
        print(f"d = {dim:2}, m = {draws}: farther in {far.mean():7.2%} of the averages")


if __name__ == "__main__":
    main()
