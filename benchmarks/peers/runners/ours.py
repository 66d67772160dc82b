"""privsolve's estimators: the job names the class and its options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import privsolve as ps
from peers.exchange import Exchange
from peers.jobs import Fitted, Job
from privsolve.models.tree import nodes_of


def fit(data: Exchange, job: Job) -> Fitted:
    """The estimator on the raw columns, with the public schema."""
    options = job.options | ({"delta": job.delta} if job.delta else {})
    schema = ps.Schema.from_toml(data.public.schema)
    estimator = getattr(ps, job.model)(
        job.epsilon, schema=schema, adjacency=job.adjacency, random_state=job.seed, **options
    )
    estimator.fit(pd.DataFrame(data.train.raw), data.train.labels.astype(int))
    return Fitted(numbers_of(estimator.release_.model), lambda: predictions(estimator, pd.DataFrame(data.test.raw)))


def predictions(estimator: Any, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Labels, scores to rank by (totals, or the labels themselves), and risks where the model has them."""
    labels = estimator.predict(frame)
    if hasattr(estimator, "predict_proba"):
        risks = estimator.predict_proba(frame)[:, 1]
        return labels, risks, risks
    scores = estimator.decision_function(frame) if hasattr(estimator, "decision_function") else labels
    return labels, np.asarray(scores, dtype=float), None


def numbers_of(model: Any) -> int:
    """How many numbers a person has to read: points, the threshold and the unit of risks; or questions and leaves."""
    if hasattr(model, "root"):
        return sum(1 for _ in nodes_of(model.root))
    return int(np.count_nonzero(model.weights[:-1])) + 1 + int(hasattr(model, "log_odds"))


def version() -> str:
    """Of privsolve."""
    return ps.__version__
