"""The JSON schema of release files: what privsolve writes keeps to it, and damage does not."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privsolve as ps
from privsolve.models.base import Model
from small_tables import INDICATORS, SCHEMA, patients

jsonschema = pytest.importorskip("jsonschema")

STATED = json.loads((files("privsolve.releases") / "release.schema.json").read_text(encoding="utf-8"))
OLD = Path(__file__).parents[1] / "data" / "v0.1.0"


def check(text: str) -> None:
    jsonschema.Draft202012Validator(STATED).validate(json.loads(text))


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
    made["tree"] = (
        ps.PrivateTreeClassifier(1.0, depth=2, schema=INDICATORS, random_state=1).fit(frame, frame["ill"]).release_
    )
    return made


@pytest.fixture(name="made", scope="module")
def _made() -> dict[str, ps.Release]:
    return releases()


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(STATED)


def test_what_is_written_keeps_to_the_schema(made: dict[str, ps.Release]) -> None:
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


@pytest.mark.parametrize("path", sorted(OLD.glob("*.json")), ids=lambda path: path.stem)
def test_old_files_that_are_written_anew_keep_to_it(path: Path) -> None:
    check(ps.Release.from_json(path.read_text()).to_json())


def changed(text: str, *path: str, value: Any) -> str:
    content = json.loads(text)
    inner = content
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return json.dumps(content)


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
        with pytest.raises(jsonschema.ValidationError):
            check(changed(text, *path, value=value))
