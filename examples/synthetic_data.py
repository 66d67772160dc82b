"""Synthetic data: the small distribution whose answers to a public list of queries are closest to those of the records.

The loss of a distribution is its largest error over the queries. That is no sum over records: one record changes every count
by at most one, and so the largest error, whatever the distribution. `DiscreteProblem` takes it with `sensitivity=1`.

Run: python examples/synthetic_data.py
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np

import privsolve as ps

EPSILON = 1.0
ATTRIBUTES = ("married", "male", "over 50K")
CELLS = np.array(list(product((0, 1), repeat=len(ATTRIBUTES))))
SHARES = 10  # shares are multiples of 1/10; members count from -5 to 5, which keeps OPDisc's noise small


def people() -> np.ndarray:
    """The training file of Adult, three answers per person."""
    adult = ps.datasets.adult()
    frame = adult[adult["split"] == "train"]
    answers = (
        frame["marital-status"].str.startswith("Married"),
        frame["sex"] == "Male",
        frame["income"] == ">50K",
    )
    return np.column_stack(answers).astype(np.int64)


def queries() -> np.ndarray:
    """All conjunctions of answers, as rows of 0/1 over the cells: "married and not male", say."""
    rows = []
    for pattern in product((-1, 0, 1), repeat=len(ATTRIBUTES)):  # -1: not asked
        asked = [j for j, value in enumerate(pattern) if value >= 0]
        if asked:
            rows.append((CELLS[:, asked] == np.array(pattern)[asked]).all(axis=1))
    return np.array(rows, dtype=np.float64)


def independent(members: np.ndarray) -> np.ndarray:
    """The distribution of each member (rows, over the cells): answers are independent, one share for each question."""
    yes = members[:, None, :] / SHARES + 0.5
    return np.prod(np.where(CELLS == 1, yes, 1 - yes), axis=2)


def by_marriage(members: np.ndarray) -> np.ndarray:
    """The share of the married, then sex and income, each with a share for the married and one for the others."""
    married, male, male_single, rich, rich_single = members.T[:, :, None] / SHARES + 0.5
    is_married, is_male, is_rich = (CELLS == 1).T
    of_group = np.where(is_married, married, 1 - married)
    of_male = np.where(is_married, male, male_single)
    of_rich = np.where(is_married, rich, rich_single)
    return of_group * np.where(is_male, of_male, 1 - of_male) * np.where(is_rich, of_rich, 1 - of_rich)


SUGGESTED = {"equal shares": [0] * 5, "last year's": [0, 3, -1, 0, -4], "a guess": [1, 2, 0, -1, -3]}
"""Distributions that somebody proposes without looking at the records."""


def largest_error(shares):  # type: ignore[no-untyped-def]
    """The loss for `DiscreteProblem`: one total per member, in people. A record moves a count by one."""

    def loss(records: np.ndarray, members: np.ndarray) -> np.ndarray:
        asked = queries()
        cells = records @ (1 << np.arange(records.shape[1])[::-1])
        truth = asked @ np.bincount(cells, minlength=len(CELLS))
        blocks = np.array_split(members, 1 + len(members) // 20_000)
        return np.concatenate([np.abs(truth - len(records) * (shares(b) @ asked.T)).max(axis=1) for b in blocks])

    return loss


def noisy_histogram(records: np.ndarray, seed: int | None) -> float:
    """The largest error of the plainest method, Laplace noise on every cell, for comparison (in floating point)."""
    noise = np.random.default_rng(seed).laplace(scale=2 / EPSILON, size=len(CELLS))
    return float(np.abs(queries() @ noise).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, help="repeat a run; a seeded run is not private")
    options = parser.parse_args()
    records = people()
    print(f"{len(records):,} people, {len(ATTRIBUTES)} questions, {len(queries())} queries, epsilon = {EPSILON:g}")
    print("For the curator only, not private: largest error over the queries, in people")
    for name, shares, dim in (("independent answers", independent, 3), ("by marriage", by_marriage, 5)):
        domain = ps.IntegerGrid([-5] * dim, [5] * dim)
        loss = largest_error(shares)
        problem = ps.DiscreteProblem(domain, loss, records, sensitivity=1, bound=len(records), step=1)
        print(f"{name}: {domain.size:,} distributions, the best {problem.totals.min():,}")
        chosen = ps.exponential(problem, EPSILON, random_state=options.seed).release.model.weights
        print(f"  exponential mechanism {problem.total_loss(chosen):6,}   released {chosen.tolist()}")
        run = ps.opdisc(problem, EPSILON, oracle="enumeration", random_state=options.seed)
        chosen = run.release.model.weights
        print(f"  OPDisc                {problem.total_loss(chosen):6,}   released {chosen.tolist()}")
    suggested = ps.FiniteSet(list(SUGGESTED.values()))
    problem = ps.DiscreteProblem(suggested, loss, records, sensitivity=1, bound=len(records), step=1)
    chosen = ps.exponential(problem, EPSILON, random_state=options.seed).release.model.weights
    name = next(name for name, member in SUGGESTED.items() if member == chosen.tolist())
    print(f"  one of three          {problem.total_loss(chosen):6,}   released {name!r}")
    print(f"a noisy histogram of {len(CELLS)} cells: {noisy_histogram(records, options.seed):,.0f}")
    print(f"Guarantee: {run.release.guarantee}")


if __name__ == "__main__":
    main()
