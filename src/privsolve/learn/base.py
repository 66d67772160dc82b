"""What all estimators share: parameters, the schema, the budget, and tables of every kind."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from privsolve.arrays import Int64Array
from privsolve.cards.scorecard import Scorecard
from privsolve.checks import check_callback, check_length
from privsolve.data import Schema
from privsolve.data.codes import check_order, collected, is_ibis_table, is_relation, names_of
from privsolve.data.constraints import Constraints, checked_constraints
from privsolve.data.duckdb import read_each_value
from privsolve.data.private import DRAFT_SHARE, PrivateDraft, default_delta, private_draft
from privsolve.data.reading import check_columns
from privsolve.errors import PrivacyWarning
from privsolve.evaluation import Evaluation
from privsolve.learn.evaluating import evaluate_frame
from privsolve.learn.labels import class_numbers, one_per_record
from privsolve.learn.recipe import RandomState
from privsolve.models.base import Model
from privsolve.models.linear import LinearRule
from privsolve.privacy.accounting import Account, Accountant, check_adjacency
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.calibration import check_epsilon
from privsolve.privacy.decimals import at_most, exact
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.ledger import Ledger
from privsolve.privacy.profiles import Profile, profile_of
from privsolve.releases import Diagnostics, Release, Run
from privsolve.safety.folder import load_release
from privsolve.safety.sealed import SealedRun, run_paid

REPEATING = ("sklearn.model_selection", "sklearn.calibration", "sklearn.ensemble", "sklearn.feature_selection")
"""Modules that fit an estimator several times."""

StatedSchema = Schema | str | os.PathLike[str] | None
"""A schema, the path of a schema file, or None for a private draft."""


@dataclass(eq=False, repr=False)
class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that fits by a schema and pays from a budget. The fields of a subclass are its parameters."""

    epsilon: float = 1.0
    _: KW_ONLY
    schema: StatedSchema = None
    adjacency: Adjacency | str = "replace"
    budget: Account | None = None
    random_state: RandomState = None
    progress: Any = None
    release_: Release = field(init=False)
    diagnostics_: Diagnostics = field(init=False)
    draft_: PrivateDraft = field(init=False)
    classes_: NDArray[Any] = field(init=False)

    instead_of_weights: ClassVar[str] = "weigh the two kinds of mistake by false_positive and false_negative instead"
    """What to do where somebody wants to pass weights of records."""

    @classmethod
    def from_release(cls, release: Release | str | os.PathLike[str]) -> Self:
        """A fitted estimator from a release or its file, for whoever has nothing else: it predicts, and needs only the
        columns that the model uses. It spends nothing and has no diagnostics.
        """
        found = release if isinstance(release, Release) else load_release(release)
        stated: dict[str, Any] = {
            "epsilon": found.guarantee.epsilon,
            "adjacency": str(found.guarantee.adjacency),
            "schema": found.schema,
        }
        made = cls(**stated, **cls._of_model(found.model))
        made.release_ = found
        made._set_classes()
        return made

    @classmethod
    def _of_model(cls, model: Model) -> Mapping[str, Any]:
        """The options that go with a model; raises if it is not one of this estimator."""
        raise NotImplementedError

    def _set_classes(self) -> None:
        """Set `classes_` from the release, where there are classes."""

    def __sklearn_clone__(self) -> Any:
        """A clone pays from the same budget, as a copy of an accountant could be spent a second time, and reports to the
        same callback.
        """
        options = self.get_params(deep=False)
        shared = {name: options.pop(name) for name in ("budget", "progress") if name in options}
        return type(self)(**{name: clone(value, safe=False) for name, value in options.items()}, **shared)

    def __getstate__(self) -> Any:
        if isinstance(self.budget, Accountant):
            raise TypeError(
                "budget is an Accountant, and a pickled copy of it could be spent a second time: use a Ledger, which "
                "processes can share, or set_params(budget=None) first"
            )
        return super().__getstate__()

    def _stated_schema(self) -> Schema | None:
        """The schema that was passed, or None if one is to be drafted."""
        schema = self.schema
        if schema is None:
            return None
        if isinstance(schema, str | os.PathLike):
            try:
                schema = Schema.load(path := os.fspath(schema))
            except OSError as error:
                raise ValueError(
                    f"schema={path!r}: {error.strerror}; pass a Schema, the path of a schema file, or None for a draft"
                ) from None
        if not isinstance(schema, Schema):
            raise ValueError(
                "schema must say what is public about the table: pass a privsolve Schema, the path of a schema file, or None "
                f"for a private draft, which a part of epsilon pays for; got {self.schema!r}"
            )
        check_paid(schema, self.adjacency)
        return schema

    @property
    def _fit_epsilon(self) -> float:
        """The part of epsilon for the fit: all of it, unless a draft of the schema was paid from it."""
        draft = self._draft
        if draft is None or draft.schema.paid is None:  # if every column is known from its name, nothing is paid
            return self.epsilon
        return _split(self.epsilon)[1]

    @property
    def _draft(self) -> PrivateDraft | None:
        """The draft of the schema, if this fit has made one."""
        return getattr(self, "draft_", None) if self.schema is None else None

    @property
    def _constraints(self) -> Constraints | None:
        """What is stated of single columns; after a draft of the schema, of those that it has kept."""
        stated: Constraints | None = getattr(self, "constraints", None)
        if stated is None or self._draft is None:
            return stated
        return stated.on_drafted(self._draft.schema.columns)

    def _drafted(self, frame: Any) -> Schema:
        """A private draft of the schema of a table in memory. Columns without names, of an array, hold numbers."""
        if isinstance(self.budget, SealedRun):
            raise ValueError(
                "schema must be given in a sealed run, which holds one release: seal the draft, "
                "sealed.run(ps.private_draft, ...), in a file of its own"
            )
        numbers = () if hasattr(self, "feature_names_in_") else tuple(frame.columns)
        stated = checked_constraints(getattr(self, "constraints", None))
        check_columns(stated.names, names_of(frame))
        (draft, fit), budget, seed = _split(self.epsilon), self.budget, self.random_state
        records = len(frame) if Adjacency.of(self.adjacency) is Adjacency.REPLACE else None
        pure = isinstance(budget, Accountant | Ledger) and not budget.budget.release_delta
        if isinstance(seed, int | np.integer):
            seed = np.random.SeedSequence([int(seed), 12])  # not the words that the fit will draw
        fit_delta = float(getattr(self, "delta", None) or 0.0)
        self.draft_ = private_draft(
            frame,
            None,
            draft,
            0.0 if pure else default_delta(records),
            leave_out=stated.excluded,
            numbers=[name for name in numbers if name not in stated.excluded],
            adjacency=self.adjacency,
            random_state=seed,
            budget=None if budget is None else _Both(budget, profile_of(fit, fit_delta)),
        )
        return self.draft_.schema

    def _start(self, options: Mapping[str, Any]) -> Schema | None:
        """The schema that was passed; raises for what a fit does not take, and warns of fits that are repeated."""
        if "sample_weight" in options:
            raise TypeError(
                "sample_weight is not taken: weights are for full scorecards (PrivateScorecard with max_weight); "
                f"{self.instead_of_weights}"
            )
        if options:
            raise TypeError(f"fit takes X and y, got {', '.join(options)} as well: options go to the estimator itself")
        stated = self._stated_schema()
        check_callback("progress", self.progress)
        self.__dict__.pop("draft_", None)
        _warn_in_search()
        return stated

    def _label_in(self, X: Any, y: Any, schema: Schema | None) -> str | None:
        """The column of the table with the labels, if none lie beside it; if they do, rows need an order."""
        if y is not None:
            check_order(X)
        elif schema is not None and schema.label is not None and schema.label.column in (_names_of(X) or ()):
            return schema.label.column
        return None

    @property
    def privacy_(self) -> Guarantee:
        """What the fit promises, with the draft of the schema if it was drafted privately."""
        self._check_fitted()
        return replace(self.release_, evaluation=None).total

    @property
    def schema_(self) -> Schema:
        """The schema of the model's features: the given or the drafted one; that of a tree is all yes/no."""
        self._check_fitted()
        if self.release_.schema is None:
            raise ValueError("the release has no schema, so it cannot be applied to a table: fit with one")
        return self.release_.schema

    def _released(self, mechanism: Callable[..., Run], *args: Any) -> Self:
        """Be fitted by one release, paid for by the estimator's budget."""
        paid = {"random_state": self.random_state, "progress": self.progress, "budget": self.budget}
        run: Run = run_paid(mechanism, *args, **paid)
        self.release_, self.diagnostics_ = run.release, run.diagnostics
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        tags.input_tags.allow_nan = True  # the schema says where missing values go
        tags.input_tags.string = True
        return tags

    def _check_fitted(self) -> None:
        check_is_fitted(self, "release_")

    def _frame(self, X: Any, *, reset: bool, label: str | None = None) -> Any:
        """A table with named columns; arrays, and frames whose columns have no names, get x0, x1, ...

        Names are compared with those of the fit, without the `label`; columns that the fit did not have are not looked at. An
        estimator made of a release has none to compare.
        """
        if not reset:
            check_order(X)
        names = _names_of(X)
        if names is None or not all(isinstance(name, str) for name in names):
            array = self._array(X, reset=reset)
            return pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])
        known = set() if reset else set(getattr(self, "feature_names_in_", ()))
        schema = None if reset else self.release_.schema
        if not known <= set(names) and schema is not None and all(c.column in names for c in schema.columns):
            return self._rows(X)  # it lacks some columns of the fit, but none that the model reads
        if reset or hasattr(self, "n_features_in_"):
            # only the names are looked at, and scikit-learn knows those of pandas frames in all its versions
            more = set(names) - known if known and known <= set(names) else set[str]()
            features = pd.DataFrame(columns=[name for name in names if name != label and name not in more])
            validate_data(self, features, skip_check_array=True, reset=reset)
        return self._rows(X)

    @staticmethod
    def _rows(X: Any) -> Any:
        if is_ibis_table(X):
            return read_each_value(X)
        frame = X if hasattr(X, "__len__") and not is_relation(X) else collected(X)
        if len(frame) == 0:
            raise ValueError("X has 0 records, while a minimum of 1 is required: give at least one")
        return frame

    def _array(self, X: Any, *, reset: bool) -> NDArray[Any]:
        """Rows without names. Lists keep every value as it is: a common type would let one record change how others read."""
        check_length("X", X)
        if not reset and not hasattr(self, "n_features_in_"):  # made of a release
            return np.asarray(X, dtype=object)
        if isinstance(X, list | tuple):
            X = np.array(X, dtype=object)
        return np.asarray(validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False))


