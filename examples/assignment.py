"""Privately assign time slots to departments from what their members prefer.

    python examples/assignment.py

Every person belongs to a department (public) and gives each slot a dissatisfaction from 0 to 4 (private). One slot per
department is chosen so that the total dissatisfaction is small: an assignment problem, solved exactly under noise.
"""

import numpy as np

import privsolve as ps
from privsolve.oracles import AssignmentOracle

SLOTS = ["Mon 8h", "Mon 16h", "Tue 12h", "Wed 8h", "Wed 18h", "Fri 14h"]
DEPARTMENTS = ["Surgery", "Nursing", "Pharmacy", "Kitchen", "IT", "Records"]
PEOPLE, WORST = 4000, 4


def made_up_preferences() -> np.ndarray:
    """Costs of shape (people, departments x slots): zero but for the person's own department."""
    rng = np.random.default_rng(0)
    k = len(SLOTS)
    taste = rng.normal(size=(k, k))
    department = rng.integers(0, k, size=PEOPLE)
    scores = taste[department] + rng.normal(size=(PEOPLE, k))
    costs = np.zeros((PEOPLE, k, k), dtype=np.int64)
    costs[np.arange(PEOPLE), department] = np.clip(np.rint(2 + scores), 0, WORST)
    return costs.reshape(PEOPLE, k * k)


def main() -> None:
    domain = ps.Permutations(len(SLOTS))
    names = [f"{d}: {s}" for d in DEPARTMENTS for s in SLOTS]
    problem = ps.LinearProblem(made_up_preferences(), domain, largest=WORST, names=names)
    noise = ps.sphere_noise(domain, 1.0, loss=problem.loss)
    print(
        f"{PEOPLE:,} people, {domain.size} possible assignments; expected loss of privacy noise: with probability 95 %"
    )
    print(f"at most {noise.utility_bound(0.05) / PEOPLE:.2f} points of dissatisfaction per person.\n")

    run = ps.opdisc(problem, epsilon=1.0, oracle=AssignmentOracle())
    for name, chosen in zip(problem.names, run.release.weights, strict=True):
        if chosen:
            print(f"  {name}")
    print(f"\n{run.release.guarantee}")
    best = problem.total_loss(AssignmentOracle().minimise(problem, ps.Perturbation.zero(domain)).weights)
    print(
        f"\nFor the curator only: {run.diagnostics.cost_per_record:.3f} per person; without privacy {best / PEOPLE:.3f}."
    )


if __name__ == "__main__":
    main()
