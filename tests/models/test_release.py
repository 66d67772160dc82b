"""Releases: round trip, nothing data-dependent beside the weights, a JSON schema, and damaged files refused in words."""

from __future__ import annotations

import copy
import json
import pickle
from functools import reduce
from importlib.resources import files
from operator import getitem
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import privsolve as ps
from privsolve.domains import Domain
from privsolve.models.base import Model
from privsolve.models.linear import LinearRule
from privsolve.privacy.guarantee import Proof
from privsolve.releases import NOT_PRIVATE, Diagnostics
from promises import promise
from small_tables import INDICATORS, SCHEMA, patients

NAMES = ["age", "größe"]
GUARANTEE = promise(1.0)


def release(domain: Domain, weights: list[int], table: ps.PatternTable | None = None) -> ps.Release:
    table = table or ps.PatternTable([[1, 2]], [1], [0], names=NAMES, scales=[1, 99])
    problem = ps.Problem(table, domain, ps.ZeroOneLoss(2, 3))
    return ps.Release(problem.model(np.array(weights)), GUARANTEE, problem.setting)


FINITE = ps.FiniteSet([[1, -1], [0, 3]])
DOMAINS = [ps.IntegerBall(2, 5), ps.SignCube(2), ps.TernaryCube(2), ps.SparseSigns(2, 2), FINITE]


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda d: d.kind)
def test_round_trip(domain: Domain) -> None:
    first = release(domain, [1, -1])
    again = ps.Release.from_json(first.to_json())
    assert again.to_json() == first.to_json()
    assert again.weights.tolist() == [1, -1]
    assert again.weights.dtype == np.int64
    assert isinstance(again.model, LinearRule)
    assert (again.model.features, again.model.scales) == (tuple(NAMES), (1, 99))
    assert (again.domain, again.loss, again.guarantee) == (domain, ps.ZeroOneLoss(2, 3), GUARANTEE)
    assert again.version == ps.__version__
    assert pickle.loads(pickle.dumps(first)).to_json() == first.to_json()
    for one in (first, again):
        with pytest.raises(ValueError, match="read-only"):
            one.weights[0] = 0


def test_fields_are_the_public_ones() -> None:
    content = json.loads(release(DOMAINS[0], [1, -1]).to_json())
    assert list(content) == ["format", "version", "model", "guarantee", "setting"]
    assert list(content["model"]) == ["kind", "weights", "features", "scales", "intercept"]
    assert content["guarantee"] == GUARANTEE.to_dict()
    assert content["setting"]["domain"] == {"kind": "integer-ball", "dim": 2, "radius_sq": 5}
    assert "größe" in release(DOMAINS[0], [1, -1]).to_json()


@pytest.mark.parametrize("noise", ["gamma", "gaussian"])
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_equal_weights_on_neighbours_give_equal_bytes(adjacency: str, noise: str) -> None:
    """Objective, rows, counts and time all differ between the tables; the release must not show it."""
    rows, labels = [[1, 0], [0, 1], [1, 1], [5, 3]], [True, False, True, False]
    kept = slice(None, -1) if adjacency == "add-remove" else slice(None)
    changed_rows, changed_labels = [*rows[:-1], [-7, 2]], [*labels[:-1], True]
    tables = [
        ps.PatternTable.from_records(rows, labels, names=NAMES),
        ps.PatternTable.from_records(changed_rows[kept], changed_labels[kept], names=NAMES),
    ]
    assert tables[0] != tables[1]
    delta = 1e-3 if noise == "gaussian" and adjacency == "add-remove" else None
    equal = differ = 0
    options: dict[str, Any] = {"adjacency": adjacency, "noise": noise, "delta": delta, "oracle": "enumeration"}
    problems = [ps.Problem(table, ps.IntegerBall(2, 4)) for table in tables]
    for seed in range(40):
        runs = [ps.opdisc(problem, 0.5, **options, random_state=seed) for problem in problems]
        if runs[0].release.weights.tolist() == runs[1].release.weights.tolist():
            equal += 1
            assert runs[0].release.to_json().encode() == runs[1].release.to_json().encode()
            differ += runs[0].diagnostics.objective != runs[1].diagnostics.objective
    assert equal > 10
    assert differ > 5


def test_weights_outside_the_domain_are_no_release() -> None:
    with pytest.raises(ValueError, match="not a member"):
        release(ps.SignCube(2), [1, 0])
    for weights in ([1.0, 1.0], [[1, 1]], []):
        with pytest.raises(ValueError, match="must be a list of whole numbers"):
            release(ps.SignCube(2), weights)
    with pytest.raises(ValueError, match="names must be 1"):
        release(ps.SignCube(2), [1])


