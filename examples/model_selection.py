"""Privately choose among published models by a hospital's own patients.

    python examples/model_selection.py

Eight risk scores for the same disease have been published. Which one fits here? The hospital counts on its own patients how
many each model gets right: one patient more or less moves each count by at most 1 and all of them in one direction, so the
scores are monotone. Permute-and-flip chooses, exactly, and the choice is all that is released.
"""

import numpy as np

import privsolve as ps

PATIENTS, EPSILON = 300, 0.3
PUBLISHED = {
    "Adler 2009": 0.71,
    "Bianchi 2012": 0.74,
    "Chen 2014": 0.78,
    "Dufour 2015": 0.69,
    "Eriksen 2017": 0.80,
    "Fuentes 2018": 0.79,
    "Gupta 2020": 0.76,
    "Hansen 2022": 0.62,
}


def right_answers() -> dict[str, int]:
    """How many of the made-up patients each model gets right."""
    rng = np.random.default_rng(4)
    return {name: int((rng.random(PATIENTS) < share).sum()) for name, share in PUBLISHED.items()}


def main() -> None:
    counts = right_answers()
    run = ps.choose(counts, sensitivity=1, epsilon=EPSILON, monotone=True, adjacency="add-remove")
    print(f"{len(counts)} published models. The one to use here: {run.release.model.describe()}\n")
    print(f"Guarantee: {run.release.guarantee}")
    bound = ps.choice_utility_bound(len(counts), 1, EPSILON, monotone=True)
    print(f"With probability 0.95 at most {bound:.0f} patients are lost to the best model, whatever the data.\n")
    print("For the curator only: right answers, and how likely each model was to be chosen")
    for method in (ps.Selection.PERMUTE_AND_FLIP, ps.Selection.EXPONENTIAL):
        options = {"monotone": True, "adjacency": "add-remove", "method": method}
        law = np.exp(ps.Selector(counts, 1, EPSILON, **options).log_law())
        lost = law @ (max(counts.values()) - np.array(list(counts.values())))
        print(f"\n{method}, expected loss {lost:.2f} patients")
        for (name, right), chance in sorted(zip(counts.items(), law, strict=True), key=lambda row: -row[0][1])[:4]:
            print(f"  {name:13} {right:6,} {chance:7.1%} {'█' * round(40 * chance)}")


if __name__ == "__main__":
    main()
