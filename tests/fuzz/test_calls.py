"""Calls that begin as valid ones and have one argument changed: they get in, or end in a documented error."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privsolve as ps
from fuzzing import FRAME, NUMBER_VALUES, PROBLEM, SCHEMA, TABLE, Odd, check_share, one_changed, only
from privsolve.continuous import problem as objectives
from privsolve.continuous.oracles import LipschitzOracle, PiecewiseLinearOracle
from privsolve.continuous.stability import SamplingNoise
from privsolve.data import Bins, Categories, Category, Label, Number, Schema
from privsolve.domains.trees import TreeQuestions
from privsolve.mechanisms.exponential import inverse_temperature
from privsolve.models.leaves import LabelLeaves
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.profiles import Pure

X, Y = FRAME.drop(columns="ill"), FRAME["ill"]
BALL = PROBLEM.domain
PLANES = [BALL, ps.SignCube(2), ps.TernaryCube(2), ps.SparseSigns(2, 1), ps.FiniteSet([[1, 0], [0, 1]])]
SEEDS = [0, 7]
GUARANTEE = ps.exponential(PROBLEM, 0.5, random_state=0).release.guarantee
MEDIAN = objectives.pinball([0.2, 0.4, 0.9], [(0, 1)], 0.5)
TREES = ps.DecisionTrees(TreeQuestions.plain(("a", "b")), 2, LabelLeaves((0, 1)))


def columns(make: Callable[..., Any], column: str = "age") -> Callable[..., Any]:
    """A column of that kind, used to read a table."""
    return lambda **call: Schema([make(column, **call)]).encode(FRAME.assign(day="2020-01-01"))


def fitted(estimator: Callable[..., Any], **good: Any) -> Callable[..., Any]:
    """An estimator with these parameters, fitted."""
    return lambda epsilon, adjacency, budget, **call: estimator(
        epsilon, adjacency=adjacency, budget=budget, **good | call
    ).fit(X, Y)


def tree(epsilon: Any, adjacency: Any, random_state: Any, budget: Any, counts: Any) -> ps.Run:
    problem = ps.TreeProblem([[0, 1], [1, 0]], counts, 6, TREES)
    return ps.private_tree(problem, epsilon, adjacency=adjacency, random_state=random_state, budget=budget)


def opsamp(epsilon: Any, random_state: Any, budget: Any, **call: Any) -> ps.Run:
    """`ps.opsamp` with the parts of its problem and of its noise among the arguments."""
    problem = ps.BoxProblem(**{name: call.pop(name) for name in ("objective", "box", "lipschitz", "n")})
    noise = SamplingNoise(**{name: call.pop(name) for name in ("calibration", "sigma", "grid", "centred")})
    return ps.opsamp(problem, epsilon, noise=noise, random_state=random_state, budget=budget, **call)


def spent(guarantee: Any, **call: Any) -> None:
    account = ps.Accountant(**call)
    account.spend(guarantee)
    account.remaining()


def largest(records: Any, members: Any) -> Any:
    """A loss of one's own: 1 for members that are not the record."""
    return np.asarray([[int(tuple(record) != tuple(member)) for member in members] for record in records])


@dataclass(frozen=True)
class Calls:
    """Something that people call, and values that each of its arguments may have in a valid call."""

    use: Callable[..., Any]
    valid: dict[str, list[Any]]
    examples: int
    least: float

    def __call__(self, **changed: Any) -> Any:
        """The first valid call with these arguments changed."""
        return self.use(**{name: values[0] for name, values in self.valid.items()} | changed)


COMMON: dict[str, list[Any]] = {
    "problem": [PROBLEM],
    "epsilon": [1.0, 0.5, 2],
    "adjacency": ["replace", "add-remove", Adjacency.REPLACE],
    "random_state": [0, None, 7],
    "budget": [None],
}
"""Values of arguments that many have."""

EPSILONS, ADJACENCIES = COMMON["epsilon"], COMMON["adjacency"]


def calls(use: Callable[..., Any], examples: int = 60, least: float = 0.1, **valid: list[Any]) -> Calls:
    """State what is called; arguments of `COMMON` need not be stated."""
    common = {name: COMMON[name] for name in inspect.signature(use).parameters if name in COMMON}
    return Calls(use, common | valid, examples, least)


