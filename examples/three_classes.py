"""Privately choose a card with three outcomes: low, middle or high progression of diabetes.

    python examples/three_classes.py

Ordered classes need one total and two cut points, not a card per class: the whole rule is one member of a public domain of
39,366 rules, six questions with 0 to 2 points each and two cut points. A patient loses the number of classes that the rule
is off (0, 1 or 2). The data are scikit-learn's 442 patients; questions and classes are fixed beforehand.
"""

from itertools import product

import numpy as np
from sklearn.datasets import load_diabetes

import privsolve as ps

EPSILON = 2.0
CLASSES = ("low", "middle", "high")
QUESTIONS = {  # scikit-learn gives every column in standard deviations / sqrt(442)
    "body mass index above average": ("bmi", 0.0),
    "body mass index far above": ("bmi", 0.05),
    "blood pressure above average": ("bp", 0.0),
    "triglycerides above average": ("s5", 0.0),
    "triglycerides far above": ("s5", 0.05),
    "little good cholesterol": ("s3", -0.02),
}
LOW_BELOW, HIGH_FROM = 100, 190


def patients() -> np.ndarray:
    """Six answers and the class of every patient."""
    data = load_diabetes(as_frame=True)
    answers = [(data.data[c] < cut) if c == "s3" else (data.data[c] > cut) for c, cut in QUESTIONS.values()]
    classes = (data.target >= LOW_BELOW).astype(int) + (data.target >= HIGH_FROM).astype(int)
    return np.column_stack([*answers, classes]).astype(np.int64)


def rules() -> ps.FiniteSet:
    """Points of the six questions, then the totals from which "middle" and "high" begin."""
    cuts = [(a, b) for a in range(1, 10) for b in range(a + 1, 12)]
    return ps.FiniteSet([[*points, *cut] for points in product(range(3), repeat=len(QUESTIONS)) for cut in cuts])


def classes_off(people: np.ndarray, some_rules: np.ndarray) -> np.ndarray:
    """How many classes each rule is off for each patient; whole numbers throughout."""
    totals = people[:, :-1] @ some_rules[:, :-2].T
    said = (totals >= some_rules[:, -2]).astype(np.int64) + (totals >= some_rules[:, -1])
    return np.abs(said - people[:, -1:])


def main() -> None:
    people, domain = patients(), rules()
    names = (*QUESTIONS, "middle from", "high from")
    problem = ps.DiscreteProblem(domain, classes_off, people, bound=len(CLASSES) - 1, names=names)
    run = ps.exponential(problem, EPSILON)
    *points, middle, high = run.release.weights.tolist()
    print(f"{len(people)} patients, {domain.size:,} rules. The card:\n")
    for name, worth in zip(QUESTIONS, points, strict=True):
        if worth:
            print(f"  {name:32} {worth} point{'s' if worth > 1 else ''}")
    print(f"\n  low below {middle}, middle from {middle}, high from {high}\n\nGuarantee: {run.release.guarantee}\n")
    print("For the curator only: patients by what the card says (down) and what is true (across)")
    said = np.digitize(people[:, :-1] @ points, [middle, high])
    print("  " + " " * 8 + "".join(f"{name:>8}" for name in CLASSES))
    for row, name in enumerate(CLASSES):
        print(f"  {name:8}" + "".join(f"{((said == row) & (people[:, -1] == col)).sum():8}" for col in range(3)))
    best, guess = problem.totals.min() / problem.n, np.abs(people[:, -1] - 1).mean()
    print(
        f"{run.diagnostics.loss_per_record:.3f} classes off on average; without privacy {best:.3f}, always middle {guess:.3f}"
    )


if __name__ == "__main__":
    main()
