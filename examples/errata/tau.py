"""OPDisc against RSPM on the grid of step τ in the unit ball, with proved noise: about a factor d for every τ.

Run: python examples/errata/tau.py
"""

import privsolve as ps


def main() -> None:
    print("utility bound of RSPM over that of OPDisc, pure epsilon = 1, beta = 0.05")
    print("  d   tau = 1   tau = 1/2   tau = 1/4")
    for dim in (16, 64, 256):
        balls = [ps.IntegerBall(dim, k * k) for k in (1, 2, 4)]
        ratios = [ps.separator_noise(b, 1.0).utility_bound() / ps.sphere_noise(b, 1.0).utility_bound() for b in balls]
        print(f"{dim:3}{ratios[0]:10.1f}{ratios[1]:12.1f}{ratios[2]:12.1f}")


if __name__ == "__main__":
    main()
