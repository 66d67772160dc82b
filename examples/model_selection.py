"""Privately choose among published models by a hospital's own patients.

    python examples/model_selection.py

Eight risk scores for the same disease have been published. Which one fits here? The hospital notes for each of its patients
which models are wrong: one row per patient, one column per model. The exponential mechanism chooses a model with few mistakes,
and the choice is all that is released.
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


def mistakes() -> np.ndarray:
    """For each made-up patient, 1 for each model that is wrong."""
    return (np.random.default_rng(4).random((PATIENTS, len(PUBLISHED))) >= list(PUBLISHED.values())).astype(int)


def main() -> None:
    names, models = list(PUBLISHED), ps.IntegerGrid([0], [len(PUBLISHED) - 1])
    problem = ps.DiscreteProblem(models, mistakes(), bound=1, names=["model"])
    run = ps.exponential(problem, EPSILON, adjacency="add-remove")
    print(f"{len(names)} published models. The one to use here: {names[int(run.release.weights[0])]}\n")
    print(f"Guarantee: {run.release.guarantee}")
    bound = ps.exponential_utility_bound(models, EPSILON, adjacency="add-remove", loss=problem.loss)
    print(f"With probability 0.95 at most {bound:.0f} patients are lost to the best model, whatever the data.\n")
    print("For the curator only: right answers, and how likely each model was to be chosen")
    law = np.exp(ps.audit.exponential_law(problem, EPSILON, adjacency="add-remove"))
    for k in np.argsort(problem.totals, kind="stable")[:4]:
        print(f"  {names[k]:13} {PATIENTS - problem.totals[k]:6,} {law[k]:7.1%} {'█' * round(40 * law[k])}")


if __name__ == "__main__":
    main()
