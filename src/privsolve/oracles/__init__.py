"""Oracles: they minimise a perturbed loss over a domain, and certify it or raise."""

from __future__ import annotations

from privsolve.oracles.base import Oracle, Solution, verified
from privsolve.oracles.enumeration import EnumerationOracle
from privsolve.oracles.tree import TreeOracle

_BY_NAME = {"tree": TreeOracle, "enumeration": EnumerationOracle}


def get(name: str) -> Oracle:
    """The oracle of that name with its default settings."""
    if name not in _BY_NAME:
        raise ValueError(f"oracle {name!r} is unknown: choose one of {', '.join(_BY_NAME)} or pass an oracle object")
    oracle: Oracle = _BY_NAME[name]()
    return oracle


__all__ = ["EnumerationOracle", "Oracle", "Solution", "TreeOracle", "get", "verified"]
