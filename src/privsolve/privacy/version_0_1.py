"""Payments in ledgers of version 0.1.0: they are read, and count as they did."""

from __future__ import annotations

import math
from typing import Any

from privsolve.checks import check_finite
from privsolve.privacy.guarantee import NOISE_BEYOND_RANGE, Guarantee, Proof
from privsolve.privacy.profiles import BoundedRange, Profile, Pure, profile_of

FIELDS = frozenset(
    {"epsilon", "delta", "adjacency", "mechanism", "noise", "proved", "theory", "oracle", "seeded", "zcdp"}
)


def stored_guarantee(values: Any) -> Guarantee:
    """A guarantee as a ledger of any version holds it.

    In version 0.1.0 the exponential mechanism was the only one with a zero-concentrated bound. What its guarantees say is read
    with what is known by now. They claim the baselines of that version (B1 and B2) to be proved, which holds in real arithmetic
    only, and leave out that noise may exceed the exact range.
    """
    if not isinstance(values, dict) or set(values) != FIELDS:
        return Guarantee.from_dict(values)
    epsilon, delta, zcdp = values["epsilon"], values["delta"], values["zcdp"]
    profile: Profile
    if zcdp is None or delta != 0:  # with a delta that version accounted for ε²/2, whatever was stated
        profile = profile_of(epsilon, check_finite("guarantee's delta", delta))
    elif values["mechanism"] == "exponential mechanism":  # the word of that format for a bounded range
        profile = BoundedRange(epsilon)
        if not math.isclose(zcdp, epsilon**2 / 8, rel_tol=1e-9):
            raise ValueError(f"guarantee's zcdp must be epsilon²/8, got {zcdp!r}")
    else:
        profile = Pure(epsilon, zcdp)
    claimed = Proof.REAL_ARITHMETIC if values["theory"] in ("B1", "B2") else Proof.COMPLETE
    words = {name: values[name] for name in ("adjacency", "mechanism", "noise", "theory", "oracle", "seeded")}
    return Guarantee(
        profile,
        **words,
        proof=claimed if values["proved"] is True else Proof.NONE,
        negligible=0.0 if isinstance(profile, BoundedRange) else NOISE_BEYOND_RANGE,
    )
