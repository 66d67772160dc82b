"""RSPM over {-1, 0, 1}: noise that is linear in w is not noise on separators, and 0 is between -1 and 1.

Run: python examples/errata/rspm_ternary.py
"""

from math import log

import numpy as np
from scipy.stats import norm

import privsolve as ps
from privsolve import audit
from privsolve.noise import draws as noise
from privsolve.noise.entropy import Randomness
from privsolve.privacy import calibration

RUNS, N, FEATURES = 200_000, 15_682, 23


def main() -> None:
    # one record with x = 1, negative in D and positive in D'; w = 0 predicts negative
    domain, delta = ps.TernaryCube(1), N**-2.0
    problems = [ps.Problem(ps.PatternTable.from_records([[1]], [label]), domain) for label in (False, True)]
    sigma = calibration.separator_sigma_published(FEATURES, 1.0, delta)
    print(f"published scale for m = {FEATURES}, epsilon = 1, delta = {delta:.1e}: sigma = {sigma:.1f}")
    members = domain.members()[:, 0]
    zero = []
    for problem in problems:
        eta = noise.standard_normal(Randomness.seeded(0), RUNS) * sigma
        objective = problem.losses_of(domain.members()) - eta[:, None] * members
        zero.append(int((objective.argmin(axis=1) == 1).sum()))
    exact = norm.cdf(1 / sigma) - 0.5
    print(f"noise -eta·w: w = 0 is released in {zero[0]} of {RUNS:,} runs on D, in {zero[1]} on D'")
    print(f"  exactly Pr[0 < eta < 1] = {exact:.2e} on D and 0 on D': no epsilon will do below delta = {exact:.2e}")
    law = ps.separator_noise(domain, 1.0)
    counts = [audit.perturbed_draws(p, law, RUNS, Randomness.seeded(1)) for p in problems]
    share = [float(np.mean(c == 1)) for c in counts]
    print(f"noise on the separators w <= -1, w <= 0: w = 0 in {share[0]:.1%} and {share[1]:.1%}")
    print(f"  |ln ratio| = {abs(log(share[0] / share[1])):.2f}, claimed epsilon = 1 (proved, without delta)")


if __name__ == "__main__":
    main()
