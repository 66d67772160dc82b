"""The two semirings that bounds and sums are formed in: (min, +) on integers and (+, ×) on floats.

Compiled functions take a ring as their first argument; which one it is decides what is compiled, not what is run. The bodies
below are what the interpreter runs (`NUMBA_DISABLE_JIT=1`); compiled code takes the overloads, which say the same.
"""

# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math
from typing import Any, NamedTuple

from privsolve.compiled import overload

INFINITE_COST = 2**61
"""Stands for plus infinity in integer objectives: adding any objective to it neither overflows nor looks feasible."""


class Costs(NamedTuple):
    """(min, +) on int64."""

    zero: int = INFINITE_COST
    unit: int = 0


class Weights(NamedTuple):
    """(+, ×) on float64."""

    zero: float = 0.0
    unit: float = 1.0


COSTS, WEIGHTS = Costs(), Weights()


def plus(ring, a, b):
    """a ⊕ b."""
    return min(a, b) if isinstance(ring, Costs) else a + b


def times(ring, a, b):
    """a ⊗ b."""
    return a + b if isinstance(ring, Costs) else a * b


def better(ring, a, b):
    """The smaller cost or the larger weight."""
    return min(a, b) if isinstance(ring, Costs) else max(a, b)


def element(ring, scale, cost):
    """A loss as an element of the semiring: `scale·cost` or `exp(scale·cost)`."""
    return scale * cost if isinstance(ring, Costs) else math.exp(scale * cost)


def _is_cost(ring: Any) -> bool:
    return ring.instance_class is Costs  # the numba type of a named tuple


@overload(plus)
def _plus(ring, a, b):
    return (lambda ring, a, b: min(a, b)) if _is_cost(ring) else (lambda ring, a, b: a + b)


@overload(times)
def _times(ring, a, b):
    return (lambda ring, a, b: a + b) if _is_cost(ring) else (lambda ring, a, b: a * b)


@overload(better)
def _better(ring, a, b):
    return (lambda ring, a, b: min(a, b)) if _is_cost(ring) else (lambda ring, a, b: max(a, b))


@overload(element)
def _element(ring, scale, cost):
    if _is_cost(ring):
        return lambda ring, scale, cost: scale * cost
    return lambda ring, scale, cost: math.exp(scale * cost)
