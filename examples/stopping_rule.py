"""Privately choose a rule for when to end a therapy, by what it would have done for past patients.

    python examples/stopping_rule.py

A rule says: stop once the symptom score has been at most `level` for `weeks` weeks in a row. It is tried on every past
patient's recorded course: a simulation, neither convex nor smooth in the rule. Each week of therapy costs 1, ending it while
the patient is still ill costs 30 more. Nobody can cost more than 54, which is public. All 80 rules are compared.
"""

import numpy as np

import privsolve as ps

WEEKS, PATIENTS, RELAPSE, EPSILON = 24, 2_000, 30, 0.5
RULES = ps.IntegerGrid([0, 1], [9, 8])


def cost(courses: np.ndarray, rules: np.ndarray) -> np.ndarray:
    """Weeks of therapy, and 30 for those who are ill afterwards: a row per patient, a column per rule."""
    result = np.empty((len(courses), len(rules)), dtype=np.int64)
    for column, (level, weeks) in enumerate(rules):
        calm = np.lib.stride_tricks.sliding_window_view(courses <= level, weeks, axis=1).all(axis=2)
        stopped = np.where(calm.any(axis=1), calm.argmax(axis=1) + weeks, WEEKS)
        after = np.where(np.arange(WEEKS) >= stopped[:, None], courses, 0).max(axis=1)
        result[:, column] = stopped + RELAPSE * (after >= 6)
    return result


def made_up_courses() -> np.ndarray:
    """Scores from 0 to 10 that fall, at a speed of the patient's own, with good and bad weeks."""
    rng = np.random.default_rng(5)
    speed, weeks = rng.gamma(4.0, 0.05, size=(PATIENTS, 1)), np.arange(WEEKS)
    mean = 8 * np.exp(-speed * weeks)
    return np.clip(np.rint(mean + rng.normal(scale=1.2, size=(PATIENTS, WEEKS))), 0, 10).astype(np.int64)


def main() -> None:
    courses = made_up_courses()
    problem = ps.DiscreteProblem(RULES, cost, courses, bound=WEEKS + RELAPSE, names=["level", "weeks"])
    run = ps.exponential(problem, EPSILON)
    level, weeks = run.release.weights
    print(f"{PATIENTS:,} past patients, {RULES.size} rules.")
    print(f"Stop once the score has been at most {level} for {weeks} {'week' if weeks == 1 else 'weeks in a row'}.\n")
    print(f"Guarantee: {run.release.guarantee}\n")
    print("For the curator only: what each rule costs per patient (rows: level, columns: weeks)")
    table = (problem.totals / PATIENTS).reshape(10, 8)
    print("      " + "".join(f"{week:6}" for week in range(1, 9)))
    for row, costs in enumerate(table):
        marks = ["*" if (row, week) == (level, weeks) else " " for week in range(1, 9)]
        print(f"  {row:3} " + "".join(f"{c:5.1f}{mark}" for c, mark in zip(costs, marks, strict=True)))
    print(f"The rule (*) costs {run.diagnostics.loss_per_record:.2f} per patient; the best one {table.min():.2f}.")


if __name__ == "__main__":
    main()
