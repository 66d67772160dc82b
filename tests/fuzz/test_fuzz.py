"""Bad input of every kind ends in a documented error: never in another exception, and never in a hang."""

from __future__ import annotations

import copy
import gzip
import itertools
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
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
from fuzzing import (
    ANYTHING,
    FRAME,
    NESTED,
    NUMBERS,
    PLAIN,
    PROBLEM,
    SCHEMA,
    TABLE,
    TEXTS,
    Odd,
    Share,
    check_share,
    fuzz,
    only,
)
from privsolve.cli import app
from privsolve.continuous import objectives
from privsolve.continuous.oracles import PiecewiseLinearOracle
from privsolve.continuous.stability import SamplingNoise, plan_opsamp
from privsolve.data import Bins, Categories, Label, Number, Schema
from privsolve.data.private import private_draft
from privsolve.data.tables import open_table
from privsolve.domains import domain_from_dict
from privsolve.losses import LinearLoss, loss_from_dict
from privsolve.mechanisms.exponential import inverse_temperature
from privsolve.privacy.composition import compose
from privsolve.privacy.profiles import Approximate, Pure

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
    items = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    for key, inner in items:
        yield value, key
        yield from _places(inner)


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
    piece = data.draw(
        st.one_of(
            st.text(max_size=8), st.sampled_from(["[", "]]", "\n[label]\n", "= 1e999", "9" * 5000, "\x00", '"""'])
        )
    )
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


@fuzz(100)
@given(ANYTHING)
def test_what_is_no_frame_at_all(frame: Any) -> None:
    for use in (SCHEMA.encode, SCHEMA.table, lambda data: private_draft(data, None, 1.0, 1e-6)):
        with only():
            use(frame)


# --- tables, domains, losses -------------------------------------------------------------------------------------------


@fuzz(150)
@given(ANYTHING)
def test_what_is_no_vector(value: Any) -> None:
    for use in (TABLE.scores, TABLE.mistakes, TABLE.accuracy, PROBLEM.total_loss, PROBLEM.domain.contains):
        with only():
            use(value)


READERS = {
    domain_from_dict: [
        ps.IntegerBall(3, 5),
        ps.SignCube(2),
        ps.TernaryCube(2),
        ps.SparseSigns(3, 1),
        ps.SparsePoints(3, 1, 2, (-2, 2)),
        ps.FiniteSet([[1, 0], [0, 1]]),
    ],
    loss_from_dict: [ps.ZeroOneLoss(1, 5), LinearLoss(3)],
}


@pytest.mark.parametrize("read", READERS)
def test_domain_and_loss_descriptions(read: Callable[[Any], Any]) -> None:
    def use(description: list[Any]) -> None:
        for value, other in itertools.product(description, READERS):
            if other is not read:
                with only():
                    other(value)
        for value in description:
            read(value)

    values = st.sampled_from(READERS[read]).flatmap(lambda value: mutated([value.to_dict()], ANYTHING))
    check_share(180, values, use, least=REFUSED_MOSTLY)


# --- releases and guarantees -------------------------------------------------------------------------------------------


RELEASE = json.loads(
    ps.PrivateShortCard(schema=SCHEMA, max_features=2, random_state=0)
    .fit(FRAME.drop(columns="ill"), FRAME.ill)
    .release_.to_json()
)


GUARANTEE = ps.Guarantee.from_dict(RELEASE["guarantee"])


def test_release_files() -> None:
    def use(content: Any) -> None:
        release = ps.Release.from_json(json.dumps(content))
        assert ps.Release.from_json(release.to_json()).to_json() == release.to_json()
        card = release.card()
        for write in (card.to_text, card.to_markdown, card.to_latex, card.to_html):
            assert write()

    check_share(480, mutated(RELEASE), use, least=REFUSED_MOSTLY)


MEDIAN = objectives.pinball([0.2, 0.4, 0.9], [(0, 1)], 0.5)
OPSAMP: dict[str, Any] = {
    "objective": MEDIAN,
    "box": [(0, 1)],
    "lipschitz": 1.0,
    "n": 3,
    "epsilon": 1.0,
    "delta": 1e-3,
    "draws": 5,
    "oracle": PiecewiseLinearOracle(),
    "adjacency": "replace",
    "calibration": "proved",
    "sigma": None,
    "grid": None,
    "centred": True,
    "random_state": 0,
    "budget": None,
}
PROBLEM_PARTS, NOISE_PARTS = ("objective", "box", "lipschitz", "n"), ("calibration", "sigma", "grid", "centred")


