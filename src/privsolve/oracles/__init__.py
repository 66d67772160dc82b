"""Oracles: they minimise a perturbed loss over a domain, and certify it or raise."""

from __future__ import annotations

from privsolve.oracles.base import Oracle, Solution, Solver, SolverUnavailable, verified
from privsolve.oracles.exact import AssignmentOracle, EnumerationOracle, SpanningTreeOracle, SubsetOracle, TreeOracle
from privsolve.oracles.mip import GurobiOracle, HighsOracle

ORACLES: tuple[type[Oracle], ...] = (
    TreeOracle,
    EnumerationOracle,
    AssignmentOracle,
    SubsetOracle,
    SpanningTreeOracle,
    HighsOracle,
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


__all__ = [
    "ORACLES",
    "SOLVERS",
    "AssignmentOracle",
    "EnumerationOracle",
    "GurobiOracle",
    "HighsOracle",
    "Oracle",
    "Solution",
    "Solver",
    "SolverUnavailable",
    "SpanningTreeOracle",
    "SubsetOracle",
    "TreeOracle",
    "get",
    "verified",
]
