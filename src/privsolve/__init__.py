"""Private non-convex and combinatorial optimisation, with exact solvers as oracles."""

from typing import TYPE_CHECKING, Any

from privsolve import audit, data, datasets, oracles
from privsolve._version import __version__
from privsolve.cards.scorecard import Scorecard
from privsolve.continuous.opsamp import opsamp
from privsolve.continuous.stability import draws_needed, plan_opsamp
from privsolve.data import Bins, Categories, Category, Label, Number, Schema
from privsolve.data.patterns import PatternTable
from privsolve.data.questions import Choice, Option, Quantity
from privsolve.data.tables import open_table
from privsolve.domains import (
    Domain,
    FiniteSet,
    IntegerBall,
    Knapsack,
    KnapsackDomain,
    Permutations,
    SignCube,
    SpanningTrees,
    SparsePoints,
    SparseSigns,
    Subsets,
    TernaryCube,
)
from privsolve.errors import (
    BudgetExceeded,
    IntegerRangeError,
    LedgerError,
    OracleFailed,
    OracleNotCertified,
    PrivacyLeakWarning,
    PrivacyWarning,
    PrivsolveError,
    SolveInterrupted,
    WorkLimitReached,
)
from privsolve.losses import ZeroOneLoss
from privsolve.mechanisms.exponential import ExponentialSampler, exponential, exponential_utility_bound
from privsolve.mechanisms.opdisc import opdisc, sphere_noise
from privsolve.mechanisms.rspm import rspm, separator_noise
from privsolve.models.release import Diagnostics, Release, Run
from privsolve.oracles import Solution
from privsolve.privacy.accounting import Accountant, Budget, promised
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.composition import Composition, compose
from privsolve.privacy.guarantee import Guarantee, Proof
from privsolve.privacy.ledger import Ledger
from privsolve.problems.perturbation import Perturbation
from privsolve.problems.priors import SparsePrior, UniformPrior
from privsolve.problems.problem import LinearProblem, Problem

if TYPE_CHECKING:
    from privsolve.learn.estimators import PrivateLinearClassifier, PrivateScorecard

__all__ = [
    "Accountant",
    "Adjacency",
    "Bins",
    "Budget",
    "BudgetExceeded",
    "Categories",
    "Category",
    "Choice",
    "Composition",
    "Diagnostics",
    "Domain",
    "ExponentialSampler",
    "FiniteSet",
    "Guarantee",
    "IntegerBall",
    "IntegerRangeError",
    "Knapsack",
    "KnapsackDomain",
    "Label",
    "Ledger",
    "LedgerError",
    "LinearProblem",
    "Number",
    "Option",
    "OracleFailed",
    "OracleNotCertified",
    "PatternTable",
    "Permutations",
    "Perturbation",
    "PrivacyLeakWarning",
    "PrivacyWarning",
    "PrivateLinearClassifier",
    "PrivateScorecard",
    "PrivsolveError",
    "Problem",
    "Proof",
    "Quantity",
    "Release",
    "Run",
    "Schema",
    "Scorecard",
    "SignCube",
    "Solution",
    "SolveInterrupted",
    "SpanningTrees",
    "SparsePoints",
    "SparsePrior",
    "SparseSigns",
    "Subsets",
    "TernaryCube",
    "UniformPrior",
    "WorkLimitReached",
    "ZeroOneLoss",
    "__version__",
    "audit",
    "compose",
    "data",
    "datasets",
    "draws_needed",
    "exponential",
    "exponential_utility_bound",
    "opdisc",
    "open_table",
    "opsamp",
    "oracles",
    "plan_opsamp",
    "promised",
    "rspm",
    "separator_noise",
    "sphere_noise",
]


def __getattr__(name: str) -> Any:
    """The estimators are imported when they are asked for: scikit-learn takes a second."""
    if name in ("PrivateLinearClassifier", "PrivateScorecard"):
        from privsolve import learn

        return getattr(learn, name)
    raise AttributeError(f"module 'privsolve' has no attribute {name!r}")