def run_opsamp(**options: Any) -> ps.Run:
    """`ps.opsamp` with the parts of its problem and of its noise among the arguments."""
    problem = ps.BoxProblem(**{name: options.pop(name) for name in PROBLEM_PARTS})
    noise = SamplingNoise(**{name: options.pop(name) for name in NOISE_PARTS})
    return ps.opsamp(problem, noise=noise, **options)


def test_box_release_files() -> None:
    def use(content: Any) -> None:
        release = ps.Release.from_json(json.dumps(content))
        assert ps.Release.from_json(release.to_json()).to_json() == release.to_json()

    check_share(180, mutated(json.loads(run_opsamp(**OPSAMP).release.to_json())), use, least=REFUSED_MOSTLY)


@fuzz(150)
@given(st.data())
def test_release_texts(data: st.DataObject) -> None:
    text = json.dumps(RELEASE)
    at = data.draw(st.integers(0, len(text)))
    piece = data.draw(
        st.one_of(st.text(max_size=8), st.sampled_from(["NaN", "Infinity", "1e999", "9" * 5000, "[" * 5000, "null"]))
    )
    with only():
        ps.Release.from_json(text[:at] + piece + text[at + data.draw(st.integers(0, 9)) :])
    with only():
        ps.Release.from_json(data.draw(ANYTHING))


def test_guarantees() -> None:
    def use(values: Any) -> None:
        guarantee = ps.Guarantee.from_dict(values)
        assert guarantee.sentence()
        guarantee.under("replace")
        ps.Accountant(1.0, 1e-6).spend(guarantee)

    check_share(350, mutated(RELEASE["guarantee"], ANYTHING), use, least=REFUSED_MOSTLY)


# --- oracles and models that are made already ------------------------------------------------------------------------


FITTED = ps.PrivateShortCard(schema=SCHEMA, max_features=1, random_state=0).fit(FRAME.drop(columns="ill"), FRAME["ill"])


@fuzz(150)
@given(ANYTHING, ANYTHING)
def test_oracles_that_return_nonsense(weights: Any, bound: Any) -> None:
    class Nonsense:
        def minimise(self, problem: Any, perturbation: Any) -> Any:
            return SimpleNamespace(weights=weights, bound=bound)

    with only():
        ps.opdisc(PROBLEM, 1.0, oracle=Nonsense(), random_state=0)


# --- every argument with every awkward value -----------------------------------------------------------------------------


AWKWARD = (
    None,
    "x",
    "",
    b"",
    [],
    {},
    (),
    Odd(),
    Odd,
    1j,
    True,
    -1,
    0,
    2,
    1.5,
    1e-300,
    1e-12,
    1e6,
    1e300,
    1.7e308,
    math.nan,
    math.inf,
    -math.inf,
    2**63,
    2**64,
    10**400,
    -(10**400),
    [1, 2],
    [[1]],
    np.array([1.5]),
    np.float64("nan"),
    GUARANTEE,
    TABLE,
    PROBLEM,
)
BALL = PROBLEM.domain
PLAN: dict[str, Any] = {"n": 100, "widths": [1.0], "lipschitz": 1.0, "epsilon": 1.0, "delta": 1e-6, "draws": 10}


def answering(**answer: Any) -> Any:
    """An oracle that always gives this answer."""
    found = {"weights": np.array([0, 0]), "bound": -1e9} | answer
    return SimpleNamespace(minimise=lambda problem, perturbation: SimpleNamespace(**found))