@dataclass(eq=False, repr=False)
class CardEstimator(PrivateEstimator):
    """An estimator whose model is a card."""

    _model: ClassVar[type[LinearRule]]

    @classmethod
    def _of_model(cls, model: Model) -> Mapping[str, Any]:
        if type(model) is not cls._model:
            raise ValueError(f"release: it holds a {model.kind}: use the estimator of that kind, not {cls.__name__}")
        return {}

    @property
    def _rule(self) -> LinearRule:
        """The fitted card."""
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

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """The names of the features that the schema makes of the columns."""
        return np.array(self._rule.features, dtype=object)

    def totals(self, X: Any) -> NDArray[np.int64]:
        """The total of every row, as the card prints it."""
        return self._rule.totals(self._frame(X, reset=False))


@dataclass(eq=False, repr=False)
class ClassEstimator(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """An estimator that says one of the `classes_` of every record."""

    def _numbers(self, y: ArrayLike, rows: int) -> Int64Array:
        """Which class each record is of, where `y` has the values of the label or the names of the classes."""
        return class_numbers(one_per_record(y, rows), self.classes_, self._stated_schema())

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The accuracy, where `y` has the values of the label or the names of the classes. Not private."""
        self._check_fitted()
        return float(super().score(X, self.classes_[self._numbers(y, len(self._frame(X, reset=False)))], sample_weight))

    def evaluate(self, X: Any, y: ArrayLike, epsilon: float, **options: Any) -> Evaluation:
        """How good the model is on these records, by one noisy histogram that may be published; see `evaluate_frame`."""
        self._check_fitted()
        frame = self._frame(X, reset=False)
        positive = self._numbers(y, len(frame)) == 1
        return evaluate_frame(self.release_, frame, positive, epsilon, self.budget, **options)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # noise: a small table cannot be learnt well, and should not be
        return tags


def check_paid(schema: Schema, adjacency: Adjacency | str) -> None:
    """Raise if the schema was drafted under another adjacency than the fit: the two guarantees would not add up."""
    if schema.paid is not None and schema.paid.guarantee.adjacency != adjacency:
        raise ValueError(
            f"adjacency is {adjacency}, but the schema was drafted under {schema.paid.guarantee.adjacency}: use the same"
        )


def _split(epsilon: float) -> tuple[float, float]:
    """The parts of an estimator's epsilon for the draft and for the fit; they sum to at most epsilon."""
    total = exact(check_epsilon(epsilon))
    draft = at_most(exact(DRAFT_SHARE) * total)
    return draft, at_most(total - exact(draft))


class _Both:
    """Pays for the draft, and refuses where nothing would be left for the fit."""

    def __init__(self, budget: Account, fit: Profile) -> None:
        self._budget, self._fit = budget, fit

    def spending(self, guarantee: Guarantee, note: str = "", **how: Any) -> Any:
        """Pay for the draft."""
        budget = self._budget
        if isinstance(budget, Accountant | Ledger):
            check_adjacency(guarantee, budget.budget.adjacency)
            totals = budget.totals if isinstance(budget, Accountant) else budget.totals()
            fit = Guarantee(self._fit, guarantee.adjacency, "fit", "none yet", theory="12", oracle="none")
            budget.budget.check(budget.budget.check(totals, guarantee), fit)
        return budget.spending(guarantee, note, **how)


def _names_of(X: Any) -> list[Any] | None:
    """The names of the columns of a table, None for an array."""
    if hasattr(X, "collect_schema"):
        return list(X.collect_schema().names())
    names = getattr(X, "column_names", getattr(X, "columns", None))  # Arrow's columns are the data
    return None if names is None else list(names)


def _warn_in_search() -> None:
    """Fits inside a search, a cross-validation or an ensemble all spend."""
    frame = inspect.currentframe()
    while frame is not None and not str(frame.f_globals.get("__name__", "")).startswith(REPEATING):
        frame = frame.f_back
    if frame is not None:
        warnings.warn(
            "this fit is one of several, of a search, a cross-validation or an ensemble: every one of them spends epsilon, "
            "and scores on private records, also the choice of the best, are not private",
            PrivacyWarning,
            stacklevel=4,
        )