CALLS: dict[str, Calls] = {
    # what is public about a table
    "Categories": calls(
        columns(Categories, "colour"),
        options=[["red", "blue"], [Category("r", ("red", "rouge"))]],
        other=[None, "other"],
        missing=[None, "unknown"],
        no=[None, "green"],
        missing_values=[(), ["?"]],
    ),
    "Bins": calls(
        columns(Bins),
        cuts=[[30, 50], (18,)],
        encoding=["thresholds", "intervals"],
        whole=[True, False],
        missing=[None, "unknown"],
        missing_values=[(), [-1]],
        decimal=[".", ","],
    ),
    "Number": calls(
        columns(Number),
        low=[0, -1.5],
        high=[99, 120],
        step=[1, 0.5],
        scale=[1, 99],
        missing=[None, 0],
        missing_values=[(), [-1]],
    ),
    "Label": calls(
        lambda **call: Schema([Bins("age", [30])], Label("ill", **call)).table(FRAME),
        positive=["yes", ["yes", "y"]],
        negative=[None, "no"],
        missing=[None, "negative"],
    ),
    "Schema": calls(
        Schema, columns=[SCHEMA.columns, list(SCHEMA.columns[:1])], label=[None, SCHEMA.label], intercept=[True, False]
    ),
    "private_draft": calls(
        ps.private_draft,
        40,
        data=[FRAME],
        label=[SCHEMA.label],
        delta=[0.0, 1e-6],
        bounds=[None, {"age": (0, 99)}],
        leave_out=[(), ["hours"]],
        missing=[(), [-1]],
        intervals=[2, 4],
        random_state=SEEDS,
    ),
    # tables, domains, losses, priors
    "PatternTable": calls(
        ps.PatternTable,
        150,
        features=[[[1, 0], [0, 1]], np.array([[1, 1], [0, 1]]), [[2, 0], [1, -(2**40)]]],
        positives=[[1, 1], [0, 5]],
        negatives=[[1, 0], (2, 2)],
        names=[None, ("a", "b")],
        scales=[None, (1, 99)],
    ),
    "IntegerBall": calls(ps.IntegerBall, dim=[1, 3], radius_sq=[1, 5]),
    "SparsePoints": calls(
        ps.SparsePoints, dim=[3, 5], max_features=[1, 2], max_points=[1, 3], intercept=[None, 2, (-2, 2)]
    ),
    "FiniteSet": calls(ps.FiniteSet, points=[[[1, 0], [0, 1]], np.eye(3, dtype=int)]),
    "ZeroOneLoss": calls(ps.ZeroOneLoss, false_positive=[1, 5], false_negative=[1, 3]),
    "SparsePrior": calls(ps.SparsePrior, p_zero=[0.9, 0.5], decay=[0.4, 1.0]),
    # problems
    "Problem": calls(ps.Problem, 300, 0.3, table=[TABLE], domain=PLANES, loss=[ps.ZeroOneLoss(), ps.ZeroOneLoss(1, 5)]),
    "LinearProblem": calls(
        ps.LinearProblem,
        300,
        0.3,
        costs=[np.array([[1, 0], [0, 1]]), [[0, 0], [1, -1], [2, 0]], [[1, 1]]],
        domain=PLANES,
        largest=[100, 50],
        names=[None, ("a", "b")],
    ),
    "DiscreteProblem": calls(
        ps.DiscreteProblem,
        100,
        domain=PLANES,
        loss=[largest],
        records=[[(1, 0), (0, 1)], np.eye(2, dtype=int)],
        bound=[1, Fraction(3)],
        lipschitz=[None],
        step=[None, 1],
        clip=[True, False],
        names=[None, ("a", "b")],
    ),
    # mechanisms
    "Parts": calls(ps.Parts, count=[40, 99], epsilon=[2.0, 3], delta=[0.01, 0.1], allowed=[0, 1], withheld=[0.1, 0.5]),
    "opdisc": calls(ps.opdisc, delta=[None], noise=["gamma"], oracle=["tree", "enumeration"]),
    "rspm": calls(ps.rspm, delta=[None], noise=["linf-gamma", "laplace"], oracle=["tree", "enumeration"]),
    "exponential": calls(
        ps.exponential, prior=[None, ps.SparsePrior()], method=["auto", "tree"], max_nodes=[1000], max_attempts=[1000]
    ),
    "private_tree": calls(tree, counts=[np.array([[3, 1], [0, 2]])]),
    "opsamp": calls(
        opsamp,
        100,
        objective=[MEDIAN],
        box=[[(0, 1)]],
        lipschitz=[1.0],
        n=[3],
        delta=[1e-3],
        draws=[5, 9],
        oracle=[PiecewiseLinearOracle(), None, LipschitzOracle(0.01)],
        adjacency=["replace"],
        calibration=["proved"],
        sigma=[None, 1.0],
        grid=[None, 0.125],
        centred=[True, False],
    ),
    "pinball": calls(objectives.pinball, data=[[0.5], [[0.1], [0.4]]], box=[[(0, 1)], [(-1, 1.5)]], level=[0.5, 0.9]),
    # estimators
    "PrivateShortCard": calls(
        fitted(ps.PrivateShortCard, random_state=0),
        120,
        schema=[SCHEMA],
        max_features=[1, 2],
        max_points=[1, 3],
        intercept=[(-8, 8), 2],
        prior=[None, ps.SparsePrior()],
        false_positive=[1, 2],
        false_negative=[1, 5],
    ),
    "PrivateScorecard": calls(
        fitted(ps.PrivateScorecard, random_state=0, schema=SCHEMA),
        60,
        delta=[1e-6, 1e-3],
        max_points=[3, 10],
        max_questions=[None, 1],
        sparsity=[0.0, 1.0],
        sample_rate=[1.0, 0.5],
        false_positive=[1, 2],
    ),
    "PrivateTreeClassifier": calls(
        fitted(ps.PrivateTreeClassifier, random_state=0, schema=Schema(SCHEMA.columns[:2], SCHEMA.label)),
        60,
        depth=[1, 2],
        leaves=["labels", "probabilities"],
        classes=[None],
        costs=[None],
    ),
    "predict": calls(lambda X: (FITTED.predict(X), FITTED.decision_function(X)), 100, X=[X, X.iloc[::-1], X.head(1)]),
    # budgets
    "Accountant": calls(
        spent,
        150,
        guarantee=[GUARANTEE],
        epsilon=EPSILONS,
        delta=[0.0, 1e-6],
        adjacency=["replace"],
        composition_delta=[None, 0.0],
    ),
}


