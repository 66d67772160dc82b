"""`privsolve fit`, `predict`, `show` and `plan`, on real files: output, exit codes, and what is spent."""

import csv
import json
import os
import re
import resource
import shutil
import subprocess
from pathlib import Path
from typing import Any, NoReturn

import duckdb
import pandas as pd
import pytest

from commands import done, refused, run
from privsolve import Categories, ExponentialSampler, Guarantee, Label, Ledger, Schema
from privsolve.cli import fit
from privsolve.models.linear import LinearRule
from privsolve.privacy.profiles import BoundedRange
from privsolve.releases import NOT_PRIVATE
from privsolve.safety.folder import Folder, load_release
from small_tables import INDICATORS, SCHEMA, patients


@pytest.fixture
def here(here: Path) -> Path:
    """A folder with a table in three kinds of files, a schema and a ledger."""
    frame = patients()
    frame.to_csv("data.csv", index=False)
    frame.to_parquet("data.parquet", index=False)
    with duckdb.connect("data.duckdb") as db:
        db.execute("CREATE TABLE patients AS SELECT * FROM 'data.parquet'")
    INDICATORS.save("s.toml")
    Ledger.create("ledger", 10.0)
    return here


FIT = "fit --model short data.csv --schema s.toml --epsilon 2 --out out --max-features 2"


def test_fit_writes_and_shows_a_release(here: Path) -> None:
    result = done(FIT)
    assert "Scorecard: ill yes or ill no?" in result.stdout
    assert "changes the probability of any published result" in " ".join(result.stdout.split())
    published = (f"out/{name}  (to publish)" for name in ("release.json", "scorecard.html"))
    for said in (*published, "out-curator/diagnostics.json  (curator only)"):
        assert said in result.stdout
    assert "accuracy" not in result.stdout  # the curator's part is on the error stream
    assert "training accuracy" in result.stderr
    assert "age: " in result.stderr
    files = sorted(p.name for p in here.glob("out*/**/*") if p.is_file())
    assert files == ["diagnostics.json", "release.json", "scorecard.html"]
    release = load_release("out/release.json")
    assert not release.guarantee.seeded
    assert release.schema == INDICATORS
    assert json.loads(Path("out-curator/diagnostics.json").read_text())["warning"] == NOT_PRIVATE


def test_all_kinds_of_files_give_the_same_release(here: Path) -> None:
    texts = set()
    for i, source in enumerate(("data.csv", "data.parquet", "data.duckdb", "data.duckdb::patients", "dat?.csv")):
        fit = f"fit --model short {source} --schema s.toml --epsilon 2 --out out{i} --seed 3 --json"
        written = json.loads(done(fit).stdout)
        assert written["curator"] == f"out{i}-curator/diagnostics.json"
        texts.add(Path(written["release"]).read_text() + Path(written["scorecard"]).read_text())
    assert len(texts) == 1
    assert "Seeded: for testing only." in load_release("out0/release.json").guarantee.sentence()