# --- damaged files --------------------------------------------------------------------------------

MISSING = object()


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=20) | st.binary(max_size=20))
@example("[" * 100_000)
@example("9" * 5000)
@example("[]")
@example('{"format": "other"}')
@example('{"format": "privsolve-release-1"}')
@example(None)
@example(5)
def test_other_files_are_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="not a release file"):
        ps.Release.from_json(text)


WHOLE = "weights must be a list of whole numbers"
KIND = "must be an object whose kind is one of"


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("version", MISSING, "missing or unknown fields: version"),
        ("model", MISSING, "missing or unknown fields: model"),
        ("setting", MISSING, "missing or unknown fields: setting"),
        ("guarantee", MISSING, "missing or unknown fields: guarantee"),
        ("model", 3, f"model {KIND}"),
        ("model kind", "oracle", f"model {KIND} .*'linear-rule'.*, got kind 'oracle'"),
        ("model weights", [3, 0], "weights are not a member"),
        ("model weights", [1.0, -1.0], WHOLE),
        ("model weights", [[1], [1, 2]], WHOLE),
        ("model weights", [2**64, 0], WHOLE),
        ("model features", "ab", "features must be a list of names"),
        ("model features", ["a", "a"], "names must be 2 different"),
        ("model features", ["a", 1], "features must be a list of names"),
        ("model scales", [1, 0], "scales must be 2 positive"),
        ("model scales", None, "scales must be a list"),
        ("model intercept", 1, "intercept must be true or false"),
        ("model extra", 1, "model has missing or unknown fields: extra"),
        ("setting", 3, "setting must be an object"),
        ("setting epsilon", 3, "setting has missing or unknown fields: epsilon"),
        ("setting domain", 3, "domain must be described"),
        ("setting domain kind", "ball", "domain kind 'ball' is unknown"),
        ("setting domain dim", 3, "not a member"),
        ("setting loss", 3, f"loss {KIND}"),
        ("setting loss kind", "hinge", f"loss {KIND} .*, got kind 'hinge'"),
        ("setting loss false_positive", -1, "false_positive must be"),
        ("version", 3, "version must be a text"),
        ("extra", 3, "missing or unknown fields: extra"),
        ("guarantee", [], "guarantee must be a dictionary"),
        ("guarantee note", "", "guarantee has missing or unknown fields: note"),
        ("guarantee profile epsilon", float("nan"), "guarantee's epsilon must be finite and positive"),
        ("guarantee profile epsilon", "1", "guarantee's epsilon must be"),
        ("guarantee profile delta", 1.0, "guarantee's delta must be"),
        ("guarantee profile kind", [], f"guarantee's profile {KIND}"),
        ("guarantee profile kind", "bounded-range", "profile has missing or unknown fields: concentrated"),
        ("guarantee profile", "pure", "guarantee's profile must be an object"),
        ("guarantee profile concentrated", -0.5, "guarantee's zcdp must be"),
        ("guarantee negligible", 0.5, "guarantee's negligible must be"),
        ("guarantee seeded", 1, "guarantee's seeded must be"),
        ("guarantee adjacency", [], "guarantee's adjacency must be"),
        ("guarantee proof", True, "guarantee's proof must be"),
        ("guarantee noise", None, "guarantee's noise must be"),
    ],
)
def test_damage_is_named(place: str, value: Any, message: str) -> None:
    content = json.loads(release(ps.IntegerBall(2, 5), [1, -1]).to_json())
    *path, last = place.split()
    parent = reduce(getitem, path, content)
    parent[last] = value
    if value is MISSING:
        del parent[last]
    with pytest.raises(ValueError, match=message):
        ps.Release.from_json(json.dumps(content))


# --- guarantees and diagnostics -------------------------------------------------------------------


def test_sentences() -> None:
    sentence = str(GUARANTEE)
    assert sentence.startswith("Changing one record of the data changes the probability of any published result")
    assert "e^1 = 2.719" in sentence  # rounded up: it says "at most"
    assert "except" not in sentence
    assert "NOT PROVED" not in sentence
    other = promise(1000.0, 1e-6, adjacency="add-remove")
    assert "Adding or removing one record" in str(other)
    assert "any set of published results by a factor of at most e^1000 = infinity, plus 1e-06" in str(other)


def test_every_caveat_is_said() -> None:
    words = {
        "PROVED IN REAL ARITHMETIC ONLY": {"proof": Proof.REAL_ARITHMETIC},
        "NOT PROVED": {"proof": Proof.NONE},
        "Seeded: for testing only": {"seeded": True},
        "An event of probability below 2^-100 is outside the proof": {"negligible": 2.0**-100},
    }
    assert GUARANTEE.without_exception
    for sentence, fact in words.items():
        stained = promise(1.0, **fact)
        assert sentence in str(stained)
        assert not stained.without_exception
        assert ps.Guarantee.from_dict(json.loads(json.dumps(stained.to_dict()))) == stained
        assert [said in str(stained) for said in words].count(True) == 1


