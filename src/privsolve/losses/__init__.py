"""What a record loses: public integer tables over scores, and linear costs."""

from privsolve.losses.base import COST_LIMIT, Loss, loss_from_dict
from privsolve.losses.linear import LinearLoss
from privsolve.losses.scores import ScoreLoss, ScoreTable
from privsolve.losses.zero_one import ZeroOneLoss

__all__ = ["COST_LIMIT", "LinearLoss", "Loss", "ScoreLoss", "ScoreTable", "ZeroOneLoss", "loss_from_dict"]
