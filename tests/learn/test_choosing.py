"""`PrivateClassifier`: a card or a tree in one fit, scikit-learn's own checks, and what is spent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import privsolve as ps
from privsolve.cards.scorecard import Scorecard
from privsolve.cards.tree_card import TreeCard
from privsolve.data import Categories, Label, Schema
from privsolve.mechanisms.unions import UnionProgress
from privsolve.models.linear import LinearRule
from privsolve.models.tree import DecisionTree
from small_tables import INDICATORS, SCHEMA, patients

FRAME = patients()
X, Y = FRAME.drop(columns="ill"), FRAME["ill"]
CHECKS = parametrize_with_checks([ps.PrivateClassifier(2000.0, depth=2, max_features=2, random_state=0)])


@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def parity(n: int = 400) -> tuple[pd.DataFrame, Any, Schema]:
    """Yes where one of two is yes, not both: a tree says it, no card can."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({name: rng.choice(["yes", "no"], n) for name in "abcd"})
    schema = Schema([Categories(name, ["yes"], other="no") for name in "abcd"], Label("odd", "yes", "no"))
    return frame, np.where((frame["a"] == "yes") ^ (frame["b"] == "yes"), "yes", "no"), schema


def majority(n: int = 400) -> tuple[pd.DataFrame, Any, Schema]:
    """Yes where three of four are yes: a card says it, a tree needs many questions."""
    frame, _, schema = parity(n)
    return frame, np.where((frame == "yes").sum(axis=1) >= 3, "yes", "no"), schema


@pytest.mark.parametrize(("data", "kind"), [(parity, DecisionTree), (majority, LinearRule)])
def test_the_class_that_fits_is_chosen(data: Any, kind: type) -> None:
    frame, y, schema = data()
    fitted = ps.PrivateClassifier(2.0, schema=schema, random_state=0).fit(frame, y)
    assert isinstance(fitted.model_, kind)
    assert isinstance(fitted.card_, TreeCard if kind is DecisionTree else Scorecard)
    assert fitted.score(frame, y) == 1.0
    assert (fitted.release_.predict(frame) == y).all()
    again = ps.Release.from_json(fitted.release_.to_json())
    assert (again.predict(frame) == y).all()
    assert again.setting["union"]["weights"] == {"card": 0.5, "tree": 0.5}
    assert fitted.privacy_.epsilon == 2.0
    for form in (fitted.card_.to_text(), fitted.card_.to_markdown(), fitted.card_.to_latex(), fitted.card_.to_html()):
        assert form


@pytest.mark.parametrize("data", [parity, majority])
def test_either_kind_is_evaluated(data: Any) -> None:
    frame, y, schema = data()
    fitted = ps.PrivateClassifier(2.0, schema=schema, random_state=0).fit(frame, y)
    found = fitted.evaluate(frame, y, 50.0, random_state=0)
    assert found.cells.accuracy().value == pytest.approx(1.0, abs=0.01)
    assert found.guarantee.epsilon == 50.0
    assert "How good it is" in fitted.release_.with_evaluation(found).card().to_text()


def test_numbers_are_cut_for_both_kinds() -> None:
    kinds = set()
    for seed in range(12):
        fitted = ps.PrivateClassifier(0.5, schema=SCHEMA, random_state=seed).fit(X, Y)
        kinds.add(type(fitted.model_))
        assert (fitted.predict(X) == fitted.release_.predict(X)).all()
        assert {name for name in fitted.get_feature_names_out() if name.startswith("dose")} >= {"dose>=1"}
    assert kinds == {LinearRule, DecisionTree}


def test_weights_say_what_is_likely_beforehand() -> None:
    def cards(models: Any) -> int:
        fits = (
            ps.PrivateClassifier(0.01, models=models, schema=INDICATORS, random_state=seed).fit(X, Y)
            for seed in range(25)
        )
        return sum(isinstance(fitted.model_, LinearRule) for fitted in fits)

    assert cards({"card": 0.98, "tree": 0.02}) > 20
    assert cards({"card": 0.02, "tree": 0.98}) < 5
    assert cards(("card",)) == 25
    assert cards(["tree"]) == 0


def test_costs_are_the_same_for_both() -> None:
    fitted = ps.PrivateClassifier(20.0, schema=SCHEMA, false_negative=50, random_state=0).fit(X, Y)
    plain = ps.PrivateClassifier(20.0, schema=SCHEMA, random_state=0).fit(X, Y)
    assert (fitted.predict(X) == "yes").sum() > (plain.predict(X) == "yes").sum()
    union = fitted.release_.setting["union"]
    assert union["cards"]["loss"] == {"kind": "zero-one", "false_positive": 1, "false_negative": 50}
    assert union["trees"]["trees"]["leaves"]["costs"] == [[0, 1], [50, 0]]


def test_the_budget_pays_and_clones_share_it_and_the_callback() -> None:
    accountant, seen = ps.Accountant(1.0), []
    estimator = ps.PrivateClassifier(0.6, schema=INDICATORS, budget=accountant, progress=seen.append, random_state=0)
    clone(estimator).fit(X, Y)
    assert seen
    assert isinstance(seen[-1], UnionProgress)
    with pytest.raises(ps.BudgetExceeded):
        estimator.fit(X, Y)
    assert len(accountant.history) == 1


@pytest.mark.parametrize(
    "tree", [ps.PrivateTreeClassifier(schema=INDICATORS), ps.PrivateTreeRegressor(schema=INDICATORS)]
)
def test_trees_tell_their_progress(tree: Any) -> None:
    seen: list[float] = []
    y = Y if isinstance(tree, ps.PrivateTreeClassifier) else (Y == "yes").astype(float)
    bounds = {} if isinstance(tree, ps.PrivateTreeClassifier) else {"low": 0, "high": 1}
    clone(tree).set_params(progress=seen.append, random_state=0, **bounds).fit(X, y)
    assert seen[-1] == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"models": ()}, "models must name one or both"),
        ({"models": "card"}, "models must name one or both"),
        ({"models": ("card", "forest")}, "models must name one or both"),
        ({"models": ("card", "card")}, "models must name one or both"),
        ({"models": {"card": 1.0, "tree": 0.0}}, "weights must be positive"),
        ({"depth": 0}, "depth"),
        ({"max_features": 0}, "max_features"),
        ({"adjacency": "swap"}, "adjacency"),
        ({"false_negative": 0.5}, "false_negative"),
        ({"tree_prior": ps.TreePrior(2.0)}, "prior: split"),
    ],
)
def test_wrong_arguments_spend_nothing(options: dict[str, Any], message: str) -> None:
    accountant = ps.Accountant(1.0)
    with pytest.raises(ValueError, match=message):
        ps.PrivateClassifier(0.5, schema=INDICATORS, budget=accountant, **options).fit(X, Y)
    assert accountant.history == ()


@pytest.mark.parametrize("models", [("tree",), {"card": 1e-6, "tree": 1.0}], ids=["tree", "either"])
def test_monotone_in_a_column(models: Any) -> None:
    """The older are never told less, as far as the tree can see."""
    prior = ps.TreePrior(monotone={"age": 1})
    fitted = ps.PrivateClassifier(8.0, models=models, depth=2, tree_prior=prior, schema=SCHEMA, random_state=2).fit(
        X, Y
    )
    assert fitted.release_.setting["prior"]["monotone"] == {"age": 1}
    ages = X.head(3).assign(colour="blue", dose=1.0, age=[20.0, 40.0, 60.0])
    assert fitted.predict(ages).tolist() == ["no", "no", "yes"]
