"""What several guarantees say together: of releases from the same records, or from parts that share none.

Proofs are in docs/theory/11-evaluation.md (11.5) and, for sums, theory section 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from privsolve.privacy.decimals import at_least, exact
from privsolve.privacy.guarantee import Guarantee, Proof
from privsolve.privacy.profiles import Approximate, Profile, Pure

_ORDER = (Proof.COMPLETE, Proof.REAL_ARITHMETIC, Proof.NONE)


def one_after_another(parts: Sequence[Guarantee]) -> Guarantee:
    """Releases from the same records, in this order: their epsilons, deltas and zero-concentrated bounds add up."""
    epsilon = sum((exact(part.epsilon) for part in parts), Fraction())
    delta = sum((exact(part.delta) for part in parts), Fraction())
    return _joined(parts, _profile(epsilon, delta, sum((part.rho for part in parts), Fraction())), "; then ")


def side_by_side(one: Guarantee, other: Guarantee) -> Guarantee:
    """Releases from two parts of the records, of which each record is in one by a coin that looks at nothing: the worse one.

    The second may depend on what the first published.
    """
    epsilon, delta = (max(exact(a), exact(b)) for a, b in ((one.epsilon, other.epsilon), (one.delta, other.delta)))
    return _joined((one, other), _profile(epsilon, delta, max(one.rho, other.rho)), " and, on other records, ")


def _profile(epsilon: Fraction, delta: Fraction, rho: Fraction) -> Profile:
    if delta:
        return Approximate(at_least(epsilon), at_least(delta))
    return Pure(at_least(epsilon), at_least(rho))


def _joined(parts: Sequence[Guarantee], profile: Profile, between: str) -> Guarantee:
    first = parts[0]
    if len(parts) == 1:
        return first
    if any(part.adjacency is not first.adjacency for part in parts):
        raise ValueError(
            "guarantees under replace and under add-remove do not add up: use the same adjacency for schema, fit and evaluation"
        )
    noise, theory, oracle = (" and ".join(_different(parts, name)) for name in ("noise", "theory", "oracle"))
    return replace(
        first,
        profile=profile,
        mechanism=between.join(map(_named, parts)),
        noise=noise,
        theory=theory,
        oracle=oracle,
        proof=max((part.proof for part in parts), key=_ORDER.index),
        seeded=any(part.seeded for part in parts),
        negligible=sum(part.negligible for part in parts),
    )


def _named(part: Guarantee) -> str:
    """The mechanism and its epsilon, unless it is several that have said so already."""
    return part.mechanism if "ε = " in part.mechanism else f"{part.mechanism} with ε = {part.epsilon:.12g}"


def _different(parts: Sequence[Guarantee], name: str) -> list[str]:
    found = [text for part in parts for text in str(getattr(part, name)).split(" and ")]
    return list(dict.fromkeys(text for text in found if text != "none")) or ["none"]