FITTED = ps.PrivateShortCard(schema=SCHEMA, max_features=1, random_state=0).fit(X, Y)


@pytest.mark.parametrize("name", CALLS)
def test_one_argument_changed(name: str) -> None:
    stated = CALLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        stated()  # it may have to be compiled
    check_share(stated.examples, one_changed(stated.valid), lambda call: stated.use(**call), least=stated.least)


def test_ledgers_with_one_argument_changed(tmp_path: Path) -> None:
    def use(call: dict[str, Any]) -> None:
        path = call["folder"] / f"{len(list(tmp_path.iterdir()))}.ledger"
        ledger = ps.Ledger.create(path, call["epsilon"], call["delta"], dataset=call["dataset"])
        ledger.mark(ledger.spend(GUARANTEE, note=call["note"]), call["outcome"])
        ps.Ledger.open(path)

    valid = {
        "folder": [tmp_path],
        "epsilon": EPSILONS,
        "delta": [0.0, 1e-6],
        "dataset": ["", "survey"],
        "note": ["", "first"],
        "outcome": ["released", "failed"],
    }
    check_share(60, one_changed(valid), use, OSError)


# --- awkward values, each in every one of these arguments -----------------------------------------------------------------


OTHERS = (None, "x", "", b"", [], {}, (), Odd(), Odd, 1j, [1, 2], [[1]], np.array([1.5]), GUARANTEE, TABLE, PROBLEM)
AWKWARD = (*NUMBER_VALUES, *OTHERS)


def answering(**answer: Any) -> Any:
    """An oracle that always gives this answer."""
    found = {"weights": np.array([0, 0]), "bound": -1e9} | answer
    return SimpleNamespace(minimise=lambda problem, perturbation: SimpleNamespace(**found))


ARGUMENTS: dict[str, Callable[[Any], Any]] = {
    "opdisc oracle": lambda v: ps.opdisc(PROBLEM, 1.0, oracle=v),
    "opdisc answer": lambda v: ps.opdisc(
        PROBLEM, 1.0, oracle=SimpleNamespace(minimise=lambda problem, perturbation: v)
    ),
    "opdisc answer's weights": lambda v: ps.opdisc(PROBLEM, 1.0, oracle=answering(weights=v)),
    "opdisc answer's bound": lambda v: ps.opdisc(PROBLEM, 1.0, oracle=answering(bound=v)),
    "opdisc oracle's tolerance": lambda v: ps.opdisc(PROBLEM, 1.0, oracle=ps.oracles.HighsOracle(tolerance=v)),
    "Guarantee epsilon": lambda v: ps.Accountant(1.0, 1e-6).spend(replace(GUARANTEE, profile=Pure(v))),
    "a number in a table": lambda v: SCHEMA.table(FRAME.assign(age=pd.Series([v, 1], dtype=object))),
    "a label in a table": lambda v: SCHEMA.table(FRAME.assign(ill=pd.Series([v, "no"], dtype=object))),
    "evaluate epsilon": lambda v: FITTED.evaluate(X, Y, v),
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
        CALLS["opsamp"](**options, budget=budget)
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
