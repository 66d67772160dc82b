"""The supports-first tree for sparse scorecards: one fold, evaluated in two semirings.

A scorecard puts non-zero points on a small *support* of binary columns. `instance` checks the arrays, `cells` lists all
supports with the fewest mistakes each could make, `fold` bounds, sums, minimises and draws the points of one support,
`minimise` finds the certified best scorecard, `sample` draws exactly from the exponential mechanism. Where the supports
are too many to list one by one, `blocks` goes through them with the moments that `moments` counts by `bits`; where they are
too many for that, `lazy` opens a tree.
"""

from privsolve.engines.supports.instance import CardInstance
from privsolve.engines.supports.minimise import Minimum, minimise_supports
from privsolve.engines.supports.sample import SupportSampler

__all__ = ["CardInstance", "Minimum", "SupportSampler", "minimise_supports"]
