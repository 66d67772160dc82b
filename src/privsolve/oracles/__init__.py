"""Oracles: they minimise a perturbed loss over a domain, and certify it or raise."""

from __future__ import annotations

from privsolve.oracles.base import Oracle, Solution, verified
from privsolve.oracles.catalogue import Solver, SolverUnavailable
from privsolve.oracles.combinatorial import AssignmentOracle, SpanningTreeOracle, SubsetOracle
from privsolve.oracles.cpsat import CpsatOracle
from privsolve.oracles.enumeration import EnumerationOracle
from privsolve.oracles.gurobi import GurobiOracle
from privsolve.oracles.highs import HighsOracle
from privsolve.oracles.scip import ScipOracle
from privsolve.oracles.tree import TreeOracle

ORACLES: tuple[type[Oracle], ...] = (
    TreeOracle,
    EnumerationOracle,
    AssignmentOracle,
    SubsetOracle,
    SpanningTreeOracle,
    HighsOracle,
    CpsatOracle,
    ScipOracle,
    GurobiOracle,
)
"""The oracles that have a name, in the order in which they are offered; each class says the rest."""

_BY_NAME = {cls.about.name: cls for cls in ORACLES if cls.about is not None}

SOLVERS = tuple(cls.about for cls in ORACLES if cls.about is not None)


def get(name: str) -> Oracle:
    """The oracle of that name with its default settings."""
    if name not in _BY_NAME:
        raise ValueError(f"oracle {name!r} is unknown: choose one of {', '.join(_BY_NAME)} or pass an oracle object")
    return _BY_NAME[name]()


def solver(name: str) -> Solver:
    """The catalogue entry of that name."""
    for entry in SOLVERS:
        if entry.name == name:
            return entry
    raise ValueError(f"oracle {name!r} is unknown: choose one of {', '.join(_BY_NAME)}")


__all__ = [
    "ORACLES",
    "SOLVERS",
    "AssignmentOracle",
    "CpsatOracle",
    "EnumerationOracle",
    "GurobiOracle",
    "HighsOracle",
    "Oracle",
    "ScipOracle",
    "Solution",
    "Solver",
    "SolverUnavailable",
    "SpanningTreeOracle",
    "SubsetOracle",
    "TreeOracle",
    "get",
    "solver",
    "verified",
]
