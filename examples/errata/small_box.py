"""A square of the box's width where the width belongs: OPSamp's published stability bound on narrow boxes.

Run: python examples/errata/small_box.py
"""

import numpy as np

from privsolve.continuous.opsamp import exponential_noise
from privsolve.continuous.oracles import PiecewiseLinearOracle
from privsolve.continuous.problem import PiecewiseLinear
from privsolve.continuous.stability import loss_change, stability
from privsolve.models.choices import Box
from privsolve.noise.entropy import Randomness

G, SIGMA, DRAWS = 1.0, 0.01, 200_000


def mean_distance(width: float) -> float:
    """E|x - y| of the answers for L(x) = 2x (two records of slope 1) and L(x) = 0 (one of them turned), same noise."""
    box, oracle = Box((0.0,), (width,)), PiecewiseLinearOracle()
    etas = exponential_noise(Randomness.seeded(0), SIGMA, (DRAWS, 1), centred=False)
    ends = np.array([0.0, width])
    answers = [
        oracle.minimise_many(PiecewiseLinear((ends,), (slope * ends,), 2, G), box, etas)[0] for slope in (2.0, 0.0)
    ]
    return float(np.abs(answers[0] - answers[1]).mean())


def main() -> None:
    print(f"d = 1, G = {G:g}, rate sigma = {SIGMA}: mean distance of the answers on two neighbouring data sets")
    print("   width D   measured   published 250·sigma·G·D²   proved 4·2G·sigma·D")
    for width in (1.0, 0.1, 0.01, 0.001):
        published = 250 * SIGMA * G * width**2
        ours = stability(SIGMA, [width], loss_change(G, "replace"))
        measured = mean_distance(width)
        note = "  <- below what is measured" if published < measured else ""
        print(f"{width:10g}{measured:11.2e}{published:26.2e}{ours:22.2e}{note}")


if __name__ == "__main__":
    main()
