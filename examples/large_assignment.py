"""Privately assign 200 schools to 200 dates for a visit: one of 10^375 assignments.

    python examples/large_assignment.py

Every pupil gives each date a dissatisfaction from 0 to 4, which concerns the pupil's own school only: costs are sparse. With
40,000 pairs of school and date the noise has 40,000 coordinates. Gaussian noise grows with the square root of that, and still
100 pupils per school need a large ε: the last line says what is gained.
"""

import numpy as np
from scipy.sparse import csr_array

import privsolve as ps
from privsolve.oracles import AssignmentOracle

SCHOOLS, PUPILS, WORST, EPSILON = 200, 20_000, 4, 8.0


def made_up_wishes() -> csr_array:
    """A row per pupil with 200 costs, in the columns of the pupil's school."""
    rng = np.random.default_rng(0)
    school = rng.integers(0, SCHOOLS, size=PUPILS)
    taste = rng.normal(scale=1.5, size=(SCHOOLS, SCHOOLS))
    costs = np.clip(np.rint(2 + taste[school] + rng.normal(size=(PUPILS, SCHOOLS))), 0, WORST).astype(np.int64)
    columns = school[:, None] * SCHOOLS + np.arange(SCHOOLS)
    starts = np.arange(PUPILS + 1) * SCHOOLS
    return csr_array((costs.ravel(), columns.ravel(), starts), shape=(PUPILS, SCHOOLS**2))


def main() -> None:
    domain = ps.Permutations(SCHOOLS)
    problem = ps.LinearProblem(made_up_wishes(), domain, largest=WORST)
    run = ps.opdisc(problem, EPSILON, noise="gaussian", delta=1e-6, oracle=AssignmentOracle())
    dates = run.release.weights.reshape(SCHOOLS, SCHOOLS).argmax(axis=1)
    print(f"{PUPILS:,} pupils, {SCHOOLS} schools and dates. The first schools get the dates {dates[:8].tolist()}.\n")
    print(f"Guarantee: {run.release.guarantee}\n")
    print("For the curator only: dissatisfaction of the schools with their dates")
    mine = problem.total.reshape(SCHOOLS, SCHOOLS)
    pupils = np.maximum(1, mine.max(axis=1) / WORST)
    levels = np.minimum(mine[np.arange(SCHOOLS), dates] / pupils, WORST)
    for level in range(WORST):
        count = int(((levels >= level) & (levels < level + 1)).sum())
        print(f"  {level} to {level + 1} {'█' * (count // 2)} {count}")
    best = problem.total_loss(AssignmentOracle().minimise(problem, ps.Perturbation.zero(domain)).weights)
    chance = mine.mean(axis=1).sum() / PUPILS
    print(f"{run.diagnostics.cost_per_record:.2f} per pupil; without privacy {best / PUPILS:.2f}, by lot {chance:.2f}.")


if __name__ == "__main__":
    main()
