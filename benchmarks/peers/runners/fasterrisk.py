"""FasterRisk: sparse integer risk scores without privacy, on the 0/1 columns."""

from __future__ import annotations

from importlib.metadata import version as version_of

import numpy as np
from fasterrisk.fasterrisk import RiskScoreOptimizer

from peers.exchange import Exchange
from peers.jobs import Fitted, Job, by_risk, sigmoid


def fit(data: Exchange, job: Job) -> Fitted:
    """The best of its models, with so many features and points of at most so much."""
    points = job.options.get("points", 5)
    signs = np.where(data.train.labels == 1, 1.0, -1.0)
    search = RiskScoreOptimizer(
        data.train.binary.astype(float), signs, k=job.options["features"], lb=-points, ub=points
    )
    search.optimize()
    multiplier, intercept, weights = search.get_models(model_index=0)
    risks = sigmoid((data.test.binary @ weights + intercept) / multiplier)
    return by_risk(int(np.count_nonzero(weights)) + 2, lambda: risks)


def version() -> str:
    """Of FasterRisk."""
    return version_of("fasterrisk")
