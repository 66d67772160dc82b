"""scikit-learn estimators of private decision trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if

from privsolve.checks import check_items
from privsolve.data import Schema
from privsolve.data.columns import Value
from privsolve.domains.trees import TreeQuestions
from privsolve.learn.base import ClassEstimator
from privsolve.learn.labels import (
    class_numbers,
    labels_in,
    occurring_classes,
    one_per_record,
    public_classes,
    with_label,
)
from privsolve.learn.recipe import encode
from privsolve.learn.tree_recipe import DEPTH, TreeRecipe, leaves_of
from privsolve.models.base import Model
from privsolve.models.leaves import LabelLeaves, LeafKind, Leaves, ProbabilityLeaves, label_array
from privsolve.models.tree import DecisionTree
from privsolve.problems.trees import TreeProblem


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateTreeClassifier(ClassEstimator):
    """A decision tree for two or more classes, drawn exactly from all trees of a depth.

    Args:
        epsilon: privacy budget of one fit, with the draft of the schema if there is one.
        depth: at most so many questions are asked of a record.
        leaves: `"labels"`, a class in every leaf, chosen by mistakes; or `"probabilities"` of the classes, from a public
            grid, chosen by Brier's loss: then there is `predict_proba`.
        classes: the classes, which are public. Left out, they are those of the schema's label, or 0 and 1 (also
            for booleans); without a schema those that occur, each of which at least two records must have.
        costs: for labels, `costs[i][j]` is what saying class j costs for a record of class i, in whole numbers.
        schema, adjacency, budget, random_state: as in `PrivateScorecard`.
        progress: called with the share of the work that is done.

    Attributes:
        release_: tree, guarantee and setting, to publish. `tree_` and `privacy_` are read off it.
        diagnostics_: training accuracy and work done: the curator's, not private.
        classes_: the classes.

    Guarantee:
        Each fit is `epsilon`-DP and `epsilon²/8`-zCDP under the stated adjacency (theory, section 4 and trees) for what
        `release_` holds, provided that schema, classes and all other arguments were chosen without looking at the data.
        Several fits, as in a grid search, add up.
    """

    depth: int = DEPTH
    leaves: LeafKind | str = "labels"
    classes: Sequence[Value] | None = None
    costs: Sequence[Sequence[int]] | None = None

    instead_of_weights: ClassVar[str] = "weigh the kinds of mistake by costs instead"

    @classmethod
    def _of_model(cls, model: Model) -> Mapping[str, Any]:
        if not isinstance(model, DecisionTree):
            raise ValueError("release: it does not hold a decision tree: use the estimator of its kind")
        leaves = LeafKind.PROBABILITIES if isinstance(model.leaves, ProbabilityLeaves) else LeafKind.LABELS
        return {"depth": max(1, model.depth), "leaves": leaves}

    def _set_classes(self) -> None:
        self.classes_ = label_array(self.tree_.leaves.labels)

    @property
    def tree_(self) -> DecisionTree:
        """The fitted tree."""
        self._check_fitted()
        tree = self.release_.model
        assert isinstance(tree, DecisionTree)
        return tree

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """The names of the features that a tree may ask."""
        return np.array(self.tree_.features, dtype=object)

    def fit(self, X: Any, y: ArrayLike | None = None, **options: Any) -> Any:
        """Choose the tree. Spends the whole `epsilon`: every call is a release of its own.

        Without `y` the labels are those of the schema's column in `X`.
        """
        stated = self._start(options)
        if (label := self._label_in(X, y, stated)) is not None:
            X, y = labels_in(X, label)
        frame = self._frame(X, reset=True, label=label)
        labels = one_per_record(y, len(frame))
        classes = self._public_classes(labels, stated)
        leaves = leaves_of(classes.tolist(), self.leaves, self.costs)
        targets = class_numbers(labels, classes, stated if self.classes is None else None, readable=True)
        self._recipe(leaves)  # refuses wrong options before anything is paid
        schema = with_label(stated if stated is not None else self._drafted(frame), y, classes)
        recipe = self._recipe(leaves)  # a draft of the schema has left less of epsilon
        if leaves.width == 2:
            self._released(recipe.run, encode(recipe, schema, frame, targets == 1))
        else:
            asked = recipe.encoding(schema)
            rows, trees = asked.encode(frame, readable=True), recipe.trees(TreeQuestions.of(asked))
            self._released(recipe.run_problem, TreeProblem.from_records(rows, targets, trees, asked))
        self.classes_ = classes
        return self

    def _recipe(self, leaves: Leaves) -> TreeRecipe:
        return TreeRecipe(self._fit_epsilon, self.depth, leaves, self.adjacency)

    def _public_classes(self, labels: NDArray[Any], schema: Schema | None) -> NDArray[Any]:
        if self.classes is not None:
            return label_array(LabelLeaves(check_items("classes", self.classes, "be a list of labels")).labels)
        if schema is not None:
            return public_classes(labels, schema)
        return occurring_classes(labels)

    def predict(self, X: Any) -> NDArray[Any]:
        """What the tree says of every row."""
        return self.tree_.predict(self._frame(X, reset=False))

    @available_if(lambda self: self.leaves == LeafKind.PROBABILITIES)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """What the tree says of the probability of each class, in the order of `classes_`."""
        return self.tree_.predict_proba(self._frame(X, reset=False))
