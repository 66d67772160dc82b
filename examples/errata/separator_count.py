"""RSPM: how many separators a grid needs, and how many noise coordinates they need.

Run: python examples/errata/separator_count.py
"""

from math import ceil, log2

import privsolve as ps
from privsolve.problems.perturbation import count_thresholds


def main() -> None:
    print("{-1, 0, 1}^d, tau = 1: separators")
    print("d   published 2(d-1)/tau   at least log2|W|   thresholds 2d/tau   noise drawn in the paper, d+1")
    for dim in (1, 2, 3):
        cube = ps.TernaryCube(dim)
        print(f"{dim}{2 * (dim - 1):23}{ceil(log2(cube.size)):19}{count_thresholds(cube):20}{dim + 1:32}")


if __name__ == "__main__":
    main()
