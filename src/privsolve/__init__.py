"""Private non-convex and combinatorial optimisation, with exact solvers as oracles."""

from privsolve import combinatorial, datasets, oracles
from privsolve._version import __version__
from privsolve.domains import FiniteSet, IntegerBall, SignCube, SparsePoints, SparseSigns, TernaryCube
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
from privsolve.mechanisms.exponential import ExponentialSampler, exponential, exponential_utility_bound
from privsolve.mechanisms.opdisc import opdisc, sphere_noise
from privsolve.mechanisms.opsamp import opsamp
from privsolve.mechanisms.rspm import rspm, separator_noise
from privsolve.oracles import Solution
from privsolve.patterns import PatternTable
from privsolve.perturbation import Perturbation
from privsolve.priors import SparsePrior, UniformPrior
from privsolve.problem import LinearProblem, Problem
from privsolve.release import Diagnostics, Release, Run
from privsolve.stability import draws_needed, plan_opsamp

__all__ = [
    "Diagnostics",
    "ExponentialSampler",
    "FiniteSet",
    "Guarantee",
    "IntegerBall",
    "IntegerRangeError",
    "LinearProblem",
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
    "SparsePoints",
    "SparsePrior",
    "SparseSigns",
    "TernaryCube",
    "UniformPrior",
    "WorkLimitReached",
    "ZeroOneLoss",
    "__version__",
    "combinatorial",
    "datasets",
    "draws_needed",
    "exponential",
    "exponential_utility_bound",
    "opdisc",
    "opsamp",
    "oracles",
    "plan_opsamp",
    "rspm",
    "separator_noise",
    "sphere_noise",
]
