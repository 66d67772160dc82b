"""DP-SGD logistic regression, by privsolve's baseline, on the 0/1 columns with an intercept."""

from __future__ import annotations

import numpy as np

import privsolve as ps
from peers.exchange import Exchange
from peers.jobs import Fitted, Job, by_risk, sigmoid
from privsolve.experiments.dpsgd import Accounting, DPSGDSettings, dp_sgd, settings_grid, tune_dp_sgd
from privsolve.privacy.adjacency import Adjacency


def fit(data: Exchange, job: Job) -> Fitted:
    """`fixed`: 64 full-batch steps, clip 1, rate 3/n; `tuned`: chosen by training accuracy, which is not private."""
    ones = np.ones((len(data.train.labels), 1), dtype=np.int64)
    features = np.hstack([data.train.binary.astype(np.int64), ones])
    table = ps.PatternTable.from_records(features, data.train.labels == 1, ranges=[(0, 1)] * len(features[0]))
    accounting = Accounting(job.epsilon, job.delta, Adjacency.of(job.adjacency))
    weights = dp_sgd(table, accounting, settings(table, accounting, job), job.seed)
    return by_risk(len(weights), lambda: sigmoid(data.test.binary @ weights[:-1] + weights[-1]))


def settings(table: ps.PatternTable, accounting: Accounting, job: Job) -> DPSGDSettings:
    """Public and the same everywhere, or tuned."""
    if job.model == "fixed":
        return DPSGDSettings(clip=1.0, rate=1.0, steps=64, learning_rate=3 / table.n)
    grid = settings_grid(table.n, clips=(0.3, 1.0, 2.5), steps=(16, 64, 250), averaged=(0.5,))
    return tune_dp_sgd(table, accounting, grid, random_state=job.seed, n_jobs=1)


def version() -> str:
    """Of privsolve."""
    return ps.__version__
