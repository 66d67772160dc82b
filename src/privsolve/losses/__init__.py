"""What a record loses: public integer tables over scores, linear costs, and what is stated of a loss of your own."""

from privsolve.losses.base import COST_LIMIT, LinearLoss, Loss, StatedLoss, TotalLoss, loss_from_dict
from privsolve.losses.scores import ScoreLoss, ScoreTable, ZeroOneLoss

__all__ = [
    "COST_LIMIT",
    "LinearLoss",
    "Loss",
    "ScoreLoss",
    "ScoreTable",
    "StatedLoss",
    "TotalLoss",
    "ZeroOneLoss",
    "loss_from_dict",
]
