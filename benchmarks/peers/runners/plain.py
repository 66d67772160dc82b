"""scikit-learn without privacy, on the 0/1 columns."""

from __future__ import annotations

import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from peers.exchange import Exchange
from peers.jobs import Fitted, Job, by_risk


def fit(data: Exchange, job: Job) -> Fitted:
    """Logistic regression, or a greedy tree."""
    if job.model == "logistic":
        model = LogisticRegression(max_iter=5000).fit(data.train.binary, data.train.labels)
        numbers = model.coef_.size + 1
    else:
        model = DecisionTreeClassifier(max_depth=job.options["depth"], random_state=job.seed)
        numbers = model.fit(data.train.binary, data.train.labels).tree_.node_count
    return by_risk(numbers, lambda: model.predict_proba(data.test.binary)[:, 1])


def version() -> str:
    """Of scikit-learn."""
    return str(sklearn.__version__)
