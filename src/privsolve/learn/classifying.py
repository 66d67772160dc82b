"""What estimators of classes share: labels by the classes of the fit, the accuracy, and an evaluation to publish."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin

from privsolve.arrays import Int64Array
from privsolve.evaluation import Evaluation
from privsolve.learn.base import PrivateEstimator, one_per_record
from privsolve.learn.evaluating import evaluate_frame
from privsolve.learn.labels import class_numbers


class ClassEstimator(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """An estimator that says one of the `classes_` of every record."""

    def _numbers(self, y: ArrayLike, rows: int) -> Int64Array:
        """Which class each record is of, where `y` has the values of the label or the names of the classes."""
        return class_numbers(one_per_record(y, rows), self.classes_, self._with_stated_label())

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
