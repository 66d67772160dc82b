"""A long card as SQL, Python, JavaScript and a table of predictions: each says the same of every record, with its gaps."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
import sqlglot
from typer.testing import CliRunner

import privsolve as ps
from long_cards import answers_of, long_release, long_schema, long_table
from privsolve.cards.rows import UNKNOWN
from privsolve.cards.scoring import with_predictions
from privsolve.cli import app
from privsolve.data import Bins, Categories, Label, Number, Schema
from privsolve.data.questions import answered
from privsolve.models.full_card import FullCard
from random_scorecards import GUARANTEE

NODE = shutil.which("node")
BANDS = "calm,20%,so so,60%,alarm"
Said = tuple[float, float, str, str]
SCHEMAS = {
    "adult": ps.datasets.adult_schema(),
    **{f"{columns} columns": long_schema(columns) for columns in (25, 60, 120)},
}


@pytest.fixture(params=SCHEMAS, name="case")
def case_fixture(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[ps.Release, pd.DataFrame, Path]:
    """A release, a table of texts, and the table as a CSV file."""
    schema = SCHEMAS[request.param]
    table = adult_texts() if request.param == "adult" else long_table(schema)
    file = tmp_path / "data.csv"
    table.to_csv(file, index=False)
    return long_release(schema).with_bands(BANDS), table, file


def adult_texts() -> pd.DataFrame:
    table = ps.datasets.adult().head(400).astype(object).astype(str)
    gaps = np.random.default_rng(0).random(table.shape) < 0.1
    return table.mask(gaps, "")


def check(found: list[Said], release: ps.Release, table: pd.DataFrame) -> None:
    """Against the weights themselves: a band begins above its risk."""
    model: Any = release.model
    risks = model.risks(table)
    bands = [("calm", "so so", "alarm")[int(risk > 0.2) + int(risk > 0.6)] for risk in risks]
    assert [(score, said, band) for score, _, said, band in found] == list(
        zip(model.totals(table), model.predict(table), bands, strict=True)
    )
    assert [risk for _, risk, *_ in found] == pytest.approx(risks)
    assert len(set(model.totals(table))) > 20
    assert len(set(bands)) > 1


def test_duckdb_on_the_csv_file(case: tuple[ps.Release, pd.DataFrame, Path]) -> None:
    release, table, file = case
    query = release.card().to_sql()
    model: Any = release.model
    assert query.count("CASE\n") == len(model.tally.entries)
    for reading in ("all_varchar = true", "auto_detect = true"):
        connection = duckdb.connect()
        connection.sql(f"CREATE TABLE data AS SELECT * FROM read_csv('{file}', header = true, delim = ',', {reading})")
        found = connection.sql(f"SELECT score, risk, prediction, band FROM ({query})").fetchall()
        check(found, release, table)


def test_sqlite_on_the_csv_file(case: tuple[ps.Release, pd.DataFrame, Path]) -> None:
    release, table, _ = case
    connection = sqlite3.connect(":memory:")
    table.to_sql("data", connection, index=False)
    query = release.card().to_sql("sqlite")
    check(connection.execute(f"SELECT score, risk, prediction, band FROM ({query})").fetchall(), release, table)


def test_python_without_packages(case: tuple[ps.Release, pd.DataFrame, Path]) -> None:
    release, table, _ = case
    module: dict[str, Any] = {}
    exec(release.card().to_python(), module)
    found = [tuple(module["score"](record).values()) for record in table.to_dict("records")]
    check(found, release, table)
    with pytest.raises(KeyError):
        module["score"]({})


@pytest.mark.skipif(NODE is None, reason="Node.js is not installed: apt install nodejs")
def test_javascript_without_packages(case: tuple[ps.Release, pd.DataFrame, Path], tmp_path: Path) -> None:
    release, table, _ = case
    (tmp_path / "score.js").write_text(release.card().to_javascript(), encoding="utf-8")
    (tmp_path / "records.json").write_text(table.to_json(orient="records"), encoding="utf-8")
    use = "const {score} = require('./score.js'); console.log(JSON.stringify(require('./records.json').map(score)))"
    assert NODE is not None
    done = subprocess.run([NODE, "-e", use], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60)
    check([tuple(line.values()) for line in json.loads(done.stdout)], release, table)


def test_numbers_with_steps_and_values_of_their_own_types(tmp_path: Path) -> None:
    schema = Schema(
        [Number("dose", -1, 8, 0.5, missing=2), Bins("age", [18, 65], whole=True), Categories("old", [True])],
        Label("y", True, False),
    )
    weights = [2, 3, -4, 5, -1]
    model = FullCard(np.array(weights), schema.features, schema.scales, True, schema, log_odds=0.3, cut=1)
    release = ps.Release(model, GUARANTEE, {"objective": {}}).with_bands(BANDS)
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"dose": rng.uniform(-3, 10, 200).round(2), "age": rng.integers(10, 80, 200).astype(float)})
    table["old"] = pd.Series(rng.random(200) < 0.5).astype("boolean")
    table = table.mask(rng.random(table.shape) < 0.1)
    connection = duckdb.connect()
    connection.register("data", table)
    found = connection.sql(f"SELECT score, risk, prediction, band FROM ({release.card().to_sql()})").fetchall()
    check(found, release, table)
    lite = sqlite3.connect(":memory:")
    table.to_sql("data", lite, index=False)
    rows = lite.execute(f"SELECT score, risk, prediction, band FROM ({release.card().to_sql('sqlite')})").fetchall()
    check([(score, risk, bool(said), band) for score, risk, said, band in rows], release, table)  # type: ignore[misc]
    module: dict[str, Any] = {}
    exec(release.card().to_python(), module)
    records = table.astype(object).where(table.notna(), None).to_dict("records")
    check([tuple(module["score"](record).values()) for record in records], release, table)
    table.to_parquet(tmp_path / "t.parquet")
    in_engine = with_predictions(ps.open_table(str(tmp_path / "t.parquet")), model, reasons=2).to_pyarrow().to_pandas()
    said = ["reason_1", "reason_2"]
    frame = release.scored(table, reasons=2)
    assert in_engine[said].fillna("").equals(frame[said].fillna(""))
    assert {"dose: not known", "dose: 2.5", "dose: 8"} <= set(frame["reason_1"]) | set(frame["reason_2"])


def said_of(release: ps.Release, table: pd.DataFrame) -> list[list[str]]:
    """The reasons of the card for records of texts."""
    card: Any = release.card()
    answers = [answers_of(release, record) for record in table.to_dict("records")]
    return [[answered(line.question, line.answer) for line in card.reasons(given, most=3)] for given in answers]


def test_predictions_with_bands_and_reasons(case: tuple[ps.Release, pd.DataFrame, Path], tmp_path: Path) -> None:
    release, table, file = case
    (tmp_path / "release.json").write_text(release.with_bands(None).to_json(), encoding="utf-8")
    options = ["--release", str(tmp_path / "release.json"), "--out", str(tmp_path / "scored.parquet"), "--bands", BANDS]
    done = CliRunner().invoke(app, ["predict", str(file), *options, "--reasons", "3", "--max-missing", "1"])
    assert done.exit_code == 0, done.output
    written = pd.read_parquet(tmp_path / "scored.parquet")
    names = ["score", "risk", "prediction", "band", "reason_1", "reason_2", "reason_3"]
    expected = said_of(release, table.head(120))
    assert any(UNKNOWN in text for row in expected for text in row)
    for found in (written, release.scored(table, reasons=3)):
        assert list(found)[-7:] == names
        check(list(found[names[:4]].itertuples(index=False, name=None)), release, table)
        rows = found[names[4:]].head(120).itertuples(index=False, name=None)
        assert [[text for text in row if isinstance(text, str) and text] for row in rows] == expected


@pytest.mark.parametrize("dialect", ["postgres", "tsql", "mysql", "bigquery", "snowflake", "spark"])
def test_other_dialects_are_as_long_as_the_card(dialect: str) -> None:
    release = long_release(SCHEMAS["25 columns"])
    query = release.card().to_sql(dialect)
    assert len(sqlglot.parse(query, read=dialect)) == 1
    assert len(query.splitlines()) < 20 * 25
    with pytest.raises(ValueError, match="dialect 'klingon' is not known"):
        release.card().to_sql("klingon")


def test_the_query_keeps_the_columns_of_the_table() -> None:
    release = long_release(SCHEMAS["adult"])
    connection = duckdb.connect()
    connection.register("data", adult_texts().assign(person=range(400)))
    found = connection.sql(release.card().to_sql()).df()
    assert sorted(found["person"]) == list(range(400))
    assert list(found)[-3:] == ["score", "risk", "prediction"]


def test_the_command_writes_programs(tmp_path: Path) -> None:
    release = long_release(SCHEMAS["adult"])
    file = tmp_path / "release.json"
    file.write_text(release.to_json(), encoding="utf-8")
    for name, text in (
        ("python", release.card().to_python()),
        ("javascript", release.card().to_javascript()),
    ):
        assert CliRunner().invoke(app, ["show", str(file), "--format", name]).stdout == text
