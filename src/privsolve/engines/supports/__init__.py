"""The supports-first tree for sparse scorecards: one fold, evaluated in two semirings.

A scorecard puts non-zero points on a small *support* of binary columns. `instance` checks the arrays, `cells` counts what the
records of each cell of a support cost, `fold` bounds, sums, minimises and draws the points of one support, `minimise` finds
the certified best scorecard, `sample` draws exactly from the exponential mechanism. Few supports are listed one by one
(`listed`); many are gone through in `blocks`, with the moments that `moments` counts by `bits`.
"""

from privsolve.engines.supports.instance import CardInstance
from privsolve.engines.supports.minimise import Minimum, minimise_supports
from privsolve.engines.supports.sample import SupportSampler

__all__ = ["CardInstance", "Minimum", "SupportSampler", "minimise_supports"]
