"""Bad input of every kind ends in a documented error: never in another exception, and never in a hang."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import privsolve as ps
from fuzzing import ANYTHING, FRAME, NESTED, NUMBERS, PLAIN, SCHEMA, TEXTS, Share, check_share, fuzz, only
from privsolve.cli import app
from privsolve.data import Schema
from privsolve.data.private import private_draft
from privsolve.data.tables import open_table
from privsolve.domains import domain_from_dict
from privsolve.losses import loss_from_dict

REFUSED_MOSTLY = 0.02
"""The least share of changed files that must be read: hardly any change of a strict format is a valid file."""


def at_every_depth(levels: int, list_like: bool) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value] if list_like else {"columns": value}
    return value


@st.composite
def mutated(draw: st.DrawFn, original: Any, values: st.SearchStrategy[Any] = NESTED) -> Any:
    """A nested value with one place, or up to three, dropped, replaced, filled from another place or added to."""
    found = copy.deepcopy(original)
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        places = list(_places(found))
        if not places:
            break
        parent, key = draw(st.sampled_from(places))
        action = draw(st.sampled_from(["replace", "replace", "borrow", "drop", "insert", "repeat"]))
        if action == "replace":
            parent[key] = draw(values)
        elif action == "borrow":
            other, there = draw(st.sampled_from(places))
            parent[key] = copy.deepcopy(other[there])
        elif action == "drop":
            del parent[key]
        elif action == "insert" and isinstance(parent, dict):
            parent[draw(TEXTS)] = draw(values)
        elif isinstance(parent, list):
            parent.insert(key, draw(values) if action == "insert" else copy.deepcopy(parent[key]))
    return found


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


# --- schemas ----------------------------------------------------------------------------------------------------------


def test_schema_descriptions() -> None:
    def use(description: Any) -> None:
        schema = Schema.from_dict(description)
        assert Schema.from_toml(schema.to_toml()).to_dict() == schema.to_dict()
        schema.questions()
        schema.table(FRAME)

    check_share(350, st.one_of(mutated(SCHEMA.to_dict(), ANYTHING), ANYTHING), use, least=REFUSED_MOSTLY)


@fuzz(200)
@given(st.data())
def test_schema_texts_and_files(tmp_path: Path, data: st.DataObject) -> None:
    text = SCHEMA.to_toml()
    at = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 12))
    odd = st.sampled_from(["[", "]]", "\n[label]\n", "= 1e999", "9" * 5000, "\x00", '"""'])
    piece = data.draw(st.one_of(st.text(max_size=8), odd))
    changed = text[:at] + piece + text[at + length :]
    with only():
        Schema.from_toml(changed)
    file = tmp_path / "schema.toml"
    file.write_bytes(changed.encode("utf-8", "surrogatepass"))
    with only():
        Schema.load(file)


@pytest.mark.parametrize("levels", [10, 500, 20_000])
def test_deeply_nested_descriptions(levels: int, tmp_path: Path) -> None:
    for text in ("[" * levels, "x = " + "[" * levels + "]" * levels, "x = " + "{a = " * levels + "1" + "}" * levels):
        with only():
            Schema.from_toml(text)
    for list_like in (True, False):
        value = at_every_depth(levels, list_like)
        for read in (Schema.from_dict, domain_from_dict, loss_from_dict, ps.Guarantee.from_dict):
            with only():
                read(value)
    with only():
        ps.Release.from_json('{"format":' * levels + "[" * levels)


CELLS = {
    "colour": st.sampled_from(["red", "rouge", "blue", "green", None]),
    "age": st.one_of(st.integers(0, 120), st.none()),
    "hours": st.one_of(st.integers(0, 99), st.floats(0, 99)),
    "ill": st.sampled_from(["yes", "no"]),
}


@st.composite
def contents(draw: st.DrawFn) -> dict[str, list[Any]]:
    """Columns that fit the schema, but for one: other values, another name, missing, or one too many."""
    rows = draw(st.integers(2, 4))
    content = {name: draw(st.lists(cell, min_size=rows, max_size=rows)) for name, cell in CELLS.items()}
    name = draw(st.sampled_from(sorted(content)))
    change = draw(st.sampled_from(["none", "reorder", "extra", "value", "values", "name", "drop"]))
    other = draw(st.sampled_from([PLAIN, TEXTS, NUMBERS, ANYTHING, st.booleans(), st.datetimes()]))
    if change == "reorder":
        content = dict(reversed(content.items()))
    elif change == "extra":
        content["extra"] = draw(st.lists(other, min_size=rows, max_size=rows))
    elif change == "value":
        content[name][0] = draw(other)
    elif change == "values":
        content[name] = draw(st.lists(other, min_size=rows, max_size=rows))
    elif change != "none":
        moved = content.pop(name)
        content.update({draw(TEXTS): moved} if change == "name" else {})
    return content


def made(content: dict[str, list[Any]], kind: str) -> Any:
    try:
        if kind in ("pandas", "categorical"):
            frame = pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in content.items()})
            return frame.astype("category") if kind == "categorical" else frame
        return {"polars": pl.DataFrame, "arrow": pa.table, "dict": dict}[kind](content)
    except Exception:  # not a table at all: the library that makes it says so
        return list(content)


def test_frames() -> None:
    share = Share()
    with only():  # it may have to be compiled, which is not what the deadline is for
        ps.PrivateShortCard(schema=SCHEMA, max_features=1).fit(FRAME.drop(columns="ill"), FRAME["ill"])

    @fuzz(150, shrink=False)
    @given(contents(), st.sampled_from(["pandas", "polars", "arrow", "categorical", "dict"]))
    def run(content: dict[str, list[Any]], kind: str) -> None:
        frame = made(content, kind)
        for use in (SCHEMA.encode, SCHEMA.table, lambda data: private_draft(data, None, 1.0, 1e-6)):
            with share.only():
                use(frame)
        without = made({name: column for name, column in content.items() if name != "ill"}, kind)
        for schema in (SCHEMA, None):
            with share.only():
                ps.PrivateShortCard(schema=schema, max_features=1).fit(without, content.get("ill"))

    run()
    share.check(0.3)


