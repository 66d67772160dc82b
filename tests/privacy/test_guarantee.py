"""Guarantees as typed values: words for people decide nothing, and payments of version 0.1.0 say what they said."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from privsolve.privacy.accounting import Accountant, Totals, one_after_another
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.guarantee import Guarantee, Proof
from privsolve.privacy.profiles import Approximate, BoundedRange, Profile, Pure, profile_from_dict
from privsolve.privacy.version_0_1 import stored_guarantee
from promises import promise

OLD: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "v0.1.0" / "guarantees.json").read_text(encoding="utf-8")
)
"""Guarantees as version 0.1.0 stored them, and what it said of each."""

PROFILES: tuple[Profile, ...] = (
    Pure(0.5),
    Pure(0.5, 0.01),
    BoundedRange(0.5),
    Approximate(0.5, 1e-9),
)


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: p.kind)
def test_profiles_go_to_json_and_back(profile: Profile) -> None:
    assert profile_from_dict(json.loads(json.dumps(profile.to_dict()))) == profile
    assert profile.group(1).epsilon == profile.epsilon
    assert profile.group(3).epsilon == pytest.approx(1.5)
    assert profile.group(3).rho >= profile.rho


def test_a_seeded_release_counts_in_every_total() -> None:
    accountant = Accountant(1.0)
    accountant.spend(promise(0.5, seeded=True, negligible=2.0**-100))
    accountant.spend(promise(0.25, negligible=2.0**-100))
    outside = "events of probability 2e-30 in all are outside the proofs"
    assert accountant.totals.caveat() == f"1 of 2 releases seeded: for testing only; {outside}"
    assert accountant.totals.negligible == Fraction(2) ** -99
    one = one_after_another(accountant.history)
    assert one.seeded
    assert one.negligible == pytest.approx(2.0**-99)
    accountant.spend(promise(0.1, proof=Proof.NONE))
    assert accountant.totals.caveat().startswith("1 of 3 releases not proved; 1 of 3 releases seeded")
    assert Totals.of([promise(0.1)]).caveat() == ""


def test_several_releases_are_as_well_proved_as_its_weakest_release() -> None:
    proofs = (Proof.COMPLETE, Proof.REAL_ARITHMETIC, Proof.NONE)
    for count in (1, 2, 3):
        plan = [promise(0.1, proof=proof) for proof in proofs[:count]]
        assert one_after_another(plan).proof is proofs[count - 1]


def test_adjacencies_are_named() -> None:
    assert Adjacency.of("add-remove") is Adjacency.ADD_REMOVE
    with pytest.raises(ValueError, match="adjacency must be one of 'replace', 'add-remove', got 'swap'"):
        Adjacency.of("swap")


@pytest.mark.parametrize("name", OLD)
def test_payments_of_the_first_version_say_the_same(name: str) -> None:
    said, guarantee = OLD[name]["said"], stored_guarantee(OLD[name]["stored"])
    assert isinstance(guarantee.profile, BoundedRange) == said["bounded_range"]
    if said["zcdp"] is not None:
        assert guarantee.zcdp == pytest.approx(said["zcdp"], rel=1e-12)
    for field in ("epsilon", "delta", "proved", "seeded", "adjacency", "mechanism", "theory"):
        assert getattr(guarantee, field) == said[field], field
    assert Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee


def old(**changes: Any) -> Guarantee:
    return stored_guarantee(OLD["opdisc"]["stored"] | changes)


def test_payments_of_the_first_version_claim_what_is_known_by_now() -> None:
    assert not old(seeded=False).without_exception  # noise beyond the exact range
    assert "2^-100" in old(seeded=False).sentence()
    assert old(theory="B1", delta=1e-9).proof is Proof.REAL_ARITHMETIC
    assert old(theory="B2").proof is Proof.REAL_ARITHMETIC
    assert old(theory="B2", proved=False).proof is Proof.NONE
    assert old(delta=1e-9, zcdp=0.01).profile == Approximate(1.0, 1e-9)
