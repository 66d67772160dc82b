"""A scorecard or a decision tree, whichever fits better: from a table to one draw over both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privsolve.cards.scorecard import Scorecard
from privsolve.cards.tree_card import TreeCard
from privsolve.data import EncodedTable, Schema
from privsolve.domains import SparsePoints
from privsolve.domains.trees import DecisionTrees, TreePrior, TreeQuestions, tree_schema
from privsolve.engines.supports.work import check_work
from privsolve.learn.base import RandomState, StatedSchema, warn_in_search
from privsolve.learn.classifying import ClassEstimator
from privsolve.learn.estimators import read_for_fit
from privsolve.learn.fitting import Recipe, scorecard_domain, with_outside
from privsolve.learn.growing import TreeRecipe
from privsolve.learn.labels import classes_of
from privsolve.learn.limits import CardLimits
from privsolve.learn.trees import DEPTH
from privsolve.losses import ZeroOneLoss
from privsolve.mechanisms.exponential import inverse_temperature
from privsolve.mechanisms.unions import EQUAL_WEIGHTS, ModelClass, UnionCallback, checked_weights, private_union
from privsolve.models.base import Model
from privsolve.models.leaves import LabelLeaves, label_array
from privsolve.models.linear import LinearRule, answers
from privsolve.models.score_range import check_scores
from privsolve.models.tree import DecisionTree
from privsolve.noise.entropy import Randomness
from privsolve.privacy.accounting import Account
from privsolve.privacy.adjacency import Adjacency
from privsolve.problems.priors import Prior
from privsolve.problems.unions import UnionProblem, label_costs
from privsolve.releases import Run


@dataclass(frozen=True)
class UnionRecipe:
    """How a card or a tree for a label of two values is chosen: everything but the data, all of it public."""

    epsilon: float
    schema: Schema
    depth: int = DEPTH
    max_features: int | None = None
    max_points: int = 3
    intercept: int | tuple[int, int] = (-8, 8)
    adjacency: Adjacency | str = Adjacency.REPLACE
    false_positive: int = 1
    false_negative: int = 1
    weights: Mapping[str, float] = field(default_factory=lambda: EQUAL_WEIGHTS)
    card_prior: Prior | None = None
    tree_prior: TreePrior | None = None
    simplify: bool = True

    def __post_init__(self) -> None:
        checked_weights(self.weights)
        inverse_temperature(self.epsilon, self.adjacency, self.loss)
        _ = self.trees, self.domain

    @property
    def asked(self) -> Schema:
        """The schema of the features, yes/no for cards and trees alike."""
        return tree_schema(self.schema, intercept=True)

    @property
    def loss(self) -> ZeroOneLoss:
        """What the mistakes cost."""
        return ZeroOneLoss(self.false_positive, self.false_negative)

    @property
    def domain(self) -> SparsePoints:
        """The cards to choose from."""
        asked = self.asked
        return scorecard_domain(
            asked.dim, self.max_features, self.max_points, self.intercept if asked.intercept else None
        )

    @property
    def trees(self) -> DecisionTrees:
        """The trees to choose from."""
        yes, no = answers(self.schema.label)
        costs = None if self.loss == ZeroOneLoss() else label_costs(self.loss)
        return DecisionTrees(TreeQuestions.of(tree_schema(self.schema)), self.depth, LabelLeaves([no, yes], costs))

    def run(
        self,
        encoded: EncodedTable,
        *,
        random_state: int | np.random.SeedSequence | Randomness | None = None,
        progress: UnionCallback | None = None,
        budget: Account | None = None,
    ) -> Run:
        """Choose for a table that `asked` has encoded; the diagnostics hold what fell outside the schema."""
        encoded.check(self.asked)
        domain = self.domain
        check_scores(encoded.schema, [int(abs(domain.values(j)).max()) for j in range(domain.dim)])
        problem = UnionProblem(encoded.table, domain, self.trees, self.loss, encoded.schema)
        check_work(domain.columns, domain.max_features, problem.n)
        run = private_union(
            problem, self.epsilon, weights=self.weights, card_prior=self.card_prior, tree_prior=self.tree_prior,
            adjacency=self.adjacency, random_state=random_state, simplify=self.simplify, progress=progress,
            budget=budget,
        )  # fmt: skip
        return with_outside(run, encoded)


class PrivateClassifier(ClassEstimator):
    """A scorecard or a decision tree for two classes, whichever fits better: one exact draw over both, one epsilon.

    Args:
        epsilon: privacy budget of one fit, with the draft of the schema if there is one.
        models: the classes of models to choose from, `"card"` and `"tree"`: their names, or a mapping from names to weights,
            which are public; equal weights unless stated.
        depth: of a tree: at most so many questions are asked of a record.
        max_features, max_points, intercept: of a card, as in `PrivateShortCard`.
        card_prior, tree_prior: what is likely in each class before the data is seen.
        false_positive, false_negative: public whole costs of the two kinds of mistake, the same for both classes of models.
        simplify: take out questions of a tree whose two sides say the same.
        schema: what is public about the table, a `Schema` or the path of a schema file; numbers are cut at public points,
            for cards as for trees. None: it is drafted privately from the records, and a quarter of epsilon pays for that.
        adjacency: `"replace"` (one record changed, n is public) or `"add-remove"`.
        budget: an `Accountant` or a `Ledger` that pays for every fit, or refuses it.
        random_state: None for releases; a seed makes fits repeatable, for testing only.
        progress: called now and then while a fit is at work, with the mechanism's own progress; not private.

    Attributes:
        release_: model, guarantee and setting, to publish. `card_` and `privacy_` are read off it.
        diagnostics_: training accuracy and work done: the curator's, not private.
        classes_: the two labels, the positive one last.

    Guarantee:
        Each fit is `epsilon`-DP and `epsilon²/8`-zCDP under the stated adjacency (theory, section 4 and unions) for what
        `release_` holds, which of the two it is included, provided that schema, costs and all other arguments were chosen
        without looking at the data. Several fits, as in a grid search, add up.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        models: Sequence[str] | Mapping[str, float] = ("card", "tree"),
        depth: int = DEPTH,
        max_features: int | None = None,
        max_points: int = 3,
        intercept: int | tuple[int, int] = (-8, 8),
        card_prior: Prior | None = None,
        tree_prior: TreePrior | None = None,
        false_positive: int = 1,
        false_negative: int = 1,
        simplify: bool = True,
        schema: StatedSchema = None,
        adjacency: Adjacency | str = "replace",
        budget: Account | None = None,
        random_state: RandomState = None,
        progress: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.models = models
        self.depth = depth
        self.max_features = max_features
        self.max_points = max_points
        self.intercept = intercept
        self.card_prior = card_prior
        self.tree_prior = tree_prior
        self.false_positive = false_positive
        self.false_negative = false_negative
        self.simplify = simplify
        self.schema = schema
        self.adjacency = adjacency
        self.budget = budget
        self.random_state = random_state
        self.progress = progress

    @classmethod
    def _of_model(cls, model: Model) -> Mapping[str, Any]:
        if isinstance(model, LinearRule):
            return {}
        if isinstance(model, DecisionTree) and isinstance(model.leaves, LabelLeaves) and len(model.leaves.labels) == 2:
            return {"depth": max(1, model.depth)}
        raise ValueError(f"release: it holds a {model.kind}, not a card or a tree of two labels: use another estimator")

    def _set_classes(self) -> None:
        leaves = self.model_.leaves if isinstance(self.model_, DecisionTree) else None
        of_label = classes_of(self.release_.schema)
        self.classes_ = label_array(leaves.labels) if isinstance(leaves, LabelLeaves) else of_label

    def fit(self, X: Any, y: ArrayLike | None = None, **options: Any) -> Any:
        """Choose the model. Spends the whole `epsilon`: every call is a release of its own.

        Without `y` the labels are those of the schema's column in `X`, which may then be a table in an engine.
        """
        self._check_fit(options)
        weights = _weights_of(self.models)
        stated = self._stated_schema()
        warn_in_search()
        frame, schema, classes, positive = read_for_fit(self, X, y, stated)
        run = self._run(schema, weights, frame, positive)
        self.classes_ = classes
        return self._keep(run)

    def _run(self, schema: Schema, weights: Mapping[str, float], frame: Any, positive: NDArray[np.bool_] | None) -> Run:
        costs: dict[str, Any] = {"false_positive": self.false_positive, "false_negative": self.false_negative}
        if set(weights) == {ModelClass.CARD}:
            cards = Recipe(self._fit_epsilon, adjacency=self.adjacency, prior=self.card_prior, **costs)
            intercept = self.intercept if schema.intercept else None
            domain = CardLimits().domain(schema, self.max_features, self.max_points, intercept)
            return self._released(cards.run, schema.table(frame, positive), domain)
        if set(weights) == {ModelClass.TREE}:
            trees = TreeRecipe(
                self._fit_epsilon, schema, self.depth, adjacency=self.adjacency, prior=self.tree_prior,
                simplify=self.simplify, **costs,
            )  # fmt: skip
            return self._released(trees.run, trees.asked.table(frame, positive))
        both = UnionRecipe(
            self._fit_epsilon, schema, self.depth, self.max_features, self.max_points, self.intercept, self.adjacency,
            weights=weights, card_prior=self.card_prior, tree_prior=self.tree_prior, simplify=self.simplify, **costs,
        )  # fmt: skip
        return self._released(both.run, both.asked.table(frame, positive))

    @property
    def card_(self) -> Scorecard | TreeCard:
        """The model in the form that people use."""
        self._check_fitted()
        return self.release_.card()

    @property
    def model_(self) -> LinearRule | DecisionTree:
        """The model that was chosen."""
        self._check_fitted()
        model = self.release_.model
        assert isinstance(model, LinearRule | DecisionTree)
        return model

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """The names of the features that the model may use."""
        return np.array(self.model_.features, dtype=object)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of every row."""
        self._check_fitted()
        frame, model = self._frame(X, reset=False), self.model_
        positive = model.decide(frame) if isinstance(model, LinearRule) else model.values(frame) == 1
        return np.asarray(self.classes_[positive.astype(np.intp)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _weights_of(models: Sequence[str] | Mapping[str, float]) -> Mapping[str, float]:
    """The weights of the classes that are asked for; raise for anything else."""
    known = set(ModelClass)
    listed = isinstance(models, Mapping | list | tuple)
    if not listed or not models or len(set(models)) != len(models) or not known.issuperset(models):
        raise ValueError(
            f"models must name one or both of {' and '.join(map(repr, map(str, ModelClass)))}, once each, or give their "
            f"weights; got {models!r}"
        )
    weights = dict(models) if isinstance(models, Mapping) else dict.fromkeys(models, 1.0)
    if len(weights) > 1:
        checked_weights(weights)
    return weights
