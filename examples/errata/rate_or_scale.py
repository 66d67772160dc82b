"""Exp(sigma) with sigma a scale or a rate: OPSamp's published rule for sigma only makes sense as a rate.

Run: python examples/errata/rate_or_scale.py
"""

from math import exp

from privsolve.continuous.stability import published_sigma

G, EPSILON, WIDTH = 1.0, 1.0, 1.0


def main() -> None:
    print("d = 1, D = 1, G = 1, epsilon = 1: two records of slope 1 among n, one turned round (H = 2)")
    print("answers differ by the whole interval iff eta < 2, so E|x - y| = Pr[eta < 2]")
    print("          n     sigma   claimed 250·sigma   if a rate (mean 1/sigma)   if a scale (mean sigma)")
    for n in (10_000, 1_000_000, 100_000_000):
        sigma = published_sigma(n, [WIDTH], G, EPSILON)
        rate, scale = 1 - exp(-2 * G * sigma), 1 - exp(-2 * G / sigma)
        print(f"{n:11,}{sigma:10.2e}{250 * sigma:18.2e}{rate:25.2e}{scale:26.2e}")


if __name__ == "__main__":
    main()
