"""Private logistic regression, to compare with: DP-SGD and objective perturbation (docs, baselines)."""

from privsolve.baselines.dpsgd import DPSGDSettings, dp_sgd
from privsolve.baselines.linear import LinearFit
from privsolve.baselines.logistic import logistic_regression, objective_perturbation
from privsolve.baselines.tuning import DPSGDGrid, tune_dp_sgd, tune_objective_perturbation

__all__ = [
    "DPSGDGrid",
    "DPSGDSettings",
    "LinearFit",
    "dp_sgd",
    "logistic_regression",
    "objective_perturbation",
    "tune_dp_sgd",
    "tune_objective_perturbation",
]