WRONG = {
    "none.csv": "none.csv: no such file",
    "data.xls": "must end in .csv, .parquet or .duckdb",
    "data.duckdb::none": "has no table 'none'",
    "no_age.csv": "no column 'age'",
    "nan.csv": "label 'ill': at least one record has none",
    "other.csv": "neither in positive nor in negative",
    "empty.csv": "no records",
    "broken.parquet": "broken.parquet: ",
    "ragged.csv": "line 3 has 2 values where the header names 4",
    "--schema none.toml": "--schema none.toml: no such file; make one with `privsolve schema draft`",
    "--schema bad.toml": "bad.toml: ",
    "--schema no_label.toml": "add a [label]",
    "--epsilon 0": "epsilon must be",
    "--epsilon -1": "epsilon must be",
    "--epsilon nan": "epsilon must be",
    "--epsilon 1e-9": "epsilon must be",
    "--epsilon 1e9": "epsilon is too large",
    "--delta 1e-6": "--delta is for --model scorecard: leave it out with --model short",
    "--adjacency both": "adjacency must be",
    "--max-features 0": "max_features must be",
    "--max-features 40": f"--max-features 40: the schema has {INDICATORS.dim - 1} features; use at most",
    "--max-points 0": "max_points must be",
    f"--false-negative {2**40}": "false_negative must be",
    "--false-negative 0 --false-positive 0": "both 0",
    "--seed -1": "random_state must not be negative",
    "--out data.csv/out": "--out data.csv/out cannot be written to",
    "--out earlier": "earlier/release.json exists already: choose another --out, or pass --overwrite",
    "--ledger none": "make one with `privsolve budget init`",
    "--epsilon 11": "refused before any noise was drawn",
    "--adjacency add-remove": "the budget is under replace",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_input_is_one_line_and_spends_nothing(here: Path, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    frame = patients(20)
    frame.drop(columns="age").to_csv("no_age.csv", index=False)
    frame.assign(ill=["", *frame["ill"][1:]]).to_csv("nan.csv", index=False)
    frame.assign(ill=["perhaps", *frame["ill"][1:]]).to_csv("other.csv", index=False)
    frame[:0].to_csv("empty.csv", index=False)
    Path("broken.parquet").write_text("PAR1 no table")
    Path("ragged.csv").write_text("colour,age,dose,ill\nred,30,1,yes\nred,30\n")
    Path("bad.toml").write_text("columns = 3")
    Schema(INDICATORS.columns).save("no_label.toml")
    Path("earlier").mkdir()
    Path("earlier/release.json").write_text("{}")
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    monkeypatch.setattr(ExponentialSampler, "draw", lambda *_, **__: pytest.fail("noise was drawn"))
    fit = f"{FIT} --ledger ledger"
    result = refused(WRONG[wrong], f"{fit} {wrong}" if wrong.startswith("--") else fit.replace("data.csv", wrong))
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert Ledger.open("ledger").history() == ()
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before
    assert not Path("out").exists()


def test_an_interrupted_fit_releases_nothing_and_stays_paid(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(ExponentialSampler, "draw", interrupt)
    result = run(f"{FIT} --ledger ledger")
    assert result.exit_code == 130
    assert "nothing was released" in result.stderr
    assert "the ledger keeps the payment" in result.stderr
    assert not Path("out").exists()
    assert "with --resume" in result.stderr
    (entry,) = Ledger.open("ledger").history()
    assert (entry.guarantee.epsilon, entry.outcome) == (2.0, "spent")


def test_a_paid_release_is_not_lost_when_the_disk_is_full(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "write", full)
        result = refused("No space left on device", f"{FIT} --seed 1 --ledger ledger")
    assert "the same command with --resume goes on" in result.stderr
    done(f"{FIT} --seed 1 --ledger ledger --resume")
    assert load_release("out/release.json").guarantee.epsilon == 2.0
    assert [entry.outcome for entry in Ledger.open("ledger").history()] == ["released"]


def test_an_earlier_release_is_replaced_only_on_demand(here: Path) -> None:
    done(f"{FIT} --seed 1")
    first = json.loads(Path("out/release.json").read_text())["guarantee"]
    refused("exists already", f"{FIT} --seed 1")
    done(f"{FIT} --epsilon 3 --seed 1 --overwrite")
    promised = Guarantee.from_dict(first | {"profile": BoundedRange(3.0).to_dict()})
    assert load_release("out/release.json").guarantee == promised


@pytest.mark.parametrize("source", ["data.csv", "data.parquet", "data.duckdb"])
@pytest.mark.parametrize("out", ["scored.csv", "scored.parquet"])
def test_predict_scores_every_row_in_its_order(here: Path, source: str, out: str) -> None:
    SCHEMA.save("s.toml")
    done(f"{FIT} --epsilon 5 --seed 0")
    result = done(f"predict {source} --release out/release.json --out {out} --json")
    unread = {"age": {"missing": int(patients()["age"].isna().sum())}}
    said = {"predictions": out, "columns": ["score", "prediction"], "records": 300, "unread": unread}
    assert json.loads(result.stdout) == said
    scored = pd.read_csv(out) if out.endswith("csv") else pd.read_parquet(out)
    frame, release = patients(), load_release("out/release.json")
    rule = release.model
    assert isinstance(rule, LinearRule)
    exact = SCHEMA.encode(frame) @ (release.weights * [2 if s == 1 else 1 for s in rule.scales])
    assert rule.scales.count(2) == 1
    assert list(scored["score"]) == list(rule.totals(frame))
    at_least = release.card().threshold
    assert list(scored["score"] >= at_least) == list(exact > 0)
    assert list(scored["prediction"]) == ["yes" if e > 0 else "no" for e in exact]
    assert list(scored["colour"]) == list(frame["colour"])
    assert not [path for path in here.iterdir() if path.name.startswith(".")]


def test_what_predict_refuses(here: Path) -> None:
    done(f"{FIT} --seed 0")
    Path("out/release.json").rename("release.json")
    Path("folder.csv").mkdir()
    patients()[["colour"]].to_csv("colours.csv", index=False)
    Path("ragged.csv").write_text("colour,age,dose,ill\nred,30,1,yes\nred,30\n")
    before = sorted(here.rglob("*"))
    for options, words in (
        ("data.csv --release none.json", "none.json: No such file"),
        ("data.csv --release data.csv", "data.csv: not a release file"),
        ("data.csv --release data.parquet", "data.parquet: "),
        ("none.csv", "none.csv: no such file"),
        ("data.csv --out scored.xls", "must end in .csv or .parquet"),
        ("data.csv --out nowhere/scored.csv", "its folder does not exist"),
        ("data.csv --out folder.csv", "folder.csv"),
        ("colours.csv", "no column 'age'"),
        ("ragged.csv", "line 3 has 2 values where the header names 4"),
    ):
        (line,) = refused(words, f"predict --release release.json --out scored.csv {options}").stderr.splitlines()
        assert line.startswith("error: ")
    assert sorted(here.rglob("*")) == before


def test_show_writes_every_format(here: Path) -> None:
    done(FIT)
    starts = {"text": "Scorecard: ", "markdown": "#", "html": "<!doctype html>", "json": "{"}
    for name, start in starts.items():
        assert done("show out/release.json --format", name).stdout.lower().startswith(start.lower())
    assert run("show out/release.json --format json").stdout == Path("out/release.json").read_text()
    page = re.sub(r"<span><span>Date:</span> [0-9-]+</span>", "", Path("out/scorecard.html").read_text())
    assert run("show out/release.json --format html").stdout == page
    assert run("show", "nothing.json").exit_code == 2


def test_markup_in_names_is_shown_as_it_is(here: Path) -> None:
    pd.DataFrame({"[red]": ["[b]", "[/b]"] * 40, "y": [1, 0] * 40}).to_csv("odd.csv", index=False)
    Schema([Categories("[red]", ["[b]", "[/b]"])], Label("y", 1, 0)).save("odd.toml")
    result = done("fit --model short odd.csv --schema odd.toml --epsilon 9 --out odd --seed 0")
    assert "[red]" in result.stdout
    assert "[/b]" in run("show", "odd/release.json").stdout


ESCAPES = "\x1b[2J\x1b]0;owned\x07 \x9b31m \u202efdp"


def test_terminals_do_not_obey_names_and_notes(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither those of a card that is shown, nor those of a ledger, nor those in errors."""
    name, values = f"colour{ESCAPES}", [f"red{ESCAPES}", "blue"]
    pd.DataFrame({name: values * 40, "y": ["yes", "no"] * 40}).to_csv("odd.csv", index=False)
    Schema([Categories(name, values)], Label("y", "yes", "no")).save("odd.toml")
    result = done("fit --model short odd.csv --schema odd.toml --epsilon 9 --out odd --seed 0")
    Ledger.create("odd.ledger", 9.0, dataset=ESCAPES).spend(load_release("odd/release.json").guarantee, ESCAPES)
    shown = [result.output, run("show", "odd/release.json").output, run("schema", "check", "odd.toml").output]
    assert all("\\x1b[2J" in text.replace("\n", "") for text in shown[1:])
    shown += [run("budget", "show", "odd.ledger").output, run("budget", "history", "odd.ledger").output]
    shown += [run(f"{FIT} --schema", f"{ESCAPES}.toml").output, run("show", f"{ESCAPES}.json").output]
    shown.append(run("fit --schema s.toml --epsilon 2 --out out", f"{ESCAPES}.csv").output)
    for text in shown:
        assert not set(text) & set("\x1b\x07\x9b\u202e")
    assert "\x1b" in run("show odd/release.json --format markdown").output  # into a pipe: as it is
    monkeypatch.setattr("privsolve.cli.common.on_a_terminal", lambda: True)
    for name in ("markdown", "html", "json"):
        assert not set(run("show", "odd/release.json", "--format", name).output) & set("\x1b\x07\x9b\u202e")


@pytest.mark.parametrize(
    ("yes", "sign"),
    [("=cmd|' /C calc'!A0", "'"), ("@SUM(1)", "'"), ("-2+3", "'"), ("+1", ""), ("-1.5e3", ""), ("yes", "")],
)
def test_predicted_labels_are_no_formulas(here: Path, yes: str, sign: str) -> None:
    pd.DataFrame({"colour": ["red", "blue"] * 40, "y": [yes, "no"] * 40}).to_parquet("odd.parquet", index=False)
    Schema([Categories("colour", ["red", "blue"])], Label("y", yes, "no")).save("odd.toml")
    done("fit --model short odd.parquet --schema odd.toml --epsilon 9 --out odd --seed 0")
    for out in ("scored.csv", "scored.parquet"):
        done("predict odd.parquet --release odd/release.json --out", out)
    with open("scored.csv", newline="") as file:
        labels = [row["prediction"] for row in csv.DictReader(file)]
    assert labels == [sign + yes, "no"] * 40
    assert list(pd.read_parquet("scored.parquet")["prediction"]) == [yes, "no"] * 40


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_what_is_the_curators_is_apart_and_private(here: Path) -> None:
    before = os.umask(0o022)
    try:
        done(f"{FIT} --seed 1")
        done(f"{FIT} --out other --curator safe/mine")
    finally:
        os.umask(before)
    modes = {
        "out": 0o755,
        "out/release.json": 0o644,
        "out/scorecard.html": 0o644,
        "out-curator": 0o700,
        "out-curator/diagnostics.json": 0o600,
        "safe/mine": 0o700,
        "safe/mine/diagnostics.json": 0o600,
    }
    assert {path: Path(path).stat().st_mode & 0o777 for path in modes} == modes
    assert sorted(path.name for path in Path("out").iterdir()) == ["release.json", "scorecard.html"]


@pytest.mark.parametrize("inside", ["new/curator", "new", "new/../new/x", "."])
def test_a_curators_folder_that_would_be_published_is_refused(here: Path, inside: str) -> None:
    out = "." if inside == "." else "new"
    words = "which is published: choose a folder outside of it"
    refused(words, f"{FIT} --out {out} --curator {inside} --ledger ledger")
    assert Ledger.open("ledger").history() == ()
    assert not Path("new").exists()


def test_the_folder_of_an_earlier_version_is_not_published(here: Path) -> None:
    Path("out/curator").mkdir(parents=True)
    refused("out/curator is the curator's, of an earlier version", f"{FIT} --overwrite")
    assert sorted(path.name for path in Path("out").iterdir()) == ["curator"]


def test_a_full_disk_is_found_before_paying(here: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A real one of 2 MB where it may be mounted, otherwise a limit on the size of files."""
    disk = tmp_path_factory.mktemp("disk")
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    mounted = bool(shutil.which("mount")) and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        if not mounted:
            resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, hard))
        words = "cannot be written to: " + ("No space left on device" if mounted else "File too large")
        refused(words, f"{FIT} --ledger ledger --out", disk / "out")
        assert list(disk.iterdir()) == []
        assert Ledger.open("ledger").history() == ()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        if mounted:
            subprocess.run(["umount", disk], check=True)


def test_payments_of_others_are_not_taken_for_ours(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else pays from the same ledger while a fit is refused."""
    ledger, open_table = Ledger.open("ledger"), fit.open_table

    def meanwhile(source: str, **options: Any) -> Any:
        ledger.spend(Guarantee.from_dict(json.loads(Path("out9/release.json").read_text())["guarantee"]))
        return open_table(source, **options)

    done(f"{FIT} --out out9 --epsilon 9")
    monkeypatch.setattr(fit, "open_table", meanwhile)
    result = refused("refused before any noise was drawn", f"{FIT} --ledger ledger")
    assert "paid for already" not in result.stderr


def plan(options: str) -> Any:
    return json.loads(done(f"plan --model short --records 1000 --json {options}").stdout)


def test_plan_needs_no_data(here: Path) -> None:
    values = plan("--epsilon 1 --schema s.toml")
    assert values == plan("--epsilon 1 --features 7")
    assert [b["mechanism"] for b in values["bounds"]] == ["exponential"]
    assert all(b["share"] == min(1, b["excess"] / 1000) for b in values["bounds"])
    shown = done("plan --model short --epsilon 1 --records 1000 --features 7 --max-features 1").stdout
    assert "with probability 0.95" in shown
    assert "1 feature, 1 point" in shown
    assert "the same draw has 0.5." in " ".join(shown.split())
    dear = plan("--epsilon 1 --features 7 --false-negative 5")
    assert dear["bounds"][0]["share"] == pytest.approx(values["bounds"][0]["share"])
    Schema(INDICATORS.columns, intercept=False).save("flat.toml")
    assert plan("--epsilon 1 --schema flat.toml")["scorecards"] * 17 == values["scorecards"]
    for wrong in ("--features 3 --schema s.toml", "", "--features 3 --epsilon 0"):
        assert run(f"plan --model short --epsilon 1 --records 10 {wrong}").exit_code == 2


def test_plan_finds_the_epsilon_for_what_may_be_lost(here: Path) -> None:
    ask = "--features 20 --records 5000"
    for lose in (0.2, 0.01):
        epsilon = plan(f"{ask} --lose {lose}")["epsilon"]
        promised = [plan(f"{ask} --epsilon {e}")["bounds"][0]["share"] for e in (epsilon, epsilon * 0.97)]
        assert promised[0] <= lose < promised[1]
    shown = done(f"plan --model short {ask} --lose 0.05").stdout
    assert "is the smallest that promises to lose at most 5.0% of the records" in " ".join(shown.split())
    for wrong in ("--lose 0", "--lose 2", "--lose 1e-7", "--lose 0.1 --epsilon 1", ""):
        refused("lose", f"plan --model short {ask} {wrong}")


@pytest.mark.parametrize("model", ["short", "scorecard", "tree --depth 2"])
def test_a_rehearsal_fits_made_up_records(here: Path, model: str) -> None:
    ask = f"plan --model {model} --records 4000 --schema s.toml --epsilon 2 --rehearse"
    found = json.loads(done(f"{ask} --json").stdout)["rehearsal"]
    assert (found["records"], len(found["accuracies"])) == (4000, 5)
    assert found["planted"] == pytest.approx(0.85, abs=0.01)
    assert 0.6 < min(found["accuracies"]) <= max(found["accuracies"]) < 0.88
    said = done(ask).stdout
    assert "Rehearsal on made-up records" in said
    assert ("Full scorecard with points for all answers" in said) == (model == "scorecard")
    refused("--schema", "plan --model short --records 10 --features 3 --epsilon 1 --rehearse")


def test_bands_are_published_and_a_large_delta_is_warned_of(here: Path) -> None:
    fitted = done("fit data.csv --schema s.toml --epsilon 1 --delta 0.01 --out out --seed 1 --bands calm,20%,act")
    assert "delta=0.01 promises very little" in fitted.stderr
    bands = load_release("out/release.json").model.bands  # type: ignore[attr-defined]
    assert bands.names == ("calm", "act")