ARGUMENTS: dict[str, Callable[[Any], Any]] = {
    "exponential epsilon": lambda v: ps.exponential(PROBLEM, v),
    "exponential prior": lambda v: ps.exponential(PROBLEM, 1.0, prior=v),
    "exponential budget": lambda v: ps.exponential(PROBLEM, 1.0, budget=v),
    "exponential max_nodes": lambda v: ps.exponential(PROBLEM, 1.0, method="tree", max_nodes=v),
    "exponential_utility_bound domain": lambda v: ps.exponential_utility_bound(v, 1.0),
    "exponential_utility_bound epsilon": lambda v: ps.exponential_utility_bound(BALL, v),
    "exponential_utility_bound weights": lambda v: ps.exponential_utility_bound(BALL, 1.0, weights=v),
    "exponential_utility_bound beta": lambda v: ps.exponential_utility_bound(BALL, 1.0, beta=v),
    "opdisc epsilon": lambda v: ps.opdisc(PROBLEM, v),
    "opdisc epsilon, gaussian": lambda v: ps.opdisc(PROBLEM, v, noise="gaussian", delta=1e-6),
    "opdisc delta": lambda v: ps.opdisc(PROBLEM, 1.0, noise="gaussian", delta=v),
    "opdisc oracle": lambda v: ps.opdisc(PROBLEM, 1.0, oracle=v),
    "opdisc answer": lambda v: ps.opdisc(
        PROBLEM, 1.0, oracle=SimpleNamespace(minimise=lambda problem, perturbation: v)
    ),
    "opdisc answer's weights": lambda v: ps.opdisc(PROBLEM, 1.0, oracle=answering(weights=v)),
    "opdisc answer's bound": lambda v: ps.opdisc(PROBLEM, 1.0, oracle=answering(bound=v)),
    "opdisc answer's work": lambda v: ps.opdisc(PROBLEM, 1.0, oracle=answering(work=v)),
    "opdisc oracle's tolerance": lambda v: ps.opdisc(PROBLEM, 1.0, oracle=ps.oracles.HighsOracle(tolerance=v)),
    "rspm epsilon": lambda v: ps.rspm(PROBLEM, v),
    "rspm indicators": lambda v: ps.rspm(PROBLEM, 1.0, oracle="enumeration", indicators=v),
    "sphere_noise domain": lambda v: ps.sphere_noise(v, 1.0),
    "sphere_noise solver_tolerance": lambda v: ps.sphere_noise(BALL, 1.0, solver_tolerance=v),
    "sphere_noise beta": lambda v: ps.sphere_noise(BALL, 1.0).utility_bound(v),
    "separator_noise domain": lambda v: ps.separator_noise(v, 1.0),
    "separator_noise count": lambda v: ps.separator_noise(BALL, 1.0, count=v),
    "separator_noise beta": lambda v: ps.separator_noise(BALL, 1.0).utility_bound(v),
    "Perturbation.lifted domain": lambda v: ps.Perturbation.lifted(v, [1.0, 2.0, 3.0]),
    "Perturbation.lifted noise": lambda v: ps.Perturbation.lifted(BALL, v),
    "oracles.get": ps.oracles.get,
    "Accountant epsilon": lambda v: ps.Accountant(v).remaining(),
    "Accountant delta": lambda v: ps.Accountant(1.0, v).remaining(),
    "Accountant plan": lambda v: ps.Accountant(1.0, plan=v),
    "compose delta": lambda v: compose([GUARANTEE], v),
    "compose epsilon": lambda v: compose([replace(GUARANTEE, profile=Pure(v))] * 3, 1e-6),
    "Guarantee to_pld": lambda v: replace(GUARANTEE, profile=Approximate(v, 0.1)).to_pld(),
    "Guarantee epsilon": lambda v: ps.Accountant(1.0, 1e-6).spend(replace(GUARANTEE, profile=Pure(v))),
    "Guarantee zcdp": lambda v: replace(GUARANTEE, profile=Pure(1.0, v)).to_event(),
    "Guarantee sentence": lambda v: replace(GUARANTEE, profile=Pure(v)).sentence(),
    "Categories options": lambda v: Categories("a", [v]),
    "Bins cuts": lambda v: Bins("a", [v], "intervals"),
    "Number high": lambda v: Number("a", 0, v),
    "Number step": lambda v: Number("a", 0, 1, step=v),
    "Number scale": lambda v: Schema([Number("hours", 0, 1, scale=v)]).encode(FRAME),
    "Label positive": lambda v: Label("a", v),
    "a number in a table": lambda v: SCHEMA.table(FRAME.assign(age=pd.Series([v, 1], dtype=object))),
    "a label in a table": lambda v: SCHEMA.table(FRAME.assign(ill=pd.Series([v, "no"], dtype=object))),
    "evaluate epsilon": lambda v: FITTED.evaluate(FRAME.drop(columns="ill"), FRAME["ill"], v),
    "truncated_deviation radius": lambda v: objectives.truncated_deviation([0.5], [(0, 1)], v),
    "pinball data": lambda v: objectives.pinball(v, [(0, 1)], 0.5),
    "opsamp draws": lambda v: run_opsamp(**OPSAMP | {"draws": v}),
    **{f"plan_opsamp {key}": lambda v, key=key: plan_opsamp(**PLAN | {key: v}) for key in PLAN},
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_awkward_values(name: str) -> None:
    for value in AWKWARD:
        with only():
            ARGUMENTS[name](value)


@pytest.mark.parametrize(
    "answer", [{"bound": 1e308}, {"bound": 10**400}, {"lower": -(10**400)}, {"weights": [[1], []]}]
)
def test_the_noise_survives_a_wrong_answer(answer: dict[str, Any]) -> None:
    budget = ps.Accountant(1.0)
    with pytest.raises(ps.OracleNotCertified) as caught:
        ps.opdisc(PROBLEM, 1.0, oracle=answering(**answer), random_state=0, budget=budget)
    assert caught.value.retry is not None
    retried = caught.value.retry("tree").release
    assert retried.weights.tolist() == ps.opdisc(PROBLEM, 1.0, random_state=0).release.weights.tolist()
    assert len(budget.history) == 1


@pytest.mark.parametrize("options", [{"n_jobs": 0}, {"n_jobs": 2**63}, {"n_jobs": "x"}, {"draws": 2**40}])
def test_what_opsamp_cannot_run_costs_nothing(options: dict[str, Any]) -> None:
    budget = ps.Accountant(1.0, 0.01)
    with pytest.raises(ValueError, match=f"^{next(iter(options))} must"):
        run_opsamp(**OPSAMP | options | {"budget": budget})
    assert not budget.history


def test_an_evaluation_with_too_much_noise_costs_nothing() -> None:
    budget = ps.Accountant(1.0)
    with pytest.raises(ValueError, match=r"^epsilon must be at least"):
        FITTED.evaluate(FRAME.drop(columns="ill"), FRAME["ill"], 1e-20, budget=budget)
    assert not budget.history


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int8, np.uint64, Fraction])
def test_every_kind_of_number_gives_the_noise_of_a_float(kind: Any) -> None:
    """In numpy's narrow numbers the noise scale would be rounded, or wrap around."""
    epsilon = kind(3)
    assert ps.sphere_noise(BALL, epsilon) == ps.sphere_noise(BALL, 3.0)
    assert ps.separator_noise(BALL, epsilon) == ps.separator_noise(BALL, 3.0)
    assert inverse_temperature(epsilon, "replace", PROBLEM.loss) == inverse_temperature(3.0, "replace", PROBLEM.loss)
    assert type(Pure(epsilon).epsilon) is float