# --- releases and guarantees -------------------------------------------------------------------------------------------


RELEASE = json.loads(
    ps.PrivateShortCard(schema=SCHEMA, max_features=2, random_state=0)
    .fit(FRAME.drop(columns="ill"), FRAME.ill)
    .release_.to_json()
)


GUARANTEE = ps.Guarantee.from_dict(RELEASE["guarantee"])


def bare(domain: ps.Domain) -> Any:
    """The file of a release without a schema."""
    problem = ps.Problem(ps.PatternTable([[1, 2]], [1], [0], names=["age", "größe"], scales=[1, 99]), domain)
    guarantee = ps.Guarantee.from_dict(RELEASE["guarantee"])
    return json.loads(ps.Release(problem.model(np.array([1, -1])), guarantee, problem.setting).to_json())


def test_release_files() -> None:
    """Whatever is changed, the answer is a ValueError or a release that is whole: it can be written, read and told."""

    def use(content: Any) -> None:
        try:
            release = ps.Release.from_json(json.dumps(content))
        except TypeError as error:
            raise AssertionError("a damaged file is a ValueError") from error
        assert ps.Release.from_json(release.to_json()).to_json() == release.to_json()
        assert release.guarantee.sentence()
        if "schema" not in content["model"]:
            assert json.loads(release.to_json()) == content
        assert release.domain is None or release.domain.contains(release.weights)
        card = release.card()
        for write in (card.to_text, card.to_markdown, card.to_html):
            assert write()

    bares = [bare(domain) for domain in (ps.IntegerBall(2, 5), ps.SignCube(2), ps.FiniteSet([[1, -1], [0, 3]]))]
    originals = st.sampled_from([RELEASE, *bares])
    check_share(700, originals.flatmap(mutated), use, least=REFUSED_MOSTLY)


def test_guarantees() -> None:
    def use(values: Any) -> None:
        guarantee = ps.Guarantee.from_dict(values)
        assert guarantee.sentence()
        guarantee.under("replace")
        ps.Accountant(1.0, 1e-6).spend(guarantee)

    check_share(350, mutated(RELEASE["guarantee"], ANYTHING), use, least=REFUSED_MOSTLY)


# --- files and the command line ----------------------------------------------------------------------------------------


JUNK = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.lists(st.sampled_from(["colour", "age", "ill", ",", ";", '"', "\n", "yes", "20", "\x00", "é"]), max_size=25).map(
        lambda parts: "".join(parts).encode()
    ),
    st.sampled_from(
        [
            FRAME.to_csv(index=False).encode(),
            b"PAR1" + b"\x00" * 20 + b"PAR1",
            b"\xff\xfe",
            b"colour,age,hours,ill\n1,2\n",
            b"x" * 200_000,
            gzip.compress(FRAME.to_csv(index=False).encode())[:25],
        ]
    ),
)
ENDINGS = (".csv", ".tsv", ".csv.gz", ".parquet", ".duckdb", ".txt", "")


@pytest.mark.parametrize("ending", ENDINGS)
@fuzz(15, shrink=False)
@given(content=JUNK, table=st.sampled_from(["", "::t", "::"]))
def test_junk_tables(tmp_path_factory: pytest.TempPathFactory, content: bytes, ending: str, table: str) -> None:
    path = tmp_path_factory.mktemp("junk") / f"data{ending}"
    path.write_bytes(content)
    for source in (f"{path}{table}", str(path.with_name("*"))):
        with only(OSError):
            SCHEMA.table(open_table(source))


COMMANDS = (
    "fit {data} --schema {good} --epsilon 1 --max-features 1 --out {out}",
    "fit {table} --schema {junk} --epsilon 1 --out {out}",
    "fit {table} --schema {good} --epsilon 1 --ledger {junk} --out {out}",
    "fit {table} --schema {good} --epsilon {text} --out {out}",
    "predict {data} --release {junk} --out {out}.csv",
    "show {junk}",
    "plan --epsilon 1 --records 100 --schema {junk}",
    "schema check {junk} {data}",
    "schema check {good} {data}",
    "schema draft {data} --label ill --out {out}",
    "budget show {junk}",
    "budget history {junk}",
    "budget init {out} --epsilon {text}",
)


@pytest.mark.parametrize("command", COMMANDS)
@fuzz(8, shrink=False)
@given(
    junk=JUNK, data=JUNK, ending=st.sampled_from(ENDINGS), text=st.sampled_from(["nan", "inf", "-1", "1e999", "x", ""])
)
def test_commands_on_junk(
    tmp_path_factory: pytest.TempPathFactory, command: str, junk: bytes, data: bytes, ending: str, text: str
) -> None:
    folder = tmp_path_factory.mktemp("junk")
    places = {name: folder / name for name in ("junk", "good", "out")}
    places["junk"].write_bytes(junk)
    SCHEMA.save(places["good"])
    places |= {"data": folder / f"data{ending}", "table": folder / "table.csv"}
    places["data"].write_bytes(data)
    FRAME.to_csv(places["table"], index=False)
    result = CliRunner().invoke(app, [word.format(**places, text=text) for word in command.split()])
    if result.exit_code == 0:
        return
    assert isinstance(result.exception, SystemExit), command
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    lines = [line for line in result.stderr.splitlines() if line.startswith("error:")]
    assert len(lines) == 1 or "Usage:" in result.stderr, result.stderr
