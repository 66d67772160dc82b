"""A card as SQL and as a workbook: engines and spreadsheets say what the model says."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pytest
from typer.testing import CliRunner

from copied_package import SOURCES, run_python
from long_cards import answers_of, long_release, long_schema, long_table
from privsolve.cards.rows import Answer, ChoicePoints
from privsolve.cards.scorecard import Scorecard
from privsolve.cli import app
from privsolve.data import About, Categories, Number, Schema
from random_scorecards import card_of, random_case, release_of, schema_release
from small_tables import SCHEMA, patients

openpyxl = pytest.importorskip("openpyxl")
SOFFICE = shutil.which("soffice")
needs_office = pytest.mark.skipif(SOFFICE is None, reason="LibreOffice is not installed: apt install libreoffice-calc")


@pytest.mark.parametrize("seed", range(3))
def test_sql_says_what_python_says(seed: int) -> None:
    weights = np.random.default_rng(seed).integers(-3, 4, SCHEMA.dim).tolist()
    data, made = patients(200, seed), schema_release(weights, SCHEMA)
    connection = duckdb.connect()
    connection.register("data", data)
    found = connection.sql(made.card().to_sql()).df()
    model: Any = made.model
    assert found["prediction"].tolist() == model.predict(data).tolist()
    assert found["score"].tolist() == pytest.approx(model.totals(data).tolist())
    assert list(found) == [*data, "score", "prediction"]


def test_sql_needs_a_schema_and_something_to_ask() -> None:
    with pytest.raises(ValueError, match="fit with one to write a program"):
        card_of(release_of(["a"], [1])).to_sql()
    with pytest.raises(ValueError, match="asks for no column"):
        schema_release([0] * (SCHEMA.dim - 1) + [1], SCHEMA).card().to_sql()


def test_the_command_writes_sql_and_a_workbook(tmp_path: Path) -> None:
    path = tmp_path / "release.json"
    made = schema_release([2, 0, 1, 0, 1, 2, 3, 0, -2], SCHEMA)
    path.write_text(made.to_json(), encoding="utf-8")
    run = CliRunner().invoke
    assert run(app, ["show", str(path), "--format", "sql"]).stdout == made.card().to_sql()
    assert "say where to write the file" in run(app, ["show", str(path), "--format", "xlsx"]).output
    done = run(app, ["show", str(path), "--format", "xlsx", "--out", str(tmp_path / "card.xlsx")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "card.xlsx").read_bytes()[:2] == b"PK"
    assert "cannot be written" in run(app, ["show", str(path), "--out", str(tmp_path / "no" / "card.txt")]).output


def test_without_openpyxl_one_line_says_what_to_install() -> None:
    use = (
        "import sys; sys.modules['openpyxl'] = None\nimport numpy as np, privsolve as ps\n"
        "from privsolve.cards.workbook import scorecard_workbook\nscorecard_workbook(None)"
    )
    result = run_python(SOURCES, use)
    assert result.stderr.splitlines()[-1].endswith("openpyxl is not installed: pip install 'privsolve[excel]'")


def filled(card: Scorecard, answers: dict[str, Answer]) -> Any:
    """The workbook with answers in the cells where a person puts them."""
    book = openpyxl.load_workbook(io.BytesIO(card.to_xlsx()))
    for i, row in enumerate(card.rows):
        cell = book["Card"][f"B{6 + i}"]
        cell.value = said = answers[row.column]
        if isinstance(row, ChoicePoints):  # answers of equal points are one in the list
            cell.value = next(option.text for option in row.options if said in (option.text, *option.covers))
            cell.data_type = "s"
    return book


def recomputed(books: list[Any], folder: Path) -> list[Any]:
    """The sheets to fill in, as LibreOffice computes them."""
    assert SOFFICE is not None
    (folder / "in").mkdir()
    for i, book in enumerate(books):
        book.save(folder / "in" / f"{i:03}.xlsx")
    files = [str(path) for path in sorted((folder / "in").iterdir())]
    profile = f"-env:UserInstallation=file://{folder}/profile"
    subprocess.run(
        [SOFFICE, profile, "--headless", "--convert-to", "xlsx", "--outdir", str(folder / "out"), *files],
        check=True,
        capture_output=True,
        timeout=300,
    )
    return [openpyxl.load_workbook(path, data_only=True)["Card"] for path in sorted((folder / "out").iterdir())]


def result(sheet: Any, name: str) -> Any:
    return next(row[1].value or row[2].value for row in sheet.iter_rows() if row[0].value == name)


@needs_office
def test_the_workbook_adds_up_like_the_card(tmp_path: Path) -> None:
    cases, books = [], []
    for seed in range(6):
        random = Random(seed)
        case = random_case(random)
        for _ in range(3):
            answers = case.answers(random)
            cases.append((case.card, answers))
            books.append(filled(case.card, answers))
    for (card, answers), sheet in zip(cases, recomputed(books, tmp_path), strict=True):
        assert result(sheet, "Total") == card.score(answers)
        assert result(sheet, "Decision") == card.decide(answers)


@needs_office
def test_the_workbook_gives_records_with_gaps_what_predict_gives_them(tmp_path: Path) -> None:
    made = long_release(long_schema(25)).with_bands("20%,60%")
    table = long_table(long_schema(25), 12)
    scored, card = made.scored(table), made.card()
    assert isinstance(card, Scorecard)
    books = [filled(card, answers) for answers in answers_of(made, table)]
    for sheet, (_, said) in zip(recomputed(books, tmp_path), scored.iterrows(), strict=True):
        assert result(sheet, "Total") == said["score"]
        assert result(sheet, "Risk") == pytest.approx(said["risk"])
        assert result(sheet, "Band") == said["band"]


@needs_office
def test_the_workbook_says_the_risk_and_waits_for_all_answers(tmp_path: Path) -> None:
    columns = [Categories(name, ["yes"], no="no") for name in ("member", "new")]
    schema = Schema(columns, about=About(positive='say "yes"', negative="=no"))
    card = card_of(schema_release([3, -2, -1], schema, risk=True))
    full, empty = filled(card, {"member": "yes", "new": "no"}), filled(card, {"member": "yes", "new": "no"})
    empty["Card"]["B7"].value = None
    done, waiting = recomputed([full, empty], tmp_path)
    assert card.risk_scale is not None
    assert result(done, "Risk") == pytest.approx(card.risk_scale.risk(card.score({"member": "yes", "new": "no"})))
    assert result(done, "Decision") == 'say "yes"'
    assert result(waiting, "Total") == "answer every question"
    assert not result(waiting, "Decision")


def test_no_text_of_a_release_is_a_formula_in_the_workbook() -> None:
    evil = '=HYPERLINK("http://x","y")'
    book = openpyxl.load_workbook(io.BytesIO(card_of(release_of([evil, "+1", "@a"], [1, 1, 1])).to_xlsx()))
    for sheet in book:
        for row in sheet.iter_rows():
            for cell in row:
                if cell.data_type == "f":
                    assert "HYPERLINK" not in cell.value
                    assert cell.column_letter in "BC"


def test_cards_that_spreadsheets_would_round_are_refused() -> None:
    schema = Schema([Number(name, 0, 2**40) for name in "ab"])
    with pytest.raises(ValueError, match="more than 15 digits"):
        card_of(schema_release([1_000_003, 1, -1], schema)).to_xlsx()


def test_the_formulas_of_the_workbook_are_those_of_the_card() -> None:
    """As texts, where there is no office program to compute them."""
    schema = Schema([Categories(name, ["yes"], no="no") for name in ("member", "new")])
    card = card_of(schema_release([3, -2, -1], schema, risk=True).with_bands("20%,60%"))
    sheet = openpyxl.load_workbook(io.BytesIO(card.to_xlsx()))["Card"]
    said = {row[0].value: str(row[1].value or row[2].value) for row in sheet.iter_rows(min_row=8)}
    assert f'>={card.threshold},"{card.positive}","{card.negative}"' in said["Decision"]
    assert f"EXP(-({card.risk_scale.log_odds!r})*(" in said["Risk"]
    assert f"-({card.risk_scale.half!r})" in said["Risk"]
    bands = zip(card.band_starts, card.bands.names[1:], strict=True)
    assert all(f'>={start},"{name}"' in said["Band"] for start, name in bands)
