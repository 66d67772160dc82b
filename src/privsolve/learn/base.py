"""What all estimators share: the schema, the budget, and tables of every kind."""

from __future__ import annotations

import inspect
import warnings
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from privsolve.data import Schema, draft
from privsolve.errors import PrivacyLeakWarning, PrivacyWarning
from privsolve.noise.entropy import Randomness
from privsolve.privacy.accounting import Account, Accountant
from privsolve.privacy.guarantee import Guarantee
from privsolve.releases import Release

REPEATING = ("sklearn.model_selection", "sklearn.calibration", "sklearn.ensemble", "sklearn.feature_selection")
"""Modules that fit an estimator several times."""

GUESS: Literal["guess"] = "guess"

RandomState = int | np.random.SeedSequence | Randomness | None


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that fits by a schema and pays from a budget."""

    release_: Release
    schema: Schema | Literal["guess"] | None
    adjacency: str
    budget: Account | None
    random_state: RandomState

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
        """The schema that was passed, or None if it is to be guessed, which has to be asked for."""
        if isinstance(self.schema, Schema):
            check_paid(self.schema, self.adjacency)
            return self.schema
        if isinstance(self.schema, str) and self.schema == GUESS:
            return None
        raise ValueError(
            f"schema must say what is public about the table: pass a privsolve Schema, or schema={GUESS!r} to infer it from "
            f"the data, which no guarantee covers; got {self.schema!r}"
        )

    @property
    def privacy_(self) -> Guarantee:
        """What the fit promises."""
        self._check_fitted()
        return self.release_.guarantee

    def _check_fitted(self) -> None:
        check_is_fitted(self, "release_")

    def _frame(self, X: Any, *, reset: bool) -> Any:
        """A table with named columns; arrays, and frames whose columns have no names, get x0, x1, ..."""
        names = getattr(X, "column_names", getattr(X, "columns", None))  # Arrow's columns are the data
        if names is not None and all(isinstance(name, str) for name in names):
            # only the names are looked at, and scikit-learn knows those of pandas frames in all its versions
            validate_data(self, pd.DataFrame(columns=list(names)), skip_check_array=True, reset=reset)
            if len(X) == 0:
                raise ValueError("X has 0 records, while a minimum of 1 is required: give at least one")
            return X
        array = self._array(X, reset=reset)
        return pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])

    def _evaluated(self, X: Any) -> Any:
        """The table to evaluate on, of the fitted model."""
        self._check_fitted()
        return self._frame(X, reset=False)

    def _array(self, X: Any, *, reset: bool) -> NDArray[Any]:
        """Rows without names. Lists keep every value as it is: a common type would let one record change how others read."""
        stated = isinstance(self.schema, Schema)
        if isinstance(X, list | tuple) and stated:
            X = np.array(X, dtype=object)
        try:
            kind = None if stated else "numeric"
            return np.asarray(validate_data(self, X, reset=reset, dtype=kind, ensure_all_finite=False))
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
        raise ValueError(
            "X holds texts, from which no schema is guessed without column names: pass a frame or a schema"
        )


def check_paid(schema: Schema, adjacency: str) -> None:
    """Raise if the schema was drafted under another adjacency than the fit: the two guarantees would not add up."""
    if schema.paid is not None and schema.paid.guarantee.adjacency != adjacency:
        raise ValueError(
            f"adjacency is {adjacency}, but the schema was drafted under {schema.paid.guarantee.adjacency}: use the same"
        )


def one_per_record(y: ArrayLike, rows: int) -> NDArray[Any]:
    """The labels or targets, one for each record."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: give one label per record")
    labels = np.asarray(column_or_1d(y, warn=True))
    if len(labels) != rows:
        raise ValueError(f"y has {len(labels)} labels, inconsistent with {rows} records: give one label per record")
    return labels


def guessed_schema(frame: Any) -> Schema:
    """A schema inferred from the data, with a warning; it says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)  # said once, below, in the words of the estimator
        columns = draft(frame).schema.columns
    warnings.warn(
        "schema='guess': columns, categories and bins are guessed from the data, and the guarantee does not cover what "
        "this gives away. Pass a Schema, for instance one drafted with `privsolve schema draft` and corrected by hand",
        PrivacyLeakWarning,
        stacklevel=3,
    )
    return Schema(columns).all_guessed()


def warn_in_search() -> None:
    """Fits inside a search, a cross-validation or an ensemble all spend."""
    frame = inspect.currentframe()
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(REPEATING):
            warnings.warn(
                "this fit is one of several, of a search, a cross-validation or an ensemble: every one of them spends "
                "epsilon, and scores on private records, also the choice of the best, are not private",
                PrivacyWarning,
                stacklevel=3,
            )
            return
        frame = frame.f_back
