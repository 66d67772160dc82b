"""Tables as people have them: raw files, odd names, codes for no value; what cannot be read is said, or refused in time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import Result

import privsolve as ps
from commands import run
from privsolve.data import Bins, Categories, Label, Number, Schema
from privsolve.privacy.ledger import Ledger
from privsolve.releases import Release
from small_tables import INDICATORS, patients


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release that uses colour and age, of a schema that has a third column as well."""
    here = tmp_path_factory.mktemp("fitted")
    columns = (*INDICATORS.columns, Categories("unused", ["a"], no="b"))
    schema = Schema(columns, INDICATORS.label)
    frame = patients().assign(unused=["a", "b"] * 150)
    model = ps.PrivateShortCard(50.0, schema=schema, max_features=2, intercept=3, random_state=0)
    release = model.fit(frame.drop(columns="ill"), frame["ill"]).release_
    (here / "release.json").write_text(release.to_json(), encoding="utf-8")
    assert [c.column for c in release.model.used.schema.columns] == ["colour", "age"]  # type: ignore[attr-defined]
    return here / "release.json"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def predicted(data: Path | str, release: Path, *options: object) -> Result:
    return run("predict", data, "--release", release, "--out", "scored.csv", *options)


def test_only_the_columns_that_are_used_are_needed(fitted: Path, here: Path) -> None:
    frame = patients()[["age", "colour"]]
    frame.to_csv("few.csv", index=False)
    assert predicted("few.csv", fitted).exit_code == 0
    expected = Release.from_json(fitted.read_text()).predict(frame)
    assert list(pd.read_csv("scored.csv")["prediction"]) == list(expected)
    made = ps.PrivateShortCard.from_release(fitted)
    assert list(made.predict(frame)) == list(expected)


