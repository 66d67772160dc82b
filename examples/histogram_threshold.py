"""Privately choose the waiting time that nine of ten patients do not exceed, from a histogram.

    python examples/histogram_threshold.py

The loss of a minute is how far the number of patients who waited no longer is from nine tenths of all. That is no sum over
records, but one patient's time moves it by at most 1 (n is public). The exponential mechanism chooses a minute.
"""

import numpy as np

import privsolve as ps

PATIENTS, LONGEST, WANTED, EPSILON = 5_000, 240, 4_500, 0.2


def made_up_minutes() -> np.ndarray:
    """Most are seen soon, some wait for hours."""
    return np.minimum(np.random.default_rng(7).gamma(1.6, 28.0, size=PATIENTS).astype(int), LONGEST)


def distance(waited: np.ndarray, minutes: np.ndarray) -> np.ndarray:
    """For each minute, how far the patients who waited no longer are from nine tenths of all."""
    within = np.cumsum(np.bincount(waited, minlength=LONGEST + 1))
    return np.abs(within[minutes[:, 0]] - WANTED)


def main() -> None:
    waited, minutes = made_up_minutes(), ps.IntegerGrid([0], [LONGEST])
    histogram = np.bincount(waited, minlength=LONGEST + 1)
    within = np.cumsum(histogram)
    problem = ps.DiscreteProblem(minutes, distance, waited, sensitivity=1, bound=PATIENTS, names=["minutes"])
    run = ps.exponential(problem, EPSILON)
    chosen = int(run.release.weights[0])
    print(f"Nine of ten of the {PATIENTS:,} patients wait at most about {chosen} minutes.\n")
    print(f"Guarantee: {run.release.guarantee}")
    bound = ps.exponential_utility_bound(minutes, EPSILON, loss=problem.loss)
    print(f"With probability 0.95 at most {bound:.0f} patients away from the share, whatever the data.\n")
    print("For the curator only: the histogram in steps of ten minutes, and the share of patients up to there")
    for start in range(0, LONGEST, 10):
        count = int(histogram[start : start + 10].sum())
        here = "  <- chosen" if start <= chosen < start + 10 else ""
        print(f"  {start:3} {within[start + 9] / PATIENTS:6.1%} {'█' * round(60 * count / PATIENTS * 4)}{here}")
    exactly = np.searchsorted(within, WANTED)
    print(f"Up to {chosen} minutes: {within[chosen] / PATIENTS:.2%}; exactly {exactly} minutes.")


if __name__ == "__main__":
    main()
