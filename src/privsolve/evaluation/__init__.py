"""How good a released model is, from one noisy histogram: everything else is arithmetic on it (theory, section 11)."""

from privsolve.evaluation.cells import Cells
from privsolve.evaluation.evaluation import Evaluation, MeasuredOn
from privsolve.evaluation.intervals import Figure
from privsolve.evaluation.measure import evaluate

__all__ = ["Cells", "Evaluation", "Figure", "MeasuredOn", "evaluate"]
