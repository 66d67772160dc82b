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
    privacy). `adjacencies` are those its guarantee is for, `limit` the CPU seconds a fit may take.
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


def ours(name: str, estimator: str, delta: float = 0.0, **options: Any) -> Competitor:
    """One of privsolve's estimators with these options; under both adjacencies."""
    return Competitor(name, "ours", "ours", "ours", estimator, options, delta=delta)


def in_both_forms(
    name: str, env: str, runner: str, model: str, options: dict[str, Any] | None = None, **more: Any
) -> tuple[Competitor, Competitor]:
    """A private peer on numbers and on the 0/1 columns, because nobody knows beforehand which suits it better."""
    numbers, binary = ((options or {}) | {"form": form} for form in ("numbers", "binary"))
    return (
        Competitor(f"{name}, numbers", "private", env, runner, model, numbers, **more),
        Competitor(f"{name}, 0/1", "private", env, runner, model, binary, **more),
    )


COMPETITORS = (
    ours("scorecard", "PrivateScorecard", DELTA),
    ours("short card, 4 features", "PrivateShortCard", max_features=4),
    ours("tree, depth 3", "PrivateTreeClassifier", depth=3),
    ours("tree, depth 4", "PrivateTreeClassifier", depth=4),
    ours("tree of risks, depth 3", "PrivateTreeClassifier", depth=3, leaves="probabilities"),
    Competitor("DP-SGD, fixed", "private", "ours", "dpsgd", "fixed", delta=DELTA),
    Competitor("DP-SGD, tuned", "unfair", "ours", "dpsgd", "tuned", delta=DELTA, adjacencies=(ADD_REMOVE,)),
    *in_both_forms("DP-EBM", "interpret", "ebm", "dp", adjacencies=(ADD_REMOVE,), delta=DELTA),
    *in_both_forms("diffprivlib logistic", "diffprivlib", "diffpriv", "logistic", adjacencies=(REPLACE,)),
    *in_both_forms("diffprivlib naive Bayes", "diffprivlib", "diffpriv", "bayes", adjacencies=(ADD_REMOVE,)),
    *in_both_forms("diffprivlib tree", "diffprivlib", "diffpriv", "tree", adjacencies=(ADD_REMOVE,)),
    *in_both_forms("diffprivlib forest", "diffprivlib", "diffpriv", "forest", adjacencies=(ADD_REMOVE,)),
    *in_both_forms("PrivaTree", "privatree", "privatree", "tree", {"depth": 4}, adjacencies=(ADD_REMOVE,)),
    Competitor("synthetic data, logistic", "private", "dpmm", "synthetic", "bayes", {}, (ADD_REMOVE,), DELTA),
    Competitor("logistic regression", "plain", "ours", "plain", "logistic"),
    Competitor("decision tree, depth 4", "plain", "ours", "plain", "tree", {"depth": 4}),
    Competitor("EBM", "plain", "interpret", "ebm", "plain", limit=120),
    Competitor("FasterRisk, 4 features", "plain", "fasterrisk", "fasterrisk", "card", {"features": 4}),
    Competitor("FasterRisk, 10 features", "plain", "fasterrisk", "fasterrisk", "card", {"features": 10}),
    Competitor("STreeD, depth 3", "plain", "streed", "streed", "tree", {"depth": 3}),
    Competitor("STreeD, depth 4", "plain", "streed", "streed", "tree", {"depth": 4}),
    Competitor("GOSDT, depth 3", "plain", "gosdt", "gosdt", "tree", {"depth": 3}),
)
