"""OPSamp's utility theorem: the ℓ1 length of d Laplace coordinates is a sum of d exponentials, not one.

Run: python examples/errata/opsamp_utility.py
"""

from math import log

from scipy.stats import gamma

BETA = 0.1


def main() -> None:
    claimed = 1 + log(2 / BETA)
    print(f"claimed: |mu|_1 exceeds (1 + ln(2/beta))·lambda/epsilon with probability at most beta/2 = {BETA / 2:g}")
    print("  d   exceeded with   length at beta/2, in lambda/epsilon   claimed")
    for dim in (1, 2, 5, 10, 23):
        print(f"{dim:3}{gamma.sf(claimed, dim):16.3f}{gamma.isf(BETA / 2, dim):38.2f}{claimed:10.2f}")
    print("with the factor d, the best sigma gives an excess of order d^(7/4) instead of d^(5/4)")


if __name__ == "__main__":
    main()