def test_integers_beyond_numpy_in_a_table() -> None:
    three = FRAME.iloc[[0, 0, 0]]
    plain = SCHEMA.encode(three.assign(age=[1e30, 20, None], hours=[1e30, 5, -1e30]))
    wide = pl.from_pandas(three).with_columns(age=pl.Series([2**64, 20, None]), hours=pl.Series([2**64, 5, -(2**64)]))
    assert wide.schema["age"] == wide.schema["hours"] == pl.Int128
    objects = three.assign(age=[10**400, 20, None], hours=[10**400, 5, -(10**400)]).astype(object)
    for frame in (wide, objects):
        assert np.array_equal(SCHEMA.encode(frame), plain)


# --- ledgers ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ledger_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("ledger") / "good.ledger"
    ledger = ps.Ledger.create(path, 1.0, 1e-6, dataset="survey")
    for _ in range(3):
        ledger.spend(replace(GUARANTEE, profile=Pure(0.1)), "note")
    return path.read_bytes()


@fuzz(150)
@given(data=st.data())
def test_damaged_ledgers(tmp_path_factory: pytest.TempPathFactory, ledger_bytes: bytes, data: st.DataObject) -> None:
    content = bytearray(ledger_bytes)
    damage = data.draw(st.sampled_from(["bits", "cut", "junk", "zeros"]))
    if damage == "bits":
        for at in data.draw(st.lists(st.integers(0, len(content) * 8 - 1), min_size=1, max_size=8)):
            content[at // 8] ^= 1 << at % 8
    elif damage == "cut":
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    elif damage == "zeros":
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + 200] = bytes(len(content[at : at + 200]))
    else:
        content = bytearray(data.draw(st.binary(max_size=200)))
    path = tmp_path_factory.mktemp("ledger") / "x.ledger"
    path.write_bytes(content)
    with only(OSError):
        ledger = ps.Ledger.open(path)
        spent = ledger.totals()  # damage that goes unnoticed has changed nothing
        assert spent == ps.Ledger.open(path).totals()
        assert spent.releases == 3
        ledger.spend(replace(GUARANTEE, profile=Pure(0.1)))


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
