"""Everybody who is measured, one line each, and what is public about how: to add somebody is to add a line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

EPSILONS = (0.1, 0.3, 1.0, 3.0)
DELTA = 1e-5
"""Where a guarantee needs one."""

REPLACE, ADD_REMOVE = "replace", "add-remove"
BOTH = (REPLACE, ADD_REMOVE)


@dataclass(frozen=True)
class Competitor:
    """A model as the tables name it: the environment and the module that run it, and its options.

    `group` is `"ours"`, `"private"`, `"unfair"` (private, but with settings chosen by looking at the records) or `"plain"` (no
    privacy). `adjacencies` are those its guarantee is for, `limit` the seconds a fit may take.
    """

    name: str
    group: str
    env: str
    runner: str
    model: str
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    adjacencies: tuple[str, ...] = BOTH
    delta: float = 0.0
    limit: float = 60.0

    @property
    def epsilons(self) -> tuple[float | None, ...]:
        """The budgets to run with: None without privacy."""
        return (None,) if self.group == "plain" else EPSILONS

    @property
    def relations(self) -> tuple[str, ...]:
        """The adjacencies to run with."""
        return ("none",) if self.group == "plain" else self.adjacencies


def ours(name: str, estimator: str, limit: float = 60.0, **options: Any) -> Competitor:
    """One of privsolve's estimators with these options; under both adjacencies."""
    return Competitor(name, "ours", "ours", "ours", estimator, options, limit=limit)


COMPETITORS = (
    ours("card, 4 features", "PrivateScorecard", max_features=4),
    ours("card, 6 features", "PrivateScorecard", max_features=6, limit=30),
    ours("linear, small integers", "PrivateLinearClassifier", limit=30),
    ours("tree, depth 3", "PrivateTreeClassifier", depth=3),
    ours("tree, depth 4", "PrivateTreeClassifier", depth=4),
    ours("tree of risks, depth 3", "PrivateTreeClassifier", depth=3, leaves="probabilities"),
    ours("tree of risks, depth 4", "PrivateTreeClassifier", depth=4, leaves="probabilities"),
    Competitor("DP-SGD, fixed", "private", "ours", "dpsgd", "fixed", delta=DELTA),
    Competitor("DP-SGD, tuned", "unfair", "ours", "dpsgd", "tuned", delta=DELTA, adjacencies=(ADD_REMOVE,)),
    Competitor("DP-EBM", "private", "interpret", "ebm", "dp", adjacencies=(ADD_REMOVE,), delta=DELTA),
    Competitor("diffprivlib logistic", "private", "diffprivlib", "diffpriv", "logistic", adjacencies=(REPLACE,)),
    Competitor("diffprivlib naive Bayes", "private", "diffprivlib", "diffpriv", "bayes", adjacencies=(ADD_REMOVE,)),
    Competitor("diffprivlib tree", "private", "diffprivlib", "diffpriv", "tree", adjacencies=(ADD_REMOVE,)),
    Competitor("diffprivlib forest", "private", "diffprivlib", "diffpriv", "forest", adjacencies=(ADD_REMOVE,)),
    Competitor("PrivaTree, depth 4", "private", "privatree", "privatree", "tree", {"depth": 4}, (ADD_REMOVE,)),
    Competitor("synthetic data + logistic", "private", "dpmm", "synthetic", "mst", {}, (ADD_REMOVE,), DELTA),
    Competitor("logistic regression", "plain", "ours", "plain", "logistic"),
    Competitor("decision tree, depth 4", "plain", "ours", "plain", "tree", {"depth": 4}),
    Competitor("EBM", "plain", "interpret", "ebm", "plain"),
    Competitor("FasterRisk, 4 features", "plain", "fasterrisk", "fasterrisk", "card", {"features": 4}),
    Competitor("FasterRisk, 10 features", "plain", "fasterrisk", "fasterrisk", "card", {"features": 10}),
    Competitor("STreeD, depth 3", "plain", "streed", "streed", "tree", {"depth": 3}),
    Competitor("STreeD, depth 4", "plain", "streed", "streed", "tree", {"depth": 4}),
    Competitor("GOSDT, depth 4", "plain", "gosdt", "gosdt", "tree", {"depth": 4}),
)
