"""Oracles: they minimise a perturbed loss over a domain, and certify it or raise."""

from __future__ import annotations

from collections.abc import Callable

from privsolve.oracles.base import Oracle, Solution, verified
from privsolve.oracles.catalogue import SOLVERS, SolverUnavailable
from privsolve.oracles.combinatorial import AssignmentOracle, SpanningTreeOracle, SubsetOracle
from privsolve.oracles.cpsat import CpsatOracle
from privsolve.oracles.enumeration import EnumerationOracle
from privsolve.oracles.gurobi import GurobiOracle
from privsolve.oracles.highs import HighsOracle
from privsolve.oracles.scip import ScipOracle
from privsolve.oracles.tree import TreeOracle

_BY_NAME: dict[str, Callable[[], Oracle]] = {
    "tree": TreeOracle,
    "enumeration": EnumerationOracle,
    "assignment": AssignmentOracle,
    "subset": SubsetOracle,
    "spanning-tree": SpanningTreeOracle,
    "highs": HighsOracle,
    "cpsat": CpsatOracle,
    "scip": ScipOracle,
    "gurobi": GurobiOracle,
}


def get(name: str) -> Oracle:
    """The oracle of that name with its default settings."""
    if name not in _BY_NAME:
        raise ValueError(f"oracle {name!r} is unknown: choose one of {', '.join(_BY_NAME)} or pass an oracle object")
    return _BY_NAME[name]()


__all__ = [
    "SOLVERS",
    "AssignmentOracle",
    "CpsatOracle",
    "EnumerationOracle",
    "GurobiOracle",
    "HighsOracle",
    "Oracle",
    "ScipOracle",
    "Solution",
    "SolverUnavailable",
    "SpanningTreeOracle",
    "SubsetOracle",
    "TreeOracle",
    "get",
    "verified",
]
