"""The finite sets `W` that weights are chosen from, each known under its `kind`."""

from privsolve.domains.base import Domain, FiniteSet, KnapsackDomain, check_domain, domain_from_dict
from privsolve.domains.combinatorial import Permutations, SpanningTrees, Subsets
from privsolve.domains.integers import IntegerBall, IntegerGrid, SignCube, SparseSigns, TernaryCube
from privsolve.domains.knapsack import Knapsack
from privsolve.domains.scorecards import ConstrainedPoints, SparsePoints

__all__ = [
    "ConstrainedPoints",
    "Domain",
    "FiniteSet",
    "IntegerBall",
    "IntegerGrid",
    "Knapsack",
    "KnapsackDomain",
    "Permutations",
    "SignCube",
    "SpanningTrees",
    "SparsePoints",
    "SparseSigns",
    "Subsets",
    "TernaryCube",
    "check_domain",
    "domain_from_dict",
]
