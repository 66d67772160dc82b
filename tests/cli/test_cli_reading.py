"""Tables as people have them: raw files, odd names, codes for no value; what cannot be read is said, or refused in time."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import Result

import privsolve as ps
from commands import done, refused, run
from privsolve import Bins, Categories, Label, Number, Release, Schema
from privsolve.cli.fit import outside_lines
from small_tables import INDICATORS, SCHEMA, patients


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


def predicted(data: str, release: Path, *options: object) -> Result:
    return done("predict", data, "--release", release, "--out", "scored.csv", *options)


def test_only_the_columns_that_are_used_are_needed(fitted: Path, here: Path) -> None:
    frame = patients()[["age", "colour"]]
    frame.to_csv("few.csv", index=False)
    predicted("few.csv", fitted)
    expected = Release.from_json(fitted.read_text()).predict(frame)
    assert list(pd.read_csv("scored.csv")["prediction"]) == list(expected)


def test_a_table_with_a_score_keeps_it(fitted: Path, here: Path) -> None:
    patients().assign(score=7, Prediction="old").to_csv("data.csv", index=False)
    assert json.loads(predicted("data.csv", fitted, "--json").stdout)["columns"] == ["card_score", "card_prediction"]
    scored = pd.read_csv("scored.csv")
    assert set(scored["score"]) == {7}
    assert set(scored["card_prediction"]) == {"yes", "no"}


def test_what_cannot_be_read_is_said(fitted: Path, here: Path) -> None:
    frame = patients().astype({"age": object})
    frame.loc[:9, "age"] = "thirty"
    missing = int(frame["age"].isna().sum()) + 10 - int(frame["age"][:10].isna().sum())
    frame.to_csv("data.csv", index=False)
    result = predicted("data.csv", fitted)
    assert f"age: {missing} missing of 300 values" in result.stderr
    assert "colour" not in result.stderr  # every colour has an answer


def test_tables_that_cannot_be_read_are_refused(fitted: Path, here: Path) -> None:
    patients().assign(age="thirty").to_csv("data.csv", index=False)
    words = "column 'age': 300 of 300 values are missing or unknown"
    result = refused(words, "predict data.csv --out scored.csv --release", fitted)
    assert "--max-missing" in result.stderr
    assert "thirty" not in result.output
    assert not Path("scored.csv").exists()
    predicted("data.csv", fitted, "--max-missing", 1)


@pytest.mark.parametrize(("share", "code"), [(0.2, 0), (0.8, 2)])
def test_values_that_the_release_does_not_know(here: Path, share: float, code: int) -> None:
    """A list without an answer for others: sex is yes or no, and some records have a third text."""
    schema = Schema([Categories("sex", ["f"], no="m")], Label("y", 1, 0))
    frame = pd.DataFrame({"sex": ["f", "m"] * 100, "y": [1, 0] * 100})
    card = ps.PrivateShortCard(50.0, schema=schema, max_features=1, random_state=0).fit(frame)
    Path("release.json").write_text(card.release_.to_json())
    frame.loc[: int(200 * share) - 1, "sex"] = "?"
    frame.to_csv("data.csv", index=False)
    result = run("predict data.csv --out scored.csv --release release.json")
    assert result.exit_code == code
    assert f"{int(200 * share)}" in result.stderr
    assert "unknown" in result.stderr


@pytest.mark.parametrize("words", [("0", "1"), ("No", "yes"), ("f", "T"), ("n", "Y"), ("false", "True")])
def test_truths_are_read_alike(words: tuple[str, str], here: Path) -> None:
    """A schema of true and false on 0/1, words and letters, from every source."""
    truth = np.arange(40) % 3 == 0
    schema = Schema([Categories("flag", [True], no=False)], Label("y", True, False))
    expected = schema.table(pd.DataFrame({"flag": truth, "y": truth})).table
    texts = np.where(truth, words[1], words[0])
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
    done("schema check s.toml data.csv")
    Schema([Number("dose", 0, 2)], INDICATORS.label).save("dose.toml")
    result = refused("2 columns called 'dose'", "schema check dose.toml data.csv")
    assert "colour" not in result.stderr  # the guilty ones only
    Schema([Number("dose (column 4)", 0, 2)], INDICATORS.label).save("place.toml")
    done("schema check place.toml data.csv")
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
    done("schema draft raw.data --label ill --positive yes --epsilon 20 --out d.toml --header", header)
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
    draft = "schema draft raw.csv --label ill --positive a --epsilon 40 --decimal , --out"
    result = done(f"{draft} s.toml --missing -999 --numbers income")
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
    done(f"{draft} t.toml --columns height,smoker")
    assert [c.column for c in Schema.load("t.toml").columns] == ["height", "smoker"]
    refused("no column 'nota': did you mean 'note'?", f"{draft} u.toml --drop nota")


def test_many_columns_outside_are_a_few_lines() -> None:
    lines = outside_lines({f"c{i}": {"other": i + 1} for i in range(113)}, "see diagnostics.json")
    assert len(lines) == 9
    assert lines[0] == "c112: 113 other"
    assert lines[-1] == "and 105 more columns, see diagnostics.json"


def test_a_schema_is_checked_and_counts_are_the_curators(here: Path) -> None:
    patients(400).to_csv("people.csv", index=False)
    SCHEMA.save("s.toml")
    plain = done("schema check s.toml").stdout
    assert "age" in plain
    assert "Curator" not in plain
    public, private = done("schema check s.toml people.csv").stdout.split("Curator only")
    assert "NOT covered by the guarantee" in private
    assert "400 records" in private
    assert "400" not in public
    checked = json.loads(done("schema check s.toml people.csv --json").stdout)
    assert checked["features"] == list(SCHEMA.features)
    assert checked["curator"]["records"] == 400
    assert "NOT covered" in checked["curator"]["note"]
    assert json.loads(done("schema check s.toml --json").stdout)["curator"] is None
    text = Path("s.toml").read_text(encoding="utf-8")
    Path("s.toml").write_text(text.replace("bins = ", "bin = ", 1), encoding="utf-8")
    refused("columns.age: ", "schema check s.toml")
    Path("s.toml").write_text(f"# GUESSED: cut points near the quartiles.\n{text}", encoding="utf-8")
    refused("read off the records without privacy", "schema check s.toml")
