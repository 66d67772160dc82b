"""STreeD: optimal decision trees without privacy, on the 0/1 columns."""

from __future__ import annotations

from importlib.metadata import version as version_of

from pystreed import STreeDClassifier

from peers.exchange import Exchange
from peers.jobs import Fitted, Job, by_risk


def fit(data: Exchange, job: Job) -> Fitted:
    """The tree with the fewest mistakes of that depth."""
    model = STreeDClassifier("accuracy", max_depth=job.options["depth"], random_seed=job.seed % 2**31)
    model.fit(data.train.binary.astype(int), data.train.labels.astype(int))
    return by_risk(2 * model.get_n_leaves() - 1, lambda: model.predict_proba(data.test.binary.astype(int))[:, 1])


def version() -> str:
    """Of pystreed."""
    return version_of("pystreed")
