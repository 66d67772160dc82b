"""Private non-convex and combinatorial optimisation, with exact solvers as oracles."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from privsolve._version import __version__

if TYPE_CHECKING:
    from privsolve import audit, data, datasets, oracles
    from privsolve.cards.scorecard import Scorecard
    from privsolve.continuous.opsamp import opsamp
    from privsolve.continuous.problem import BoxProblem
    from privsolve.continuous.stability import SamplingNoise, draws_needed, plan_opsamp
    from privsolve.data import About, Bins, Categories, Category, Dates, Label, Number, Schema
    from privsolve.data.constraints import Constraints, Direction
    from privsolve.data.patterns import PatternTable
    from privsolve.data.private import PrivateDraft, private_draft
    from privsolve.data.questions import Choice, Option, Quantity
    from privsolve.data.tables import open_table
    from privsolve.domains import (
        ConstrainedPoints,
        Domain,
        FiniteSet,
        IntegerBall,
        IntegerGrid,
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
    from privsolve.domains.trees import DecisionTrees, TreePrior, TreeQuestions, tree_schema
    from privsolve.errors import (
        BudgetExceeded,
        IntegerRangeError,
        LedgerError,
        OracleFailed,
        OracleNotCertified,
        PrivacyLeakWarning,
        PrivacyWarning,
        PrivsolveError,
        SealedRunError,
        SolveInterrupted,
        WorkLimitReached,
    )
    from privsolve.evaluation import Evaluation, MeasuredOn
    from privsolve.learn.choosing import PrivateClassifier
    from privsolve.learn.estimators import PrivateLinearClassifier, PrivateScorecard
    from privsolve.learn.showing import ShowProgress
    from privsolve.learn.trees import PrivateTreeClassifier, PrivateTreeRegressor
    from privsolve.losses import BrierLoss, LogLoss, ScoreTable, ZeroOneLoss
    from privsolve.mechanisms.exponential import ExponentialSampler, exponential, exponential_utility_bound
    from privsolve.mechanisms.opdisc import opdisc, sphere_noise
    from privsolve.mechanisms.parts import Parts, release_or_failure
    from privsolve.mechanisms.rspm import rspm, separator_noise
    from privsolve.mechanisms.selection import Selection, Selector, choice_utility_bound, choose
    from privsolve.mechanisms.trees import TreeSampler, best_tree, private_tree, tree_utility_bound
    from privsolve.mechanisms.unions import UnionSampler, private_union
    from privsolve.models.candidate import Candidate
    from privsolve.models.leaves import LabelLeaves, NumberLeaves, ProbabilityLeaves
    from privsolve.models.no_answer import NoAnswer
    from privsolve.models.risk import RiskScore
    from privsolve.models.tree import DecisionTree
    from privsolve.noise.sealed import SealedRun
    from privsolve.oracles import Solution
    from privsolve.privacy.accounting import Accountant, Budget, promised
    from privsolve.privacy.adjacency import Adjacency
    from privsolve.privacy.composition import Composition, compose
    from privsolve.privacy.guarantee import Guarantee, Proof
    from privsolve.privacy.ledger import Ledger
    from privsolve.problems.discrete import DiscreteProblem
    from privsolve.problems.perturbation import Perturbation
    from privsolve.problems.priors import SparsePrior, UniformPrior
    from privsolve.problems.problem import LinearProblem, Problem
    from privsolve.problems.trees import TreeProblem
    from privsolve.problems.unions import UnionProblem
    from privsolve.releases import Diagnostics, Release, Run

__all__ = [
    "About",
    "Accountant",
    "Adjacency",
    "Bins",
    "BoxProblem",
    "BrierLoss",
    "Budget",
    "BudgetExceeded",
    "Candidate",
    "Categories",
    "Category",
    "Choice",
    "Composition",
    "ConstrainedPoints",
    "Constraints",
    "Dates",
    "DecisionTree",
    "DecisionTrees",
    "Diagnostics",
    "Direction",
    "DiscreteProblem",
    "Domain",
    "Evaluation",
    "ExponentialSampler",
    "FiniteSet",
    "Guarantee",
    "IntegerBall",
    "IntegerGrid",
    "IntegerRangeError",
    "Knapsack",
    "KnapsackDomain",
    "Label",
    "LabelLeaves",
    "Ledger",
    "LedgerError",
    "LinearProblem",
    "LogLoss",
    "MeasuredOn",
    "NoAnswer",
    "Number",
    "NumberLeaves",
    "Option",
    "OracleFailed",
    "OracleNotCertified",
    "Parts",
    "PatternTable",
    "Permutations",
    "Perturbation",
    "PrivacyLeakWarning",
    "PrivacyWarning",
    "PrivateClassifier",
    "PrivateDraft",
    "PrivateLinearClassifier",
    "PrivateScorecard",
    "PrivateTreeClassifier",
    "PrivateTreeRegressor",
    "PrivsolveError",
    "ProbabilityLeaves",
    "Problem",
    "Proof",
    "Quantity",
    "Release",
    "RiskScore",
    "Run",
    "SamplingNoise",
    "Schema",
    "ScoreTable",
    "Scorecard",
    "SealedRun",
    "SealedRunError",
    "Selection",
    "Selector",
    "ShowProgress",
    "SignCube",
    "Solution",
    "SolveInterrupted",
    "SpanningTrees",
    "SparsePoints",
    "SparsePrior",
    "SparseSigns",
    "Subsets",
    "TernaryCube",
    "TreePrior",
    "TreeProblem",
    "TreeQuestions",
    "TreeSampler",
    "UniformPrior",
    "UnionProblem",
    "UnionSampler",
    "WorkLimitReached",
    "ZeroOneLoss",
    "__version__",
    "audit",
    "best_tree",
    "choice_utility_bound",
    "choose",
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
    "private_draft",
    "private_tree",
    "private_union",
    "promised",
    "release_or_failure",
    "rspm",
    "separator_noise",
    "sphere_noise",
    "tree_schema",
    "tree_utility_bound",
]

_HOMES = {
    "cards.scorecard": "Scorecard",
    "continuous.opsamp": "opsamp",
    "continuous.problem": "BoxProblem",
    "continuous.stability": "SamplingNoise draws_needed plan_opsamp",
    "data": "About Bins Categories Category Dates Label Number Schema",
    "data.constraints": "Constraints Direction",
    "data.patterns": "PatternTable",
    "data.private": "PrivateDraft private_draft",
    "data.questions": "Choice Option Quantity",
    "data.tables": "open_table",
    "domains": "ConstrainedPoints Domain FiniteSet IntegerBall IntegerGrid Knapsack KnapsackDomain Permutations SignCube "
    "SpanningTrees SparsePoints SparseSigns Subsets TernaryCube",
    "errors": "BudgetExceeded IntegerRangeError LedgerError OracleFailed OracleNotCertified PrivacyLeakWarning PrivacyWarning "
    "PrivsolveError SealedRunError SolveInterrupted WorkLimitReached",
    "evaluation": "Evaluation MeasuredOn",
    "learn.estimators": "PrivateLinearClassifier PrivateScorecard",
    "losses": "BrierLoss LogLoss ScoreTable ZeroOneLoss",
    "mechanisms.exponential": "ExponentialSampler exponential exponential_utility_bound",
    "mechanisms.opdisc": "opdisc sphere_noise",
    "mechanisms.parts": "Parts release_or_failure",
    "mechanisms.rspm": "rspm separator_noise",
    "noise.sealed": "SealedRun",
    "releases": "Diagnostics Release Run",
    "oracles": "Solution",
    "privacy.accounting": "Accountant Budget promised",
    "privacy.adjacency": "Adjacency",
    "privacy.composition": "Composition compose",
    "privacy.guarantee": "Guarantee Proof",
    "privacy.ledger": "Ledger",
    "problems.discrete": "DiscreteProblem",
    "problems.perturbation": "Perturbation",
    "problems.priors": "SparsePrior UniformPrior",
    "problems.problem": "LinearProblem Problem",
    "learn.choosing": "PrivateClassifier",
    "learn.showing": "ShowProgress",
    "learn.trees": "PrivateTreeClassifier PrivateTreeRegressor",
    "mechanisms.selection": "Selection Selector choice_utility_bound choose",
    "models.candidate": "Candidate",
    "mechanisms.unions": "UnionSampler private_union",
    "problems.unions": "UnionProblem",
    "mechanisms.trees": "TreeSampler best_tree private_tree tree_utility_bound",
    "domains.trees": "DecisionTrees TreePrior TreeQuestions tree_schema",
    "models.leaves": "LabelLeaves NumberLeaves ProbabilityLeaves",
    "models.no_answer": "NoAnswer",
    "models.risk": "RiskScore",
    "models.tree": "DecisionTree",
    "problems.trees": "TreeProblem",
}
"""Where each name above stands. What nobody asks for is not imported: numerics, tables and plots would take a second."""

_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        found = getattr(import_module(f"privsolve.{_MODULE_OF[name]}"), name)
    elif name in __all__:
        found = import_module(f"privsolve.{name}")
    else:
        raise AttributeError(f"module 'privsolve' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
