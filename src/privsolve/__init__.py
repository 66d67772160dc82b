"""Private non-convex and combinatorial optimisation, with exact solvers as oracles."""

from privsolve import datasets, oracles
from privsolve._version import __version__
from privsolve.domains import FiniteSet, IntegerBall, SignCube, SparseSigns, TernaryCube
from privsolve.errors import (
    IntegerRangeError,
    OracleNotCertified,
    PrivacyLeakWarning,
    PrivacyWarning,
    PrivsolveError,
    WorkLimitReached,
)
from privsolve.guarantee import Guarantee
from privsolve.losses import ZeroOneLoss
from privsolve.mechanisms.opdisc import opdisc, sphere_noise
from privsolve.oracles import Solution
from privsolve.patterns import PatternTable
from privsolve.perturbation import Perturbation
from privsolve.problem import Problem
from privsolve.release import Diagnostics, Release, Run

__all__ = [
    "Diagnostics",
    "FiniteSet",
    "Guarantee",
    "IntegerBall",
    "IntegerRangeError",
    "OracleNotCertified",
    "PatternTable",
    "Perturbation",
    "PrivacyLeakWarning",
    "PrivacyWarning",
    "PrivsolveError",
    "Problem",
    "Release",
    "Run",
    "SignCube",
    "Solution",
    "SparseSigns",
    "TernaryCube",
    "WorkLimitReached",
    "ZeroOneLoss",
    "__version__",
    "datasets",
    "opdisc",
    "oracles",
    "sphere_noise",
]
