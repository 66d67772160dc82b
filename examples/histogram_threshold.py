"""Privately choose the waiting time that nine of ten patients do not exceed, from a histogram.

    python examples/histogram_threshold.py

Each minute is a candidate; its score is minus the distance of the patients who waited no longer from nine tenths of all. One
patient's time moves each score by at most 1 (n is public), whatever the histogram looks like. Permute-and-flip chooses.
"""

from fractions import Fraction

import numpy as np

import privsolve as ps

PATIENTS, LONGEST, SHARE, EPSILON = 5_000, 240, Fraction(9, 10), 0.2


def made_up_minutes() -> np.ndarray:
    """Most are seen soon, some wait for hours."""
    return np.minimum(np.random.default_rng(7).gamma(1.6, 28.0, size=PATIENTS).astype(int), LONGEST)


def main() -> None:
    histogram = np.bincount(made_up_minutes(), minlength=LONGEST + 1)
    within = np.cumsum(histogram)
    scores = {f"{minute} minutes": -abs(int(count) - SHARE * PATIENTS) for minute, count in enumerate(within)}
    run = ps.choose(scores, sensitivity=1, epsilon=EPSILON)
    chosen = int(run.release.model.describe().split()[0])
    print(f"Nine of ten of the {PATIENTS:,} patients wait at most about {chosen} minutes.\n")
    print(f"Guarantee: {run.release.guarantee}")
    bound = ps.choice_utility_bound(LONGEST + 1, 1, EPSILON)
    print(f"With probability 0.95 at most {bound:.0f} patients away from the share, whatever the data.\n")
    print("For the curator only: the histogram in steps of ten minutes, and the share of patients up to there")
    for start in range(0, LONGEST, 10):
        count = int(histogram[start : start + 10].sum())
        here = "  <- chosen" if start <= chosen < start + 10 else ""
        print(f"  {start:3} {within[start + 9] / PATIENTS:6.1%} {'█' * round(60 * count / PATIENTS * 4)}{here}")
    exactly = np.searchsorted(within, SHARE * PATIENTS)
    print(f"Up to {chosen} minutes: {within[chosen] / PATIENTS:.2%}; exactly {exactly} minutes.")


if __name__ == "__main__":
    main()
