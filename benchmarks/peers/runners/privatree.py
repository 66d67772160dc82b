"""PrivaTree, imported from a checkout of its public repository, whose path is in the environment variable PRIVATREE."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np

from peers.exchange import Exchange
from peers.jobs import Fitted, Job

sys.path.insert(0, os.environ["PRIVATREE"])
from privatree.privatree import PrivaTreeClassifier


def fit(data: Exchange, job: Job) -> Fitted:
    """Its default settings: ten bins of equal width per number, by the public bounds; or the 0/1 columns as categories."""
    if job.options.get("form") == "binary":
        train, test = data.train.binary.astype(float), data.test.binary.astype(float)
        ranges, sizes = [(0.0, 1.0)] * train.shape[1], [2] * train.shape[1]
    else:
        train, test = data.mixed(data.train), data.mixed(data.test)
        ranges = [(0.0, 1.0) if place is None else data.public.bounds[place] for place in data.places]
        sizes = [s if p is None else 0 for p, s in zip(data.places, data.public.sizes, strict=True)]
    model = PrivaTreeClassifier(
        max_depth=job.options["depth"],
        epsilon=job.epsilon,
        feature_range=np.array(ranges),
        categorical_features=np.array(sizes, dtype=int),
        random_state=job.seed,
    )
    model.fit(train, data.train.labels.astype(int))
    return Fitted(_nodes(model.root_), lambda: (model.predict(test), model.predict(test), None))


def _nodes(node: Any) -> int:
    return 1 if node.is_leaf() else 1 + _nodes(node.left_child) + _nodes(node.right_child)


@cache
def version() -> str:
    """The commit of the checkout."""
    command = ["git", "-C", os.environ["PRIVATREE"], "rev-parse", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown commit"
