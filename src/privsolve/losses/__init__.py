"""What a record loses: public integer tables over scores, linear costs, and what is stated of a loss of your own."""

from privsolve.losses.base import COST_LIMIT, Loss, loss_from_dict
from privsolve.losses.risks import BrierLoss, LogLoss, RiskLoss
from privsolve.losses.scores import ScoreLoss, ScoreTable, ZeroOneLoss
from privsolve.losses.stated import LinearLoss, StatedLoss, TotalLoss

__all__ = [
    "COST_LIMIT",
    "BrierLoss",
    "LinearLoss",
    "LogLoss",
    "Loss",
    "RiskLoss",
    "ScoreLoss",
    "ScoreTable",
    "StatedLoss",
    "TotalLoss",
    "ZeroOneLoss",
    "loss_from_dict",
]
