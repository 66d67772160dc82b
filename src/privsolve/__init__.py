"""Private non-convex and combinatorial optimisation, with exact solvers as oracles."""

from typing import TYPE_CHECKING, Any

from privsolve import audit, combinatorial, datasets, oracles, schema
from privsolve._version import __version__
from privsolve.accounting import Accountant, Budget, promised
from privsolve.composition import Composition, compose
from privsolve.domains import FiniteSet, IntegerBall, SignCube, SparsePoints, SparseSigns, TernaryCube
from privsolve.errors import (
    BudgetExceeded,
    IntegerRangeError,
    LedgerError,
    OracleNotCertified,
    PrivacyLeakWarning,
    PrivacyWarning,
    PrivsolveError,
    WorkLimitReached,
)
from privsolve.guarantee import Guarantee
from privsolve.ledger import Ledger
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
from privsolve.questions import Choice, Option, Quantity
from privsolve.release import Diagnostics, Release, Run
from privsolve.schema import Bins, Categories, Category, Label, Number, Schema
from privsolve.scorecard import Scorecard
from privsolve.stability import draws_needed, plan_opsamp
from privsolve.tables import open_table

if TYPE_CHECKING:
    from privsolve.learn import PrivateLinearClassifier, PrivateScorecard

__all__ = [
    "Accountant",
    "Bins",
    "Budget",
    "BudgetExceeded",
    "Categories",
    "Category",
    "Choice",
    "Composition",
    "Diagnostics",
    "ExponentialSampler",
    "FiniteSet",
    "Guarantee",
    "IntegerBall",
    "IntegerRangeError",
    "Label",
    "Ledger",
    "LedgerError",
    "LinearProblem",
    "Number",
    "Option",
    "OracleNotCertified",
    "PatternTable",
    "Perturbation",
    "PrivacyLeakWarning",
    "PrivacyWarning",
    "PrivateLinearClassifier",
    "PrivateScorecard",
    "PrivsolveError",
    "Problem",
    "Quantity",
    "Release",
    "Run",
    "Schema",
    "Scorecard",
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
    "audit",
    "combinatorial",
    "compose",
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
    "schema",
    "separator_noise",
    "sphere_noise",
]


def __getattr__(name: str) -> Any:
    """The estimators are imported when they are asked for: scikit-learn takes a second."""
    if name in ("PrivateLinearClassifier", "PrivateScorecard"):
        from privsolve import learn

        return getattr(learn, name)
    raise AttributeError(f"module 'privsolve' has no attribute {name!r}")
