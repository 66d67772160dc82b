"""The checks of estimators that scikit-learn has itself."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from privsolve import Bins, PrivateScorecardRegressor, PrivateShortCard, PrivateTreeClassifier, Schema


class WithCuts(PrivateScorecardRegressor):
    """The tables of scikit-learn's checks have columns without names and few records: cuts are stated, not drafted."""

    def _drafted(self, frame: Any) -> Schema:
        return Schema([Bins(name, [-1, 0, 1]) for name in frame.columns])


TREE = {"epsilon": 2000.0, "depth": 2, "random_state": 0}
ESTIMATORS = [
    PrivateShortCard(2000.0, max_features=2, max_points=1, intercept=2, random_state=0),
    PrivateTreeClassifier(**TREE),
    PrivateTreeClassifier(leaves="probabilities", **TREE),
    WithCuts(20.0, low=-10, high=10, delta=1e-3, random_state=0),
]
CHECKS = parametrize_with_checks(ESTIMATORS)


@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)  # older versions give a generator
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)
