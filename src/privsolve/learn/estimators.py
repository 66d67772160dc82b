"""scikit-learn estimators of cards: a table in, a model to publish out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from privsolve.checks import check_finite
from privsolve.data.codes import check_order
from privsolve.data.columns.label import Target
from privsolve.data.constraints import Constraints
from privsolve.data.weights import BESIDE, Weight
from privsolve.evaluation import Evaluation
from privsolve.learn.base import CardEstimator, ClassEstimator, PrivateEstimator
from privsolve.learn.evaluating import weighted
from privsolve.learn.full_card_recipe import DEFAULT_DELTA, FullCardRecipe, NumberCardRecipe
from privsolve.learn.labels import binary_labels, classes_of, finite_targets, one_per_record, with_label
from privsolve.learn.recipe import Recipe, encode
from privsolve.learn.short_card_recipe import CardLimits, ShortCardRecipe
from privsolve.models.base import Model
from privsolve.models.full_card import FullCard, NumberCard
from privsolve.models.linear import LinearRule
from privsolve.problems.priors import Prior


def _options_of(recipe: type, estimator: PrivateEstimator) -> dict[str, Any]:
    """The options of an estimator that its recipe takes under the same name; what it pays depends on a draft."""
    names = [one.name for one in fields(recipe) if one.name != "epsilon"]
    found = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
    return found | {"constraints": estimator._constraints}


@dataclass(eq=False, repr=False)
class _YesNoCard(ClassEstimator, CardEstimator):
    """Cards for two classes, which predict by exact integer scores."""

    def _recipe(self) -> Recipe:
        """How the model is found, by the options of the estimator."""
        raise NotImplementedError

    def _set_classes(self) -> None:
        self.classes_ = classes_of(self.release_.schema)

    def fit(self, X: Any, y: ArrayLike | None = None, **options: Any) -> Any:
        """Choose the model. Spends the whole `epsilon`: every call is a release of its own.

        Without `y` the labels are those of the schema's column in `X`, which may then be a table in an engine.
        """
        return self._fitted(X, y, None, None, options)

    def _fitted(self, X: Any, y: Any, weights: ArrayLike | None, largest: float | None, options: dict[str, Any]) -> Any:
        self._recipe()  # refuses wrong options before anything is read
        stated, positive = self._start(options), None
        if (column := self._label_in(X, y, stated)) is not None:
            assert stated is not None
            frame = self._frame(X, reset=True, label=column)
            beside, schema, classes = weighted(frame, weights, largest)[0], stated, classes_of(stated)
        else:
            frame = self._frame(X, reset=True)
            classes, positive = binary_labels(y, 0 if y is None else len(frame), stated)
            beside = weighted(frame, weights, largest)[0]
            schema = with_label(stated if stated is not None else self._drafted(frame), y, classes)
        recipe = self._recipe()  # a draft of the schema has left less of epsilon
        self._released(recipe.run, encode(recipe, schema, beside, positive))
        self.classes_ = classes
        return self

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The weight of every feature, in points per unit: `get_feature_names_out` names them."""
        return np.array([self._rule.weights / np.array(self._rule.scales)])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The score of every row by the weights themselves: positive is the positive class. It ranks finer than totals do."""
        rule = self._rule
        return np.asarray(rule.scores(self._frame(X, reset=False)) / rule.used.unit - rule.cut)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of every row, decided on exact totals."""
        positive = self._rule.decide(self._frame(X, reset=False))
        return np.asarray(self.classes_[positive.astype(np.intp)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateScorecard(_YesNoCard):
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
        draft_: without a schema: what was drafted and paid for, also if the fit failed then, and why columns were left out.
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

    delta: float = DEFAULT_DELTA
    max_points: int = 10
    max_questions: int | None = None
    sparsity: float = 0.0
    constraints: Constraints | None = None
    false_positive: int = 1
    false_negative: int = 1
    sample_rate: float = 1.0
    max_weight: float | None = None

    _model = FullCard

    def fit(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, **options: Any) -> Any:
        """Find the card. Spends the whole `epsilon`: every call is a release of its own.

        Without `y` the labels are those of the schema's column in `X`, which may then be a table in an engine. With
        `sample_weight`, one weight for each record, `max_weight` must be stated.
        """
        return self._fitted(X, y, sample_weight, self.max_weight, options)

    def evaluate(self, X: Any, y: ArrayLike, epsilon: float, **options: Any) -> Evaluation:
        """How good the card is on these records, by one noisy histogram that may be published; see `evaluate_frame`."""
        if "sample_weight" in options:
            options = {"max_weight": self.max_weight} | options
        return super().evaluate(X, y, epsilon, **options)

    def _recipe(self) -> Recipe:
        weight = None if self.max_weight is None else Weight(BESIDE, self.max_weight)
        return FullCardRecipe(self._fit_epsilon, weight=weight, **_options_of(FullCardRecipe, self))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probabilities of the two classes, for every row: the risk of its total, and the rest."""
        card = self._rule
        assert isinstance(card, FullCard)
        risks = card.risks(self._frame(X, reset=False))
        return np.column_stack([1 - risks, risks])


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateShortCard(_YesNoCard):
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
        schema, adjacency, budget, random_state: as in `PrivateScorecard`.
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

    max_features: int | None = None
    max_questions: int | None = None
    constraints: Constraints | None = None
    max_points: int = 3
    intercept: int | tuple[int, int] = (-8, 8)
    prior: Prior | None = None
    false_positive: int = 1
    false_negative: int = 1

    _model = LinearRule

    def _recipe(self) -> Recipe:
        limits = CardLimits(self.max_features, self.max_points, self.intercept, self.max_questions, self._constraints)
        costs = (self.false_positive, self.false_negative)
        return ShortCardRecipe(self._fit_epsilon, limits, self.adjacency, self.prior, *costs)


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateScorecardRegressor(RegressorMixin, CardEstimator):  # type: ignore[misc]
    """A full scorecard for a number: whole points for every answer, and a prediction for every total.

    Args:
        epsilon: privacy budget of one fit, with the draft of the schema if there is one.
        low, high: public bounds of the target, to which it is clipped. Bounds that are too wide cost little.
        delta: the δ of the fit, above 0 and far below 1/n.
        max_points, max_questions, sparsity, constraints: as in `PrivateScorecard`.
        schema, adjacency, budget, random_state, progress: as in `PrivateScorecard`.

    Attributes:
        release_: points, guarantee and schema, to publish. `privacy_` and `coef_` are read off it.
        diagnostics_: error and R² on the training records: the curator's, not private.

    Guarantee:
        Each fit is `(epsilon, delta)`-DP under the stated adjacency (theory, section 20), rounding included, provided that
        schema, bounds and all other arguments were chosen without looking at the data. Several fits add up.

    Example:
        >>> import privsolve as ps
        >>> data = ps.datasets.adult().head(2000)
        >>> schema = ps.Schema([ps.Bins("age", [25, 35, 45, 55, 65]), ps.Categories("sex", ["Female", "Male"])])
        >>> model = ps.PrivateScorecardRegressor(1.0, low=0, high=80, schema=schema, random_state=0)
        >>> model = model.fit(data, data["hours-per-week"])
        >>> model.predict(data.head(3)).shape
        (3,)
    """

    low: float | None = None
    high: float | None = None
    delta: float = DEFAULT_DELTA
    max_points: int = 10
    max_questions: int | None = None
    sparsity: float = 0.0
    constraints: Constraints | None = None

    _model = NumberCard

    instead_of_weights: ClassVar[str] = "there are no weights of records"

    @classmethod
    def _of_model(cls, model: Model) -> Mapping[str, Any]:
        super()._of_model(model)
        assert isinstance(model, NumberCard)
        return {"low": model.low, "high": model.high}

    def _recipe(self) -> NumberCardRecipe:
        if self.low is None or self.high is None:
            raise ValueError("low and high must be stated: the public bounds of the target")
        ends = {"low": check_finite("low", self.low), "high": check_finite("high", self.high)}
        return NumberCardRecipe(self._fit_epsilon, **_options_of(NumberCardRecipe, self) | ends)

    def fit(self, X: Any, y: ArrayLike, **options: Any) -> Any:
        """Find the card. Spends the whole `epsilon`: every call is a release of its own."""
        stated = self._start(options)
        check_order(X)
        frame = self._frame(X, reset=True)
        targets = finite_targets(one_per_record(y, len(frame)))
        self._recipe()  # refuses wrong options before anything is paid
        name = getattr(y, "name", None)
        target = Target(name if isinstance(name, str) and name else "outcome", low=self.low, high=self.high)
        schema = replace(stated if stated is not None else self._drafted(frame), label=None, target=target)
        recipe = self._recipe()  # a draft of the schema has left less of epsilon
        asked = recipe.encoding(schema)
        records = recipe.in_steps(asked.encode(frame, readable=True), targets)
        return self._released(recipe.run_records, records, asked)

    @property
    def coef_(self) -> NDArray[np.float64]:
        """What every feature adds to the prediction: `get_feature_names_out` names them."""
        card = self._rule
        assert isinstance(card, NumberCard)
        return np.asarray(card.per_point * card.weights)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The predicted number of every row."""
        return np.asarray(self._rule.predict(self._frame(X, reset=False)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # the data of the checks is small
        return tags