def diagnostics(**values: Any) -> Diagnostics:
    return Diagnostics(seconds=0.5, quality={"training_accuracy": 0.75, "mistakes": 3}, values=values)


def test_diagnostics_say_first_that_they_are_not_private() -> None:
    text = diagnostics(objective=1.5, nodes=7).to_json()
    assert text.splitlines()[1].strip().startswith('"warning": "Curator only')
    values = {"seconds": 0.5, "training_accuracy": 0.75, "mistakes": 3, "objective": 1.5, "nodes": 7}
    assert json.loads(text) == {"warning": NOT_PRIVATE} | values


def test_an_oracle_cannot_hide_the_warning() -> None:
    content = json.loads(diagnostics(warning="publish freely", mistakes=0, status=np.int64(2)).to_json())
    assert content["warning"] == NOT_PRIVATE
    assert content["mistakes"] == 3
    assert content["status"] == "2"


def test_diagnostics_can_be_copied() -> None:
    original = diagnostics(nodes=7)
    assert copy.deepcopy(original) == original
    assert pickle.loads(pickle.dumps(original)).nodes == 7


STATED = json.loads((files("privsolve.releases") / "release.schema.json").read_text(encoding="utf-8"))


def check(text: str) -> None:
    jsonschema.Draft202012Validator(STATED).validate(json.loads(text))


@pytest.fixture(name="made", scope="module")
def releases() -> dict[str, ps.Release]:
    """One of each kind that people publish."""
    rng, frame = np.random.default_rng(0), patients(200)
    made: dict[str, ps.Release] = {}
    about = ps.About(owner="somebody", questions={"age": "How old?"})
    worded = ps.Schema(SCHEMA.columns, SCHEMA.label, about=about)
    card = ps.PrivateShortCard(1.0, schema=worded, max_features=2, random_state=1).fit(frame, frame["ill"])
    made["card"] = card.release_.with_evaluation(card.evaluate(frame, frame["ill"], 1.0, by="colour", random_state=1))
    full = ps.PrivateScorecard(1.0, schema=INDICATORS, max_weight=2, random_state=1)
    full.fit(frame, frame["ill"], sample_weight=rng.random(200))
    weighted = full.evaluate(frame, frame["ill"], 1.0, sample_weight=rng.random(200), random_state=1)
    made["weighted"] = full.release_.with_evaluation(weighted)
    tree = ps.PrivateTreeClassifier(1.0, depth=2, schema=INDICATORS, random_state=1)
    made["tree"] = tree.fit(frame, frame["ill"]).release_
    return made


def test_what_is_written_keeps_to_the_schema(made: dict[str, ps.Release]) -> None:
    jsonschema.Draft202012Validator.check_schema(STATED)
    for release in made.values():
        check(release.to_json())
        assert isinstance(release.model, Model)


@pytest.mark.parametrize(
    "label",
    [
        {"positive": ">=1.5", "missing_values": [-999], "decimal": ","},
        {"positive": "<-10"},
        {"positive": [">50"]},
        {"classes": ["a", "b", "c"]},
        {"low": 0, "high": 9.5},
    ],
)
def test_every_label_keeps_to_it(label: dict[str, Any]) -> None:
    schema = ps.Schema.from_dict({"label": {"column": "y", **label}, "columns": {"a": {"bins": [1]}}})
    of_schemas = jsonschema.Draft202012Validator({"$ref": "#/$defs/schema", "$defs": STATED["$defs"]})
    of_schemas.validate(schema.to_dict())
    assert not of_schemas.is_valid(schema.to_dict() | {"label": {"column": "y"}})
    assert not of_schemas.is_valid(schema.to_dict() | {"label": {"column": "y", "positive": ">50K"}})


def test_damage_is_seen(made: dict[str, ps.Release]) -> None:
    text = made["card"].to_json()
    for path, value in (
        (("format",), "privsolve-release-9"),
        (("more",), 1),
        (("guarantee", "adjacency"), "swap"),
        (("guarantee", "profile", "epsilon"), -1),
        (("model", "weights"), ["one"]),
        (("model", "extra"), 1),
        (("model", "schema", "about", "colour"), "red"),
        (("evaluation", "labels"), ["only one"]),
    ):
        content = json.loads(text)
        reduce(getitem, path[:-1], content)[path[-1]] = value
        with pytest.raises(jsonschema.ValidationError):
            check(json.dumps(content))
