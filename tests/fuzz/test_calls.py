"""Calls that begin as valid ones and have one argument changed: they get in, or end in a documented error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privsolve as ps
from fuzzing import FRAME, PROBLEM, SCHEMA, TABLE, check_share, one_changed
from privsolve.continuous import objectives
from privsolve.continuous.oracles import LipschitzOracle, PiecewiseLinearOracle
from privsolve.continuous.stability import SamplingNoise, draws_needed, plan_opsamp
from privsolve.data import Bins, Categories, Category, Dates, Label, Number, Schema
from privsolve.domains import Permutations, SpanningTrees, Subsets
from privsolve.domains.trees import TreeQuestions
from privsolve.losses import LinearLoss
from privsolve.models.leaves import LabelLeaves
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.composition import compose

X, Y = FRAME.drop(columns="ill"), FRAME["ill"]
BALL = PROBLEM.domain
PLANES = [BALL, ps.SignCube(2), ps.TernaryCube(2), ps.SparseSigns(2, 1), ps.FiniteSet([[1, 0], [0, 1]])]
EPSILONS = [1.0, 0.5, 2]
ADJACENCIES: list[Any] = ["replace", "add-remove", Adjacency.REPLACE]
STATES = [None, 0, 7]
SEEDS = [0, 7]
GUARANTEE = ps.exponential(PROBLEM, 0.5, random_state=0).release.guarantee
MEDIAN = objectives.pinball([0.2, 0.4, 0.9], [(0, 1)], 0.5)
TREES = ps.DecisionTrees(TreeQuestions.plain(("a", "b")), 2, LabelLeaves((0, 1)))


def columns(make: Callable[..., Any], column: str = "age") -> Callable[..., Any]:
    """A column of that kind, used to read a table."""
    return lambda **call: Schema([make(column, **call)]).encode(FRAME.assign(day="2020-01-01"))


def fitted(estimator: Callable[..., Any], **good: Any) -> Callable[..., Any]:
    """An estimator with these parameters, fitted."""
    return lambda **call: estimator(**good | call).fit(X, Y)


def opsamp(**call: Any) -> ps.Run:
    """`ps.opsamp` with the parts of its problem and of its noise among the arguments."""
    problem = ps.BoxProblem(**{name: call.pop(name) for name in ("objective", "box", "lipschitz", "n")})
    noise = SamplingNoise(**{name: call.pop(name) for name in ("calibration", "sigma", "grid", "centred")})
    return ps.opsamp(problem, noise=noise, **call)


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
    examples: int = 60
    least: float = 0.1


def calls(use: Callable[..., Any], examples: int = 60, least: float = 0.1, **valid: list[Any]) -> Calls:
    return Calls(use, valid, examples, least)


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
    "Dates": calls(
        columns(Dates, "day"),
        cuts=[["2000-01-31"], ("1990-01-01", "2001-01-01")],
        encoding=["thresholds", "intervals"],
        missing=[None, "unknown"],
        missing_values=[(), ["never"]],
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
    "Category": calls(
        lambda **call: Categories("colour", [Category(**call)]),
        name=["red", "r"],
        values=[("red",), ("a", "b")],
    ),
    "Schema": calls(
        Schema,
        columns=[SCHEMA.columns, list(SCHEMA.columns[:1])],
        label=[None, SCHEMA.label],
        intercept=[True, False],
    ),
    "Constraints": calls(
        ps.Constraints,
        directions=[{}, {"age": "up"}],
        required=[(), ["age"]],
        excluded=[(), ["hours"]],
        max_cuts=[{}, {"age": 1}],
        alternatives=[(), [("colour", "hours")]],
    ),
    "private_draft": calls(
        ps.private_draft,
        40,
        data=[FRAME],
        label=[SCHEMA.label],
        epsilon=EPSILONS,
        delta=[0.0, 1e-6],
        bounds=[None, {"age": (0, 99)}],
        leave_out=[(), ["hours"]],
        missing=[(), [-1]],
        intervals=[2, 4],
        adjacency=ADJACENCIES,
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
    "PatternTable.from_records": calls(
        ps.PatternTable.from_records,
        100,
        features=[[[1, 0], [0, 1]], np.array([[1, 1], [1, 1]])],
        labels=[[True, False], [0, 1], [-1, 1]],
        names=[None, ("a", "b")],
        scales=[None, (1, 99)],
    ),
    "IntegerBall": calls(ps.IntegerBall, dim=[1, 3], radius_sq=[1, 5]),
    "SignCube": calls(ps.SignCube, dim=[1, 3]),
    "TernaryCube": calls(ps.TernaryCube, dim=[1, 3]),
    "SparseSigns": calls(ps.SparseSigns, dim=[2, 3], k=[1, 2]),
    "SparsePoints": calls(
        ps.SparsePoints, dim=[3, 5], max_features=[1, 2], max_points=[1, 3], intercept=[None, 2, (-2, 2)]
    ),
    "FiniteSet": calls(ps.FiniteSet, points=[[[1, 0], [0, 1]], np.eye(3, dtype=int)]),
    "IntegerGrid": calls(ps.IntegerGrid, low=[[0, 0], (-1, 0)], high=[[1, 1], (5, 9)]),
    "Permutations": calls(Permutations, k=[2, 3]),
    "Subsets": calls(Subsets, dim=[3, 4], k=[1, 2]),
    "SpanningTrees": calls(SpanningTrees, nodes=[3], edges=[[(0, 1), (1, 2), (0, 2)], ((0, 1), (0, 2))]),
    "ZeroOneLoss": calls(ps.ZeroOneLoss, false_positive=[1, 5], false_negative=[1, 3]),
    "ScoreTable": calls(ps.ScoreTable, start=[0, -1], positive=[[3, 1], (5, 0)], negative=[[0, 1], (0, 2)]),
    "BrierLoss": calls(ps.BrierLoss, log_odds=[0.5, 1], span=[1.5, 3]),
    "LogLoss": calls(ps.LogLoss, log_odds=[0.5, 1], clip=[3.0, 2], span=[1.5, 3]),
    "LinearLoss": calls(LinearLoss, largest=[1, 100]),
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
    "release_or_failure": calls(
        ps.release_or_failure,
        records=[TABLE],
        problem_of=[lambda some: ps.Problem(some, BALL)],
        parts=[ps.Parts(5, 3.0, 0.5)],
        mechanism=["opdisc", "exponential"],
        adjacency=ADJACENCIES,
        random_state=STATES,
        budget=[None],
    ),
    "opdisc": calls(
        ps.opdisc,
        problem=[PROBLEM],
        epsilon=EPSILONS,
        delta=[None],
        adjacency=ADJACENCIES,
        noise=["gamma"],
        oracle=["tree", "enumeration"],
        random_state=STATES,
        budget=[None],
    ),
    "opdisc, gaussian": calls(
        ps.opdisc,
        problem=[PROBLEM],
        epsilon=EPSILONS,
        delta=[1e-6],
        noise=["gaussian", "gaussian-published"],
        random_state=SEEDS,
    ),
    "rspm": calls(
        ps.rspm,
        problem=[PROBLEM],
        epsilon=EPSILONS,
        delta=[None],
        adjacency=ADJACENCIES,
        noise=["linf-gamma", "laplace"],
        oracle=["tree", "enumeration"],
        indicators=[None],
        random_state=STATES,
        budget=[None],
    ),
    "exponential": calls(
        ps.exponential,
        problem=[PROBLEM],
        epsilon=EPSILONS,
        adjacency=ADJACENCIES,
        prior=[None, ps.SparsePrior()],
        random_state=STATES,
        method=["auto", "tree"],
        max_nodes=[1000],
        max_attempts=[1000],
        budget=[None],
    ),
    "choose": calls(
        ps.choose,
        150,
        scores=[[1, 2, 3], {"a": 1, "b": Fraction(1, 2)}],
        sensitivity=[1, Fraction(1, 2)],
        epsilon=EPSILONS,
        names=[None],
        monotone=[False],
        method=["permute-and-flip", "exponential"],
        step=[None],
        adjacency=ADJACENCIES,
        random_state=STATES,
    ),
    "private_tree": calls(
        lambda counts, **call: ps.private_tree(ps.TreeProblem([[0, 1], [1, 0]], counts, 6, TREES), **call),
        counts=[np.array([[3, 1], [0, 2]])],
        epsilon=EPSILONS,
        prior=[None, ps.TreePrior()],
        adjacency=ADJACENCIES,
        random_state=STATES,
        simplify=[True, False],
        max_attempts=[1000],
        budget=[None],
    ),
    "opsamp": calls(
        opsamp,
        100,
        objective=[MEDIAN],
        box=[[(0, 1)]],
        lipschitz=[1.0],
        n=[3],
        epsilon=EPSILONS,
        delta=[1e-3],
        draws=[5, 9],
        oracle=[PiecewiseLinearOracle(), None, LipschitzOracle(0.01)],
        adjacency=["replace"],
        calibration=["proved"],
        sigma=[None, 1.0],
        grid=[None, 0.125],
        centred=[True, False],
        random_state=SEEDS,
        budget=[None],
    ),
    "plan_opsamp": calls(
        plan_opsamp,
        100,
        n=[100, 1000],
        widths=[[1.0], (2, 1)],
        lipschitz=[1.0, 3],
        epsilon=EPSILONS,
        delta=[1e-6],
        draws=[10],
    ),
    "draws_needed": calls(
        draws_needed,
        40,
        n=[100, 1000],
        widths=[[1.0], (2, 1)],
        lipschitz=[1.0, 3],
        epsilon=EPSILONS,
        delta=[1e-6],
    ),
    "absolute_deviation": calls(
        objectives.absolute_deviation, data=[[0.5], [[0.1], [0.4]]], box=[[(0, 1)], [(-1, 1.5)]]
    ),
    "pinball": calls(objectives.pinball, data=[[0.5], [[0.1], [0.4]]], box=[[(0, 1)], [(-1, 1.5)]], level=[0.5, 0.9]),
    "truncated_deviation": calls(
        objectives.truncated_deviation,
        data=[[0.5], [[0.1], [0.4]]],
        box=[[(0, 1)], [(-1, 1.5)]],
        radius=[0.5, 2],
    ),
    "posted_price": calls(
        objectives.posted_price,
        valuations=[[0.5], [0.1, 0.4]],
        box=[[(0, 1)], [(0.5, 1.5)]],
        ramp=[0.1, 0.25],
        highest=[1, 2.5],
    ),
    "threshold_cost": calls(
        objectives.threshold_cost,
        scores=[[0.5, 0.9], [0.1, 0.4]],
        positive=[[True, False], [1, 1]],
        box=[[(0, 1)]],
        ramp=[0.1, 0.25],
        miss=[1, 2.5],
        false_alarm=[1, 0.5],
    ),
    # what noise and choices may cost
    "sphere_noise": calls(ps.sphere_noise, domain=PLANES, epsilon=EPSILONS),
    "separator_noise": calls(ps.separator_noise, domain=PLANES, epsilon=EPSILONS),
    "exponential_utility_bound": calls(ps.exponential_utility_bound, domain=PLANES, epsilon=EPSILONS, beta=[0.05, 0.5]),
    "choice_utility_bound": calls(
        ps.choice_utility_bound,
        candidates=[2, 9],
        sensitivity=[1, 2],
        epsilon=EPSILONS,
        beta=[0.05],
    ),
    # estimators
    "PrivateShortCard": calls(
        fitted(ps.PrivateShortCard, random_state=0),
        120,
        epsilon=EPSILONS,
        schema=[SCHEMA],
        max_features=[1, 2],
        max_points=[1, 3],
        intercept=[(-8, 8), 2],
        prior=[None, ps.SparsePrior()],
        false_positive=[1, 2],
        false_negative=[1, 5],
        objective=["mistakes"],
        adjacency=ADJACENCIES,
        budget=[None],
    ),
    "PrivateShortCard, risk": calls(
        fitted(ps.PrivateShortCard, random_state=0, objective="risk"),
        80,
        epsilon=EPSILONS,
        schema=[SCHEMA],
        max_features=[None, 2],
        max_points=[1, 3],
        intercept=[(-8, 8), 2],
        log_odds=[0.5, 1.0],
        false_positive=[1, 2],
        adjacency=ADJACENCIES,
        budget=[None],
    ),
    "PrivateScorecard": calls(
        fitted(ps.PrivateScorecard, random_state=0, schema=SCHEMA),
        60,
        epsilon=EPSILONS,
        delta=[1e-6, 1e-3],
        max_points=[3, 10],
        max_questions=[None, 1],
        sparsity=[0.0, 1.0],
        sample_rate=[1.0, 0.5],
        false_positive=[1, 2],
        adjacency=ADJACENCIES,
        budget=[None],
    ),
    "PrivateLinearClassifier": calls(
        fitted(ps.PrivateLinearClassifier, schema=Schema(SCHEMA.columns[:1], SCHEMA.label)),
        80,
        epsilon=EPSILONS,
        mechanism=["exponential"],
        domain=["cards", "ternary", ps.TernaryCube(5)],
        oracle=["tree"],
        noise=[None],
        delta=[None],
        false_positive=[1, 2],
        false_negative=[1, 5],
        adjacency=ADJACENCIES,
        budget=[None],
        random_state=SEEDS,
    ),
    "PrivateTreeClassifier": calls(
        fitted(ps.PrivateTreeClassifier, random_state=0, schema=Schema(SCHEMA.columns[:2], SCHEMA.label)),
        60,
        epsilon=EPSILONS,
        depth=[1, 2],
        leaves=["labels", "probabilities"],
        classes=[None],
        costs=[None],
        prior=[None, ps.TreePrior()],
        simplify=[True, False],
        adjacency=ADJACENCIES,
        budget=[None],
    ),
    "labels of a fit": calls(
        lambda X, y: ps.PrivateShortCard(schema=SCHEMA, max_features=1, random_state=0).fit(X, y),
        100,
        X=[X, FRAME],
        y=[Y, ["yes", "no"], np.array(["no", "yes"], dtype=object)],
    ),
    "predict": calls(
        lambda X: (FITTED.predict(X), FITTED.decision_function(X)),
        100,
        X=[X, X.iloc[::-1], X.head(1)],
    ),
    # budgets
    "Accountant": calls(
        spent,
        150,
        guarantee=[GUARANTEE],
        epsilon=EPSILONS,
        delta=[0.0, 1e-6],
        adjacency=["replace"],
        composition_delta=[None, 0.0],
        plan=[None, [GUARANTEE]],
    ),
    "compose": calls(compose, 100, plan=[[GUARANTEE], (GUARANTEE, GUARANTEE)], delta=[0.0, 1e-6]),
}


FITTED = ps.PrivateShortCard(schema=SCHEMA, max_features=1, random_state=0).fit(X, Y)


@pytest.mark.parametrize("name", CALLS)
def test_one_argument_changed(name: str) -> None:
    stated = CALLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        stated.use(**{argument: values[0] for argument, values in stated.valid.items()})  # it may have to be compiled
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
