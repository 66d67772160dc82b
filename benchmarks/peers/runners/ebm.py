"""InterpretML's explainable boosting machines, private with default settings, and plain with two outer bags."""

from __future__ import annotations

import interpret
import numpy as np
from interpret.glassbox import ExplainableBoostingClassifier
from interpret.privacy import DPExplainableBoostingClassifier

from peers.exchange import Exchange, Part
from peers.jobs import Fitted, Job, by_risk


def fit(data: Exchange, job: Job) -> Fitted:
    """Numbers as continuous features, categories as nominal ones; or the 0/1 columns, as nominal ones."""
    if job.options.get("form") == "binary":
        bounds = dict.fromkeys(range(data.train.binary.shape[1]), (0.0, 1.0))
        types = ["nominal"] * len(bounds)
    else:
        bounds = {j: tuple(data.public.bounds[p]) for j, p in enumerate(data.places) if p is not None}
        types = ["nominal" if place is None else "continuous" for place in data.places]
    common = {"feature_types": types, "random_state": job.seed % 2**31, "n_jobs": 1}
    if job.model == "dp":
        model = DPExplainableBoostingClassifier(epsilon=job.epsilon, delta=job.delta, privacy_bounds=bounds, **common)
    else:
        model = ExplainableBoostingClassifier(outer_bags=2, **common)  # of 14: they only smooth the curves
    model.fit(records(data, data.train, job), data.train.labels)
    numbers = sum(np.asarray(scores).size for scores in model.term_scores_) - 2 * len(model.term_scores_) + 1
    return by_risk(numbers, lambda: model.predict_proba(records(data, data.test, job))[:, 1])


def records(data: Exchange, part: Part, job: Job) -> np.ndarray:
    """The form that the job names."""
    return part.binary.astype(float) if job.options.get("form") == "binary" else data.mixed(part)


def version() -> str:
    """Of InterpretML."""
    return str(interpret.__version__)
