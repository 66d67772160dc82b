"""The finite sets `W` that weights are chosen from, each known under its `kind`."""

from privsolve.domains.balls import IntegerBall
from privsolve.domains.base import Domain, check_domain, domain_from_dict, domain_kinds
from privsolve.domains.constrained import ConstrainedPoints
from privsolve.domains.cubes import SignCube, SparseSigns, TernaryCube
from privsolve.domains.finite import FiniteSet
from privsolve.domains.grids import IntegerGrid
from privsolve.domains.knapsack import Knapsack
from privsolve.domains.knapsack_domain import KnapsackDomain
from privsolve.domains.permutations import Permutations
from privsolve.domains.scorecards import SparsePoints
from privsolve.domains.spanning_trees import SpanningTrees
from privsolve.domains.subsets import Subsets

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
    "domain_kinds",
]
