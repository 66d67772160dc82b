"""Guarantees for tests, short to write; kept apart from mechanisms so that importing it takes little."""

from __future__ import annotations

from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.profiles import BoundedRange, profile_of


def promise(epsilon: float, delta: float = 0.0, **fields: object) -> Guarantee:
    """What OPDisc would promise."""
    values: dict[str, object] = {
        "profile": profile_of(epsilon, delta),
        "adjacency": "replace",
        "mechanism": "OPDisc",
        "noise": "l2-gamma noise",
        "theory": "2.1",
        "oracle": "tree",
    }
    return Guarantee(**(values | fields))  # type: ignore[arg-type]


def bounded_range(epsilon: float, **fields: object) -> Guarantee:
    """What the exponential mechanism would promise."""
    words = {"mechanism": "exponential mechanism", "noise": "exact sample", "theory": "4", "oracle": "exact sampler"}
    return promise(epsilon, **({"profile": BoundedRange(epsilon)} | words | fields))
