"""Synthetic records by dpmm's PrivBayes, then logistic regression on them: what "publish synthetic data" gives."""

from __future__ import annotations

from importlib.metadata import version as version_of

import numpy as np
import pandas as pd
from dpmm.models.priv_bayes import PrivBayesGM
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from peers.exchange import Exchange
from peers.jobs import Fitted, Job, by_risk

ITERATIONS = 200
"""Of 5,000: more of them did not help on COMPAS, and they take minutes."""


def fit(data: Exchange, job: Job) -> Fitted:
    """As many made-up records as there are real ones, from the codes of all columns and the label."""
    names = [f"c{j}" for j in range(len(data.public.columns))]
    frame = pd.DataFrame(data.train.codes.astype(int), columns=names).assign(label=data.train.labels.astype(int))
    sizes = dict(zip([*names, "label"], [*data.public.sizes, 2], strict=True))
    random = np.random.RandomState(job.seed % 2**31)
    model = PrivBayesGM(
        epsilon=job.epsilon, delta=job.delta, domain=sizes, random_state=random, n_jobs=1, n_iters=ITERATIONS
    )
    model.fit(frame)
    made = model.generate(n_records=len(frame))
    features, labels = data.expand(made[names].to_numpy(int)), made["label"].to_numpy(int)
    if len(np.unique(labels)) < 2:
        only = DummyClassifier(strategy="constant", constant=labels[0]).fit(features, [0, *labels[1:]])
        return by_risk(1, lambda: np.full(len(data.test.labels), float(only.predict(features[:1])[0])))
    rule = LogisticRegression(max_iter=5000).fit(features, labels)
    return by_risk(rule.coef_.size + 1, lambda: rule.predict_proba(data.test.binary)[:, 1])


def version() -> str:
    """Of dpmm."""
    return version_of("dpmm")
