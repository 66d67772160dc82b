"""Privately place two ambulance stations on a map from where people live.

    python examples/facility_location.py

The map is a grid of 11 × 11 blocks and public, where people live is not. A person loses the number of blocks to the nearer of
the two stations: a function of our own, neither convex nor linear. All 7,381 pairs of places are looked at. Nobody is more
than 20 blocks from anything, which is public and sets the noise.
"""

import numpy as np

import privsolve as ps

SIDE, PEOPLE, EPSILON = 11, 1_000, 0.5


def places() -> ps.FiniteSet:
    """Pairs of blocks, each pair once, as `x, y, x, y`."""
    blocks = [(x, y) for x in range(SIDE) for y in range(SIDE)]
    return ps.FiniteSet([[*a, *b] for a in blocks for b in blocks if a <= b])


def to_nearer_station(homes: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Blocks to walk: a row per person, a column per pair of stations."""
    first, second = (np.abs(homes[:, None, :] - pairs[None, :, at : at + 2]).sum(axis=2) for at in (0, 2))
    return np.minimum(first, second)


def made_up_homes() -> np.ndarray:
    """Two towns and some farms."""
    rng = np.random.default_rng(2)
    centres = np.array([[2, 3], [8, 7], [5, 5]])[rng.choice(3, size=PEOPLE, p=[0.5, 0.4, 0.1])]
    return np.clip(np.rint(centres + rng.normal(scale=1.3, size=(PEOPLE, 2))), 0, SIDE - 1).astype(np.int64)


def picture(homes: np.ndarray, stations: np.ndarray) -> str:
    """Where people live, darker for more, and the stations as @."""
    counts = np.zeros((SIDE, SIDE), dtype=np.int64)
    np.add.at(counts, tuple(homes.T), 1)
    marks = np.array(list(" .:-=+*#"))[np.minimum(counts * 8 // (counts.max() + 1), 7)]
    marks[tuple(stations.reshape(2, 2).T)] = "@"
    return "\n".join("  " + " ".join(row) for row in marks.T[::-1])


def main() -> None:
    domain, homes = places(), made_up_homes()
    names = ("first x", "first y", "second x", "second y")
    problem = ps.DiscreteProblem(domain, to_nearer_station, homes, bound=2 * (SIDE - 1), names=names)
    run = ps.exponential(problem, EPSILON)
    print(f"{PEOPLE:,} people, {domain.size:,} pairs of places.")
    print(f"Stations: {run.release.model.describe()}\n")
    print(f"Guarantee: {run.release.guarantee}\n")
    print("For the curator only: where people live, and the stations (@)")
    print(picture(homes, run.release.weights))
    best = problem.totals.min() / PEOPLE
    print(f"On average {run.diagnostics.loss_per_record:.3f} blocks to walk; without privacy {best:.3f}.")


if __name__ == "__main__":
    main()
