"""Releases: round trip, nothing data-dependent beside the weights, and damaged files refused in words."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privsolve as ps
from privsolve.domains import Domain
from privsolve.models.linear import LinearRule
from privsolve.privacy.guarantee import Proof
from privsolve.privacy.profiles import Pure
from privsolve.releases import NOT_PRIVATE, Diagnostics
from promises import promise

NAMES = ["age", "größe"]
GUARANTEE = promise(1.0)


def release(domain: Domain, weights: list[int], table: ps.PatternTable | None = None) -> ps.Release:
    table = table or ps.PatternTable([[1, 2]], [1], [0], names=NAMES, scales=[1, 99])
    problem = ps.Problem(table, domain, ps.ZeroOneLoss(2, 3))
    return ps.Release(problem.model(np.array(weights)), GUARANTEE, problem.setting)


DOMAINS = [
    ps.IntegerBall(2, 5),
    ps.SignCube(2),
    ps.TernaryCube(2),
    ps.SparseSigns(2, 2),
    ps.FiniteSet([[1, -1], [0, 3]]),
]


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
    for seed in range(40):
        runs = [
            ps.opdisc(
                ps.Problem(table, ps.IntegerBall(2, 4)),
                0.5,
                adjacency=adjacency,
                noise=noise,
                delta=delta,
                oracle="enumeration",
                random_state=seed,
            )
            for table in tables
        ]
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


OLD = Path(__file__).parents[1] / "data" / "v0.1.0"


@pytest.mark.parametrize("path", sorted(OLD.glob("*.json")), ids=lambda path: path.stem)
def test_files_of_the_first_version_are_read(path: Path) -> None:
    said = json.loads((OLD / "said.txt").read_text())[path.stem]
    read = ps.Release.from_json(path.read_text())
    assert read.weights.tolist() == said["weights"]
    assert read.version == "0.1.0"
    again = ps.Release.from_json(read.to_json())
    assert again.to_json() == read.to_json()
    assert again.domain == read.domain
    assert json.loads(path.read_text())["domain"] == again.setting["domain"]


def test_a_card_of_the_first_version_reads_the_same() -> None:
    read = ps.Release.from_json((OLD / "scorecard.json").read_text())
    assert read.card().to_text() == (OLD / "scorecard.txt").read_text()
    assert ps.Schema.load(OLD / "adult_schema.toml") == ps.datasets.adult_schema()


def test_damage_in_old_files_is_named() -> None:
    content = json.loads((OLD / "scorecard.json").read_text())
    with pytest.raises(ValueError, match="unknown fields: extra"):
        ps.Release.from_json(json.dumps(content | {"extra": 1}))
    with pytest.raises(ValueError, match="missing or unknown fields: loss"):
        ps.Release.from_json(json.dumps({name: content[name] for name in content if name != "loss"}))
    for field in ("weights", "features", "scales", "domain", "loss", "guarantee", "schema", "version"):
        with pytest.raises(ValueError, match="must"):
            ps.Release.from_json(json.dumps(content | {field: 7}))


# --- damaged files --------------------------------------------------------------------------------

JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from([2**64, -1, 0, 1e400]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to every part of a JSON value, itself included."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in inner for place in places(part, (*path, key)))]


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_damage_is_refused_or_harmless(data: st.DataObject) -> None:
    """Whatever is changed, the answer is a ValueError or a release that is whole: it can be written, read and told."""
    content = json.loads(release(data.draw(st.sampled_from(DOMAINS)), [1, -1]).to_json())
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(places(content)[1:]))
        parent, key = at(content, path[:-1]), path[-1]
        action = data.draw(st.sampled_from(["replace", "delete", "add"]))
        if action == "replace":
            parent[key] = data.draw(JUNK)
        elif action == "delete":
            del parent[key]
        elif isinstance(parent, dict):
            parent[data.draw(st.text(max_size=4))] = data.draw(JUNK)
        else:
            parent.append(data.draw(JUNK))
    try:
        read = ps.Release.from_json(json.dumps(content))
    except ValueError:
        return
    assert json.loads(read.to_json()) == content
    assert read.guarantee.sentence()
    assert read.domain is not None
    assert read.domain.contains(read.weights)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=20) | st.binary(max_size=20))
def test_any_text_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError, match="not a release file"):
        ps.Release.from_json(text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["", "[" * 100_000, "9" * 5000, "null", "[]", "{}", '{"format": "other"}', None, 5, b"\xff"]
)
def test_other_files_are_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="not a release file"):
        ps.Release.from_json(text)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("model",), 3, "model must be an object whose kind is one of"),
        (
            ("model", "kind"),
            "oracle",
            "model must be an object whose kind is one of .*'linear-rule'.*, got kind 'oracle'",
        ),
        (("model", "weights"), [3, 0], "weights are not a member"),
        (("model", "weights"), [1.0, -1.0], "weights must be a list of whole numbers"),
        (("model", "weights"), [[1], [1, 2]], "weights must be a list of whole numbers"),
        (("model", "weights"), [2**64, 0], "weights must be a list of whole numbers"),
        (("model", "weights"), {}, "weights must be a list of whole numbers"),
        (("model", "features"), "ab", "features must be a list of names"),
        (("model", "features"), ["a"], "names must be 2 different"),
        (("model", "features"), ["a", "a"], "names must be 2 different"),
        (("model", "features"), ["a", 1], "features must be a list of names"),
        (("model", "scales"), [1, 0], "scales must be 2 positive"),
        (("model", "scales"), None, "scales must be a list"),
        (("model", "intercept"), 1, "intercept must be true or false"),
        (("model", "extra"), 1, "model has missing or unknown fields: extra"),
        (("setting",), 3, "setting must be an object"),
        (("setting", "epsilon"), 3, "setting has missing or unknown fields: epsilon"),
        (("setting", "domain"), 3, "domain must be described"),
        (("setting", "domain", "kind"), "ball", "domain kind 'ball' is unknown"),
        (("setting", "domain", "dim"), 3, "not a member"),
        (("setting", "loss"), 3, "loss must be an object whose kind is one of"),
        (("setting", "loss", "kind"), "hinge", "loss must be an object whose kind is one of .*, got kind 'hinge'"),
        (("setting", "loss", "false_positive"), -1, "false_positive must be"),
        (("version",), 3, "version must be a text"),
        (("extra",), 3, "missing or unknown fields: extra"),
        (("guarantee",), [], "guarantee must be a dictionary"),
        (("guarantee", "note"), "", "guarantee has missing or unknown fields: note"),
        (("guarantee", "profile", "epsilon"), -1, "guarantee's epsilon must be finite and positive"),
        (("guarantee", "profile", "epsilon"), float("nan"), "guarantee's epsilon must be finite and positive"),
        (("guarantee", "profile", "epsilon"), "1", "guarantee's epsilon must be"),
        (("guarantee", "profile", "delta"), 1.0, "guarantee's delta must be"),
        (("guarantee", "profile", "kind"), "secret", "guarantee's profile must be an object whose kind is one of"),
        (("guarantee", "profile", "kind"), [], "guarantee's profile must be an object whose kind is one of"),
        (("guarantee", "profile", "kind"), "bounded-range", "profile has missing or unknown fields: concentrated"),
        (("guarantee", "profile"), "pure", "guarantee's profile must be an object"),
        (("guarantee", "negligible"), 0.5, "guarantee's negligible must be"),
        (("guarantee", "seeded"), 1, "guarantee's seeded must be"),
        (("guarantee", "adjacency"), "swap", "guarantee's adjacency must be"),
        (("guarantee", "adjacency"), [], "guarantee's adjacency must be"),
        (("guarantee", "proof"), True, "guarantee's proof must be"),
        (("guarantee", "noise"), None, "guarantee's noise must be"),
        (("guarantee", "profile", "concentrated"), -0.5, "guarantee's zcdp must be"),
    ],
)
def test_damage_is_named(path: tuple[str, ...], value: Any, message: str) -> None:
    content = json.loads(release(ps.IntegerBall(2, 5), [1, -1]).to_json())
    at(content, path[:-1])[path[-1]] = value
    with pytest.raises(ValueError, match=message):
        ps.Release.from_json(json.dumps(content))


@pytest.mark.parametrize("field", ["version", "model", "setting", "guarantee"])
def test_missing_fields_are_named(field: str) -> None:
    content = json.loads(release(ps.IntegerBall(2, 5), [1, -1]).to_json())
    del content[field]
    with pytest.raises(ValueError, match=f"missing or unknown fields: {field}"):
        ps.Release.from_json(json.dumps(content))


# --- guarantees and diagnostics -------------------------------------------------------------------


def test_numpy_numbers_become_plain_ones() -> None:
    profile = Pure(np.float32(0.5), np.float32(0.125))
    content = json.loads(json.dumps(replace(GUARANTEE, profile=profile).to_dict()))
    assert content["profile"] == {"kind": "pure", "epsilon": 0.5, "delta": 0.0, "concentrated": 0.125}


def test_sentences() -> None:
    sentence = str(GUARANTEE)
    assert sentence.startswith("Changing one record of the data changes the probability of any published result")
    assert "e^1 = 2.719" in sentence  # rounded up: it says "at most"
    assert "except" not in sentence
    assert "NOT PROVED" not in sentence
    other = promise(1000.0, 1e-6, adjacency="add-remove")
    assert "Adding or removing one record" in str(other)
    assert (
        "the probability of any set of published results by a factor of at most e^1000 = infinity, plus 1e-06"
        in str(other)
    )


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
    assert next(iter(json.loads(text))) == "warning"
    assert text.splitlines()[1].strip().startswith('"warning": "Curator only')
    assert json.loads(text) == {
        "warning": NOT_PRIVATE,
        "seconds": 0.5,
        "training_accuracy": 0.75,
        "mistakes": 3,
        "objective": 1.5,
        "nodes": 7,
    }


def test_an_oracle_cannot_hide_the_warning() -> None:
    content = json.loads(diagnostics(warning="publish freely", mistakes=0, status=np.int64(2)).to_json())
    assert content["warning"] == NOT_PRIVATE
    assert content["mistakes"] == 3
    assert content["status"] == "2"


def test_diagnostics_can_be_copied() -> None:
    original = diagnostics(nodes=7)
    assert copy.deepcopy(original) == original
    assert pickle.loads(pickle.dumps(original)).nodes == 7
