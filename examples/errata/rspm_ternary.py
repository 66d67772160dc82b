"""RSPM over {-1, 0, 1}: noise that is linear in w is not noise on separators, and 0 is between -1 and 1.

Run: python examples/errata/rspm_ternary.py
"""

from math import log

import numpy as np

import privsolve as ps
from privsolve import audit
from privsolve.noise.entropy import Randomness
from privsolve.privacy import calibration

RUNS, N, FEATURES = 2_000_000, 15_682, 23
X, TARGET = np.array([1, 2]), np.array([1, 0])


def losses(members: np.ndarray, positive: bool, zero_is_wrong: bool) -> np.ndarray:
    """Whether each member is wrong about one record with features X; a score of 0 is wrong or means negative."""
    scores = members @ X
    right = scores > 0 if positive else (scores < 0 if zero_is_wrong else scores <= 0)
    return ~right


def main() -> None:
    domain, delta = ps.TernaryCube(2), N**-2.0
    members = domain.members()
    target = int((members == TARGET).all(axis=1).argmax())
    sigma = calibration.separator_sigma_published(FEATURES, 1.0, delta)
    print(f"published scale for m = {FEATURES}, epsilon = 1, delta = {delta:.1e}: sigma = {sigma:.1f}")
    print(f"one record x = (1, 2), positive in D and negative in D'; {RUNS:,} draws of noise -<eta, w>")
    eta = np.random.default_rng(0).normal(scale=sigma, size=(RUNS, 2))
    linear = eta @ members.T
    for rule in (True, False):
        hits = [int(((losses(members, y, rule) - linear).argmin(axis=1) == target).sum()) for y in (True, False)]
        words = "a mistake for both labels, as printed" if rule else "negative, as here"
        print(f"  score 0 is {words}: w = (1, 0) in {hits[0]:,} runs on D, in {hits[1]} on D'")
    law = ps.separator_noise(domain, 1.0)
    problems = [ps.Problem(ps.PatternTable.from_records([X], [y]), domain) for y in (True, False)]
    share = [np.mean(audit.perturbed_draws(p, law, 200_000, Randomness.seeded(1)) == target) for p in problems]
    print(f"noise on the separators: w = (1, 0) in {share[0]:.1%} and {share[1]:.1%},", end=" ")
    print(f"|ln ratio| = {abs(log(share[0] / share[1])):.2f}, claimed epsilon = 1 (proved, without delta)")


if __name__ == "__main__":
    main()