def test_a_table_with_a_score_keeps_it(fitted: Path, here: Path) -> None:
    patients().assign(score=7, Prediction="old").to_csv("data.csv", index=False)
    result = predicted("data.csv", fitted, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["columns"] == ["card_score", "card_prediction"]
    scored = pd.read_csv("scored.csv")
    assert set(scored["score"]) == {7}
    assert set(scored["card_prediction"]) == {"yes", "no"}


def test_what_cannot_be_read_is_said(fitted: Path, here: Path) -> None:
    frame = patients().astype({"age": object})
    frame.loc[:9, "age"] = "thirty"
    missing = int(frame["age"].isna().sum()) + 10 - int(frame["age"][:10].isna().sum())
    frame.to_csv("data.csv", index=False)
    result = predicted("data.csv", fitted)
    assert result.exit_code == 0
    assert f"age: {missing} missing of 300 values" in result.stderr
    assert "colour" not in result.stderr  # every colour has an answer


def test_tables_that_cannot_be_read_are_refused(fitted: Path, here: Path) -> None:
    patients().assign(age="thirty").to_csv("data.csv", index=False)
    refused = predicted("data.csv", fitted)
    assert refused.exit_code == 2
    assert "column 'age': 300 of 300 values are missing or unknown" in refused.stderr
    assert "--max-missing" in refused.stderr
    assert "thirty" not in refused.output
    assert not Path("scored.csv").exists()
    assert predicted("data.csv", fitted, "--max-missing", 1).exit_code == 0


@pytest.mark.parametrize(("share", "code"), [(0.2, 0), (0.8, 2)])
def test_values_that_the_release_does_not_know(here: Path, share: float, code: int) -> None:
    """A list without an answer for others: sex is yes or no, and some records have a third text."""
    schema = Schema([Categories("sex", ["f"], no="m")], Label("y", 1, 0))
    rule = ps.PrivateShortCard(50.0, schema=schema, max_features=1, random_state=0)
    frame = pd.DataFrame({"sex": ["f", "m"] * 100, "y": [1, 0] * 100})
    Path("release.json").write_text(rule.fit(frame[["sex"]], frame["y"]).release_.to_json())
    frame.loc[: int(200 * share) - 1, "sex"] = "?"
    frame.to_csv("data.csv", index=False)
    result = predicted("data.csv", Path("release.json"))
    assert result.exit_code == code
    assert f"{int(200 * share)}" in result.stderr
    assert "unknown" in result.stderr


FIT = ("--epsilon", 1, "--out", "out", "--max-features", 1)


@pytest.mark.parametrize("model", ["scorecard", "short", "tree"])
def test_a_column_without_a_readable_value_is_refused_before_paying(here: Path, model: str) -> None:
    frame = patients()
    Schema([Bins("age", [30], "intervals"), Categories("colour", ["RED", "BLUE"])], INDICATORS.label).save("s.toml")
    frame.to_csv("data.csv", index=False)
    Ledger.create("ledger", 10.0)
    options = FIT if model == "short" else FIT[:4]
    refused = run("fit --model short data.csv --schema s.toml", *options, "--model", model, "--ledger", "ledger")
    assert refused.exit_code == 2
    assert "column 'colour': no value can be read as the schema says" in refused.stderr
    assert "red" not in refused.output
    assert Ledger.open("ledger").history() == ()
    assert not Path("out").exists()


WORDS = {
    "0/1": ("0", "1"),
    "words": ("No", "yes"),
    "letters": ("f", "T"),
    "letters of words": ("n", "Y"),
    "b": ("false", "True"),
}


@pytest.mark.parametrize("written", WORDS)
def test_truths_are_read_alike(written: str, here: Path) -> None:
    """A schema of true and false on 0/1, words and letters, from every source."""
    truth = np.arange(40) % 3 == 0
    schema = Schema([Categories("flag", [True], no=False)], Label("y", True, False))
    expected = schema.table(pd.DataFrame({"flag": truth, "y": truth})).table
    texts = np.where(truth, WORDS[written][1], WORDS[written][0])
    frame = pd.DataFrame({"flag": texts, "y": texts})
    frame.to_csv("data.csv", index=False)
    frame.to_parquet("data.parquet", index=False)
    for data in (frame, "data.csv", "data.parquet"):
        found = schema.table(ps.data.tables.open_table(data) if isinstance(data, str) else data)
        assert found.table == expected
        assert found.outside == {}


def test_names_that_nobody_uses_stop_nobody(here: Path) -> None:
    frame = patients()
    odd = pd.concat([frame, frame[["dose"]]], axis=1)
    odd.to_csv("data.csv")  # with its index, which has no name
    INDICATORS.save("s.toml")
    checked = run("schema check s.toml data.csv")
    assert checked.exit_code == 0, checked.output
    Schema([Number("dose", 0, 2)], INDICATORS.label).save("dose.toml")
    refused = run("schema check dose.toml data.csv")
    assert refused.exit_code == 2
    assert "2 columns called 'dose'" in refused.stderr
    assert "colour" not in refused.stderr  # the guilty ones only
    by_place = Schema([Number("dose (column 4)", 0, 2)], INDICATORS.label)
    by_place.save("place.toml")
    assert run("schema check place.toml data.csv").exit_code == 0
    assert INDICATORS.table(odd).table == INDICATORS.table(frame).table
    with pytest.raises(ValueError, match="2 columns called 'dose'"):
        Schema([Number("dose", 0, 2)], INDICATORS.label).table(odd)


@pytest.mark.parametrize("separator", [" ", ";", ","])
def test_a_file_without_a_header(separator: str, here: Path) -> None:
    frame = patients()
    nothing = "NA" if separator == " " else ""
    frame.to_csv("raw.data", index=False, header=False, sep=separator, na_rep=nothing)
    INDICATORS.save("s.toml")
    header = separator.join(frame.columns)
    checked = json.loads(run("schema check s.toml raw.data --header", header, "--json").stdout)
    assert checked["curator"]["records"] == 300
    assert checked["curator"]["unreadable"] == []
    draft = ("schema", "draft", "raw.data", "--header", header, "--label", "ill", "--positive", "yes", "--epsilon", 20)
    drafted = run(*draft, "--out", "d.toml")
    assert drafted.exit_code == 0, drafted.output
    assert [c.column for c in Schema.load("d.toml").columns] == ["colour", "age", "dose"]


def test_raw_files_by_the_command_line(here: Path) -> None:
    """Decimal commas, NA, -999 and dates, in a file as a spreadsheet writes it."""
    rng = np.random.default_rng(1)
    n = 400
    height = [f"{h:.2f}".replace(".", ",") for h in rng.normal(1.7, 0.1, n)]
    income = np.where(rng.random(n) < 0.1, -999, rng.integers(1000, 5000, n) // 20 * 20)
    born = pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 20_000, n), "D")
    frame = pd.DataFrame(
        {
            "": range(n),
            "height": height,
            "income": income,
            "smoker": rng.choice(["yes", "no", "NA"], n),
            "born": born.strftime("%Y-%m-%d"),
            "visit": born.strftime("%d.%m.%Y"),
            "note": [f"n{i}" for i in range(n)],
            "amount": rng.permutation(np.r_[np.arange(n - 35), np.arange(35)]),
            "ill": rng.choice(["a", "b"], n),
        }
    )
    frame.loc[:60, "height"] = "?"
    frame.to_csv("raw.csv", index=False, sep=";")
    draft = (
        "schema",
        "draft",
        "raw.csv",
        "--label",
        "ill",
        "--positive",
        "a",
        "--epsilon",
        40,
        "--decimal",
        ",",
        "--out",
    )
    result = run(*draft, "s.toml", "--missing", -999, "--numbers", "income")
    assert result.exit_code == 0, result.output
    schema = Schema.load("s.toml")
    by = {column.column: column for column in schema.columns}
    assert list(by) == ["height", "income", "smoker", "amount"]
    assert isinstance(by["height"], Bins)
    assert (by["height"].decimal, by["height"].missing) == (",", "missing")
    assert isinstance(by["income"], Bins)
    assert by["income"].missing_values == (-999,)
    assert min(by["income"].cuts) > 1000
    smoker = by["smoker"]
    assert isinstance(smoker, Categories)
    assert (smoker.options[0].name, smoker.missing) == ("yes", "missing")
    for name, why in (("(column 1)", "no name of its own"), ("note", "free text"), ("born", "told from noise")):
        line = next(line for line in result.stdout.splitlines() if why in line and name in line)
        assert line.startswith("Left out ")
    outside = schema.table(ps.data.tables.open_table("raw.csv")).outside
    assert {name: counts for name, counts in outside.items() if name != "ill"} == {
        "height": {"missing": 61},
        "income": {"missing": int((income == -999).sum())},
        "smoker": {"missing": int((frame["smoker"] == "NA").sum())},
    }
    some = run(*draft, "t.toml", "--columns", "height,smoker")
    assert some.exit_code == 0, some.output
    assert [c.column for c in Schema.load("t.toml").columns] == ["height", "smoker"]
    wrong = run(*draft, "u.toml", "--drop", "nota")
    assert wrong.exit_code == 2
    assert "no column 'nota': did you mean 'note'?" in wrong.stderr


def test_a_limit_that_limits_nothing_is_refused(here: Path) -> None:
    patients().to_csv("data.csv", index=False)
    INDICATORS.save("s.toml")
    refused = run("fit --model short data.csv --schema s.toml", *FIT[:4], "--max-features", 40)
    assert refused.exit_code == 2
    assert f"--max-features 40: the schema has {INDICATORS.dim - 1} features; use at most" in refused.stderr


def test_many_columns_outside_are_a_few_lines() -> None:
    from privsolve.cli.fit import outside_lines

    lines = outside_lines({f"c{i}": {"other": i + 1} for i in range(113)}, "see diagnostics.json")
    assert len(lines) == 9
    assert lines[0] == "c112: 113 other"
    assert lines[-1] == "and 105 more columns, see diagnostics.json"
