"""A long card as SQL, Python, JavaScript and a table of predictions: each says the same of every record, with its gaps."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from dataclasses import dataclass
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
from privsolve.data import Bins, Categories, Dates, Label, Number, Schema
from privsolve.data.questions import answered
from privsolve.models.full_card import FullCard
from random_scorecards import GUARANTEE

NODE = shutil.which("node")
BANDS = "calm,20%,so so,60%,alarm"
Said = tuple[float, float, str, str]
SCHEMAS = {
    "adult": ps.datasets.adult_schema(),
    "60 columns": long_schema(60),  # every kind of column with every option
}


@dataclass(frozen=True)
class Case:
    """A release, a table of texts, the table as a CSV file, and what is to be said of it."""

    release: ps.Release
    table: pd.DataFrame
    file: Path
    expected: list[Said]


@pytest.fixture(params=SCHEMAS, scope="module", name="case")
def case_fixture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    schema = SCHEMAS[request.param]
    table = long_table(schema, 200)
    if request.param == "adult":
        people = ps.datasets.adult().head(400).astype(object).astype(str)
        table = people.mask(np.random.default_rng(0).random(people.shape) < 0.1, "")
    file = tmp_path_factory.mktemp("programs") / "data.csv"
    table.to_csv(file, index=False)
    release = long_release(schema).with_bands(BANDS)
    return Case(release, table, file, expected_of(release, table))


def expected_of(release: ps.Release, table: pd.DataFrame) -> list[Said]:
    """By the weights themselves: a band begins above its risk."""
    model: Any = release.model
    totals, risks = model.totals(table), model.risks(table)
    bands = [("calm", "so so", "alarm")[int(risk > 0.2) + int(risk > 0.6)] for risk in risks]
    assert len(set(totals)) > 20
    assert len(set(bands)) > 1
    return list(zip(totals, risks, model.predict(table), bands, strict=True))


def check(found: list[Said], expected: list[Said]) -> None:
    assert [risk for _, risk, *_ in found] == pytest.approx([risk for _, risk, *_ in expected])
    assert [(score, *rest) for score, _, *rest in found] == [(score, *rest) for score, _, *rest in expected]


def test_duckdb_on_the_csv_file(case: Case) -> None:
    query = case.release.card().to_sql()
    model: Any = case.release.model
    assert query.count("CASE\n") == len(model.tally.entries)
    for reading in ("all_varchar = true", "auto_detect = true"):
        connection = duckdb.connect()
        connection.sql(
            f"CREATE TABLE data AS SELECT * FROM read_csv('{case.file}', header = true, delim = ',', {reading})"
        )
        found = connection.sql(query).df()
        assert list(found)[:-4] == list(case.table)
        check(list(found[list(found)[-4:]].itertuples(index=False, name=None)), case.expected)


def test_sqlite_on_the_csv_file(case: Case) -> None:
    connection = sqlite3.connect(":memory:")
    case.table.to_sql("data", connection, index=False)
    query = case.release.card().to_sql("sqlite")
    check(connection.execute(f"SELECT score, risk, prediction, band FROM ({query})").fetchall(), case.expected)


def test_python_without_packages(case: Case) -> None:
    module: dict[str, Any] = {}
    exec(case.release.card().to_python(), module)
    check([tuple(module["score"](record).values()) for record in case.table.to_dict("records")], case.expected)
    with pytest.raises(KeyError):
        module["score"]({})


@pytest.mark.skipif(NODE is None, reason="Node.js is not installed: apt install nodejs")
def test_javascript_without_packages(case: Case, tmp_path: Path) -> None:
    (tmp_path / "score.js").write_text(case.release.card().to_javascript(), encoding="utf-8")
    (tmp_path / "records.json").write_text(case.table.to_json(orient="records"), encoding="utf-8")
    use = "const {score} = require('./score.js'); console.log(JSON.stringify(require('./records.json').map(score)))"
    assert NODE is not None
    done = subprocess.run([NODE, "-e", use], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60)
    check([tuple(line.values()) for line in json.loads(done.stdout)], case.expected)


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
    expected = expected_of(release, table)
    check(found, expected)
    lite = sqlite3.connect(":memory:")
    table.to_sql("data", lite, index=False)
    rows = lite.execute(f"SELECT score, risk, prediction, band FROM ({release.card().to_sql('sqlite')})").fetchall()
    check([(score, risk, bool(said), band) for score, risk, said, band in rows], expected)
    module: dict[str, Any] = {}
    exec(release.card().to_python(), module)
    records = table.astype(object).where(table.notna(), None).to_dict("records")
    check([tuple(module["score"](record).values()) for record in records], expected)
    table.to_parquet(tmp_path / "t.parquet")
    in_engine = with_predictions(ps.open_table(str(tmp_path / "t.parquet")), model, reasons=2).to_pyarrow().to_pandas()
    said = ["reason_1", "reason_2"]
    frame = release.scored(table, reasons=2)
    assert in_engine[said].fillna("").equals(frame[said].fillna(""))
    assert {"dose: not known", "dose: 2.5", "dose: 8"} <= set(frame["reason_1"]) | set(frame["reason_2"])


def test_predictions_with_bands_and_reasons(case: Case, tmp_path: Path) -> None:
    release, table = case.release, case.table
    (tmp_path / "release.json").write_text(release.with_bands(None).to_json(), encoding="utf-8")
    card: Any = release.card()
    reasons = [card.reasons(answers, most=3) for answers in answers_of(release, table.head(60))]
    expected = [[answered(line.question, line.answer) for line in lines] for lines in reasons]
    options = ["--release", str(tmp_path / "release.json"), "--out", str(tmp_path / "scored.parquet"), "--bands", BANDS]
    done = CliRunner().invoke(app, ["predict", str(case.file), *options, "--reasons", "3", "--max-missing", "1"])
    assert done.exit_code == 0, done.output
    written = pd.read_parquet(tmp_path / "scored.parquet")
    names = ["score", "risk", "prediction", "band", "reason_1", "reason_2", "reason_3"]
    assert any(UNKNOWN in text for row in expected for text in row)
    for found in (written, release.scored(table, reasons=3)):
        assert list(found)[-7:] == names
        check(list(found[names[:4]].itertuples(index=False, name=None)), case.expected)
        rows = found[names[4:]].head(60).itertuples(index=False, name=None)
        assert [[text for text in row if isinstance(text, str) and text] for row in rows] == expected


@pytest.mark.parametrize("dialect", ["postgres", "tsql", "mysql", "bigquery", "snowflake", "spark"])
def test_other_dialects_are_as_long_as_the_card(dialect: str) -> None:
    schema = long_schema(25)
    schema = Schema([c for c in schema.columns if not isinstance(c, Dates) or c.format == "YYYY-MM-DD"], schema.label)
    release = long_release(schema)
    query = release.card().to_sql(dialect)
    assert len(sqlglot.parse(query, read=dialect)) == 1
    assert len(query.splitlines()) < 20 * 25
    with pytest.raises(ValueError, match="dialect 'klingon' is not known"):
        release.card().to_sql("klingon")


def small_card(*columns: Any) -> tuple[Schema, Any]:
    schema = Schema(columns, Label("y", True, False))
    model = FullCard(np.arange(1, schema.dim + 1), schema.features, schema.scales, True, schema, log_odds=0.3, cut=1)
    return schema, ps.Release(model, GUARANTEE, {"objective": {}})


def test_yes_and_no_that_duckdb_has_taken_for_booleans(tmp_path: Path) -> None:
    _, release = small_card(Categories("alone", ["no", "yes"]), Categories("smokes", ["Yes"]), Bins("age", [50]))
    texts = ["yes", "no", "yes", "no", None]
    table = pd.DataFrame(
        {"alone": texts, "smokes": [text and text.title() for text in texts], "age": [20, 60, 70, 30, 90]}
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE data AS SELECT * FROM '{tmp_path}/t.csv'")
    assert {row[1] for row in connection.sql("DESCRIBE data").fetchall()} == {"BOOLEAN", "BIGINT"}
    found = connection.sql(f"SELECT score FROM ({release.card().to_sql()})").fetchall()
    assert [score for (score,) in found] == release.model.totals(table).tolist()


def test_days_that_other_engines_cannot_read_are_refused() -> None:
    _, release = small_card(Dates("since", ["2020-01-01"], format="DD.MM.YYYY"))
    for dialect in ("duckdb", "sqlite"):
        assert "2020" in release.card().to_sql(dialect)
    with pytest.raises(ValueError, match="cannot read days in the format of the column 'since'"):
        release.card().to_sql("tsql")
