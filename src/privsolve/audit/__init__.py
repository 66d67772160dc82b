"""Attacks on guarantees: how much privacy a mechanism loses at least, measured on neighbouring data.

An audit can refute a claim, never prove one. `lower_bound` attacks any mechanism by its outputs, `exact_loss` compares
two laws that are known exactly, `cases` and `parity_pair` hold data on which mechanisms tend to fail, and
`suite` attacks every mechanism of this package on them.
"""

from privsolve.audit.bound import Finding, lower_bound
from privsolve.audit.cases import CASES, FULL_CARD_CASES, TREE_CASES, Case, FullCardCase, parity
from privsolve.audit.exact import ExactFinding, exact_epsilon, exact_loss, tree_law
from privsolve.audit.parity_pair import ParityProblem, parity_draws
from privsolve.audit.suite import Check, Row, checks, run_checks
from privsolve.mechanisms.exponential import exponential_law
from privsolve.mechanisms.perturbed import perturbed_draws

__all__ = [
    "CASES",
    "FULL_CARD_CASES",
    "TREE_CASES",
    "Case",
    "Check",
    "ExactFinding",
    "Finding",
    "FullCardCase",
    "ParityProblem",
    "Row",
    "checks",
    "exact_epsilon",
    "exact_loss",
    "exponential_law",
    "lower_bound",
    "parity",
    "parity_draws",
    "perturbed_draws",
    "run_checks",
    "tree_law",
]
