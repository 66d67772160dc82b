"""IBM's diffprivlib with default settings and public bounds: on numbers in [0, 1], or on the 0/1 columns."""

from __future__ import annotations

from math import sqrt

import diffprivlib
import numpy as np
from diffprivlib.models import DecisionTreeClassifier, GaussianNB, LogisticRegression, RandomForestClassifier

from peers.exchange import Exchange, Part
from peers.jobs import Fitted, Job, by_risk


def fit(data: Exchange, job: Job) -> Fitted:
    """The model of that name; the norm of a record is bounded by the root of the number of columns."""
    train, test = records(data, data.train, job), records(data, data.test, job)
    width, seed = train.shape[1], job.seed % 2**31
    bounds = (np.zeros(width), np.ones(width))
    trees = {"epsilon": job.epsilon, "bounds": bounds, "classes": [0, 1], "random_state": seed}
    if job.model == "logistic":
        model = LogisticRegression(epsilon=job.epsilon, data_norm=sqrt(width), random_state=seed)
    elif job.model == "bayes":
        model = GaussianNB(epsilon=job.epsilon, bounds=bounds, random_state=seed)
    else:
        model = DecisionTreeClassifier(**trees) if job.model == "tree" else RandomForestClassifier(**trees)
    model.fit(train, data.train.labels.astype(int))
    if job.model == "tree":  # its leaves have labels, and what it calls probabilities is 0 or 1
        return Fitted(model.tree_.node_count, lambda: (model.predict(test), model.predict(test), None))
    return by_risk(numbers_of(model), lambda: model.predict_proba(test)[:, 1])


def records(data: Exchange, part: Part, job: Job) -> np.ndarray:
    """The form that the job names."""
    return part.binary.astype(float) if job.options.get("form") == "binary" else data.unit_numeric(part)


def numbers_of(model: object) -> int:
    """Weights; means, variances and shares of classes; or all nodes of all trees."""
    if isinstance(model, LogisticRegression):
        return model.coef_.size + 1
    if isinstance(model, GaussianNB):
        return 2 * model.theta_.size + 2
    return sum(tree.tree_.node_count for tree in model.estimators_)


def version() -> str:
    """Of diffprivlib."""
    return str(diffprivlib.__version__)
