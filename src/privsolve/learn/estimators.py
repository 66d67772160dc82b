"""scikit-learn estimators: a table in, a model to publish out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privsolve.arrays import Int64Array
from privsolve.cards.scorecard import Scorecard
from privsolve.data import Schema
from privsolve.data.constraints import Constraints
from privsolve.data.weights import BESIDE, Weight
from privsolve.evaluation import Evaluation
from privsolve.learn.base import (
    PrivateEstimator,
    RandomState,
    StatedSchema,
    one_per_record,
    warn_in_search,
    with_label,
)
from privsolve.learn.classifying import ClassEstimator
from privsolve.learn.evaluating import weighted
from privsolve.learn.full_card_recipe import DEFAULT_DELTA, FullCardRecipe
from privsolve.learn.labels import binary_labels, classes_of
from privsolve.learn.recipe import Recipe, encode
from privsolve.learn.short_card_recipe import CardLimits, ShortCardRecipe
from privsolve.models.base import Model
from privsolve.models.full_card import FullCard
from privsolve.models.linear import LinearRule
from privsolve.privacy.accounting import Account
from privsolve.privacy.adjacency import Adjacency
from privsolve.problems.priors import Prior


class _PrivateClassifier(ClassEstimator):
    """Fitting by a schema, predicting by exact integer scores."""

    def _recipe(self) -> Recipe:
        """How the model is found, by the options of the estimator."""
        raise NotImplementedError

    @classmethod
    def _of_model(cls, model: Model) -> Mapping[str, Any]:
        if not isinstance(model, LinearRule):
            raise ValueError(f"release: it holds a {model.kind}, not a linear rule: use the estimator of that kind")
        return {}

    def _set_classes(self) -> None:
        self.classes_ = classes_of(self.release_.schema)

    def fit(self, X: Any, y: ArrayLike | None = None, **options: Any) -> Any:
        """Choose the model. Spends the whole `epsilon`: every call is a release of its own.

        Without `y` the labels are those of the schema's column in `X`, which may then be a table in an engine.
        """
        self._check_fit(options)
        return self._fitted(X, y, None)

    def _fitted(self, X: Any, y: ArrayLike | None, sample_weight: ArrayLike | None) -> Any:
        self._recipe()  # refuses wrong options before anything is read
        stated = self._stated_schema()
        warn_in_search()
        frame, schema, classes, positive = read_for_fit(self, X, y, stated, sample_weight)
        recipe = self._recipe()  # a draft of the schema has left less of epsilon
        run = self._released(recipe.run, encode(recipe, schema, frame, positive))
        self.classes_ = classes
        return self._keep(run)

    @property
    def _rule(self) -> LinearRule:
        """The fitted rule."""
        self._check_fitted()
        rule = self.release_.model
        assert isinstance(rule, LinearRule)
        return rule

    @property
    def scorecard_(self) -> Scorecard:
        """The model as a scorecard that people can use."""
        self._check_fitted()
        card = self.release_.card()
        assert isinstance(card, Scorecard)
        return card

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The weight of every feature, in points per unit: `get_feature_names_out` names them."""
        return np.array([self._rule.weights / np.array(self._rule.scales)])

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """The names of the features that the schema makes of the columns."""
        return np.array(self._rule.features, dtype=object)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The score of every row by the weights themselves: positive is the positive class. It ranks finer than totals do."""
        return np.asarray(self._scores(X) / self._rule.used.unit - self._rule.cut)

    def totals(self, X: Any) -> NDArray[np.int64]:
        """The total of every row, as the card prints it."""
        return self._rule.totals(self._frame(X, reset=False))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of every row, decided on exact totals."""
        positive = self._rule.decide(self._frame(X, reset=False))
        return np.asarray(self.classes_[positive.astype(np.intp)])

    def _scores(self, X: Any) -> Int64Array:
        """Exact scores in units of `1 / unit` of the used columns; the fit has made sure that they stay in 64 bits."""
        self._check_fitted()
        return self._rule.scores(self._frame(X, reset=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class PrivateScorecard(_PrivateClassifier):
    """A full scorecard: whole points for every answer and a risk for every total, by objective perturbation.

    Args:
        epsilon: privacy budget of one fit, with the draft of the schema if there is one.
        delta: the δ of the fit, above 0 and far below 1/n.
        max_points: the most points of one step between answers.
        max_questions: the largest number of columns that the card asks for; they are chosen with a part of epsilon.
        sparsity: 0 keeps all points; larger numbers set small ones to 0.
        constraints: what is known of single columns beside what the schema states: directions, columns that must or must not
            be asked for (`Constraints`).
        false_positive, false_negative: costs of the two kinds of mistake. They move the threshold of the decision.
        sample_rate: the share of the records that is read, for tables of more than 67 million records or little memory. The
            guarantee is the same (theory, section 19.12), and the release states the rate.
        max_weight: with `fit(X, y, sample_weight)`: the largest weight of a record, public. Larger ones are cut to it, and the
            noise is for a record of that weight.
        schema: what is public about the table, a `Schema` or the path of a schema file. None: it is drafted privately from
            the records, and a quarter of epsilon pays for the draft.
        adjacency: `"replace"` (one record changed, n is public) or `"add-remove"`.
        budget: an `Accountant` or a `Ledger` that pays for every fit, or refuses it.
        random_state: None for releases; a seed makes fits repeatable, for testing only.
        progress: not used, a fit takes a moment; here because all estimators have it.

    Attributes:
        release_: points, guarantee and schema, to publish. `scorecard_`, `privacy_` and `coef_` are read off it.
        diagnostics_: accuracy and AUC on the training records: the curator's, not private.
        classes_: the two labels, the positive one last.

    Guarantee:
        Each fit is `(epsilon, delta)`-DP under the stated adjacency (theory, section 19), rounding included, provided that
        schema, costs and all other arguments were chosen without looking at the data. Several fits add up.

    Example:
        >>> import privsolve as ps
        >>> data = ps.datasets.adult().head(2000)
        >>> model = ps.PrivateScorecard(epsilon=1.0, schema=ps.datasets.adult_schema(), random_state=0)
        >>> model = model.fit(data.drop(columns="income"), data["income"])
        >>> model.predict_proba(data.head(3)).shape
        (3, 2)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = DEFAULT_DELTA,
        max_points: int = 10,
        max_questions: int | None = None,
        sparsity: float = 0.0,
        constraints: Constraints | None = None,
        false_positive: int = 1,
        false_negative: int = 1,
        sample_rate: float = 1.0,
        max_weight: float | None = None,
        schema: StatedSchema = None,
        adjacency: Adjacency | str = "replace",
        budget: Account | None = None,
        random_state: RandomState = None,
        progress: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.max_points = max_points
        self.max_questions = max_questions
        self.sparsity = sparsity
        self.constraints = constraints
        self.false_positive = false_positive
        self.false_negative = false_negative
        self.sample_rate = sample_rate
        self.max_weight = max_weight
        self.schema = schema
        self.adjacency = adjacency
        self.budget = budget
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, **options: Any) -> Any:
        """Find the card. Spends the whole `epsilon`: every call is a release of its own.

        Without `y` the labels are those of the schema's column in `X`, which may then be a table in an engine. With
        `sample_weight`, one weight for each record, `max_weight` must be stated.
        """
        self._check_fit(options)
        return self._fitted(X, y, sample_weight)

    def evaluate(self, X: Any, y: ArrayLike, epsilon: float, **options: Any) -> Evaluation:
        """How good the card is on these records, by one noisy histogram that may be published; see `evaluate_frame`."""
        if "sample_weight" in options:
            options = {"max_weight": self.max_weight} | options
        return super().evaluate(X, y, epsilon, **options)

    def _recipe(self) -> Recipe:
        return FullCardRecipe(
            self._fit_epsilon,
            self.delta,
            self.adjacency,
            self.max_points,
            self.max_questions,
            self.sparsity,
            self.constraints,
            self.false_positive,
            self.false_negative,
            self.sample_rate,
            None if self.max_weight is None else Weight(BESIDE, self.max_weight),
        )

    @classmethod
    def _of_model(cls, model: Model) -> Mapping[str, Any]:
        if not isinstance(model, FullCard):
            raise ValueError(f"release: it holds a {model.kind}, not a full scorecard: use the estimator of that kind")
        return {}

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probabilities of the two classes, for every row: the risk of its total, and the rest."""
        card = self._rule
        assert isinstance(card, FullCard)
        risks = card.risks(self._frame(X, reset=False))
        return np.column_stack([1 - risks, risks])


class PrivateShortCard(_PrivateClassifier):
    """A short scorecard: whole points on a few features, drawn exactly from the exponential mechanism. Pure ε-DP.

    Args:
        epsilon: privacy budget of one fit, with the draft of the schema if there is one.
        max_features: maximum number of features with points. Left out: 4, or fewer on more than 148 columns.
        max_questions: maximum number of columns of the table that the card asks for.
        constraints: what is known of single columns beside what the schema states: directions, columns that must or must not
            be asked for (`Constraints`).
        max_points: points lie in `-max_points..max_points`.
        intercept: range of the intercept, a pair or one number b for `(-b, b)`.
        prior: what is likely before the data is seen; cards with about two features by default.
        false_positive, false_negative: public whole costs of the two kinds of mistake, for unbalanced labels.
        schema: what is public about the table, a `Schema` or the path of a schema file. None: it is drafted privately from
            the records, and a quarter of epsilon pays for the draft.
        adjacency: `"replace"` (one record changed, n is public) or `"add-remove"`.
        budget: an `Accountant` or a `Ledger` that pays for every fit, or refuses it.
        random_state: None for releases; a seed makes fits repeatable, for testing only.
        progress: called now and then while a fit is at work, such as `ShowProgress()`; not private.

    Attributes:
        release_: weights, guarantee and schema, to publish. `scorecard_`, `privacy_` and `coef_` are read off it.
        diagnostics_: training accuracy and work done: the curator's, not private.
        classes_: the two labels, the positive one last.

    Guarantee:
        Each fit is `epsilon`-DP and `epsilon²/8`-zCDP under the stated adjacency (theory, section 4) for what `release_`
        holds, provided that schema, costs and all other arguments were chosen without looking at the data. Several fits,
        as in a grid search, add up.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        max_features: int | None = None,
        max_questions: int | None = None,
        constraints: Constraints | None = None,
        max_points: int = 3,
        intercept: int | tuple[int, int] = (-8, 8),
        prior: Prior | None = None,
        false_positive: int = 1,
        false_negative: int = 1,
        schema: StatedSchema = None,
        adjacency: Adjacency | str = "replace",
        budget: Account | None = None,
        random_state: RandomState = None,
        progress: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.max_features = max_features
        self.max_questions = max_questions
        self.constraints = constraints
        self.max_points = max_points
        self.intercept = intercept
        self.prior = prior
        self.false_positive = false_positive
        self.false_negative = false_negative
        self.schema = schema
        self.adjacency = adjacency
        self.budget = budget
        self.random_state = random_state
        self.progress = progress

    def _recipe(self) -> Recipe:
        limits = CardLimits(
            self.max_features,
            self.max_points,
            self.intercept,
            self.max_questions,
            self.constraints,
        )
        return ShortCardRecipe(
            self._fit_epsilon, limits, self.adjacency, self.prior, self.false_positive, self.false_negative
        )

    @classmethod
    def _of_model(cls, model: Model) -> Mapping[str, Any]:
        if isinstance(model, FullCard):
            raise ValueError(f"release: it holds a {model.kind}, not a short card: use the estimator of that kind")
        return super()._of_model(model)


def read_for_fit(
    estimator: PrivateEstimator,
    X: Any,
    y: ArrayLike | None,
    stated: Schema | None,
    sample_weight: ArrayLike | None = None,
) -> tuple[Any, Schema, NDArray[Any], NDArray[np.bool_] | None]:
    """The table, its schema, the two classes, and which records are positive; None where a column of the table says so.

    The table has the weights of the records, if there are any, as a column.
    """
    largest = getattr(estimator, "max_weight", None)
    if estimator._label_in(X, y, stated):
        assert stated is not None
        assert stated.label is not None
        frame = estimator._frame(X, reset=True, label=stated.label.column)
        return weighted(frame, sample_weight, largest)[0], stated, classes_of(stated), None
    frame = estimator._frame(X, reset=True)
    if y is None:
        one_per_record(y, 0)  # says what is missing
    classes, positive = binary_labels(y, len(frame), stated)
    beside, _ = weighted(frame, sample_weight, largest)
    schema = stated if stated is not None else estimator._drafted(frame)
    return beside, with_label(schema, y, classes), classes, positive
