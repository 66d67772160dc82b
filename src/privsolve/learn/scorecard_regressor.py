"""A scikit-learn estimator of full scorecards for a number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from privsolve.cards.scorecard import Scorecard
from privsolve.data.codes import check_order
from privsolve.data.columns.label import Target
from privsolve.data.constraints import Constraints
from privsolve.learn.base import (
    PrivateEstimator,
    RandomState,
    StatedSchema,
    finite_targets,
    one_per_record,
    stated_bounds,
    warn_in_search,
)
from privsolve.learn.full_card_recipe import DEFAULT_DELTA
from privsolve.learn.number_card_recipe import NumberCardRecipe
from privsolve.models.base import Model
from privsolve.models.number_card import NumberCard
from privsolve.privacy.accounting import Account
from privsolve.privacy.adjacency import Adjacency


class PrivateScorecardRegressor(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """A full scorecard for a number: whole points for every answer, and a prediction for every total.

    Args:
        epsilon: privacy budget of one fit, with the draft of the schema if there is one.
        low, high: public bounds of the target, to which it is clipped. Bounds that are too wide cost little.
        delta: the δ of the fit, above 0 and far below 1/n.
        max_points: the most points of one step between answers.
        max_questions: the largest number of columns that the card asks for; they are chosen with a part of epsilon.
        sparsity: 0 keeps all points; larger numbers set small ones to 0.
        constraints: directions, and columns that must or must not be asked for (`Constraints`).
        schema: what is public about the table, a `Schema` or the path of a schema file. None: it is drafted privately from
            the records, and a quarter of epsilon pays for the draft.
        adjacency: `"replace"` (one record changed, n is public) or `"add-remove"`.
        budget: an `Accountant` or a `Ledger` that pays for every fit, or refuses it.
        random_state: None for releases; a seed makes fits repeatable, for testing only.
        progress: not used, a fit takes a moment; here because all estimators have it.

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

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        low: float | None = None,
        high: float | None = None,
        delta: float = DEFAULT_DELTA,
        max_points: int = 10,
        max_questions: int | None = None,
        sparsity: float = 0.0,
        constraints: Constraints | None = None,
        schema: StatedSchema = None,
        adjacency: Adjacency | str = "replace",
        budget: Account | None = None,
        random_state: RandomState = None,
        progress: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.low = low
        self.high = high
        self.delta = delta
        self.max_points = max_points
        self.max_questions = max_questions
        self.sparsity = sparsity
        self.constraints = constraints
        self.schema = schema
        self.adjacency = adjacency
        self.budget = budget
        self.random_state = random_state
        self.progress = progress

    instead_of_weights: ClassVar[str] = "there are no weights of records"

    @classmethod
    def _of_model(cls, model: Model) -> Mapping[str, Any]:
        if not isinstance(model, NumberCard):
            raise ValueError("release: it does not hold a scorecard for a number: use the estimator of its kind")
        return {"low": model.low, "high": model.high}

    def _recipe(self) -> NumberCardRecipe:
        return NumberCardRecipe(
            self._fit_epsilon,
            *stated_bounds(self.low, self.high),
            self.delta,
            self.adjacency,
            self.max_points,
            self.max_questions,
            self.sparsity,
            self.constraints,
        )

    def fit(self, X: Any, y: ArrayLike, **options: Any) -> Any:
        """Find the card. Spends the whole `epsilon`: every call is a release of its own."""
        self._check_fit(options)
        stated = self._stated_schema()
        warn_in_search()
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
        return self._keep(self._released(recipe.run_records, records, asked))

    @property
    def _card(self) -> NumberCard:
        self._check_fitted()
        card = self.release_.model
        assert isinstance(card, NumberCard)
        return card

    @property
    def scorecard_(self) -> Scorecard:
        """The model as a scorecard that people can use."""
        self._check_fitted()
        card = self.release_.card()
        assert isinstance(card, Scorecard)
        return card

    @property
    def coef_(self) -> NDArray[np.float64]:
        """What every feature adds to the prediction: `get_feature_names_out` names them."""
        return np.asarray(self._card.per_point * self._card.weights)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """The names of the features that the schema makes of the columns."""
        return np.array(self._card.features, dtype=object)

    def totals(self, X: Any) -> NDArray[np.int64]:
        """The total of every row, as the card prints it."""
        return self._card.totals(self._frame(X, reset=False))

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The predicted number of every row."""
        return np.asarray(self._card.predict(self._frame(X, reset=False)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # the data of the checks is small
        return tags
