"""Full scorecards for a number: what is learnt, refused, spent and written to files."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privsolve as ps
from privsolve import Bins, Categories, Constraints, Schema
from privsolve.models.full_card import NumberScale


def table(n: int = 3000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    ages, colours = rng.integers(18, 90, n), rng.choice(["red", "green", "blue"], n)
    frame = pd.DataFrame({"age": ages, "colour": colours, "size": rng.random(n) * 10})
    frame["price"] = 10.0 * (ages >= 50) + 4.0 * (colours == "red") + rng.normal(0, 1, n)
    return frame


COLOURS = Categories("colour", ["red", "green", "blue"])
SCHEMA = Schema([Bins("age", [30, 50, 70], "thresholds"), COLOURS, Bins("size", [3, 6], "thresholds")])
DATA = table()
X, Y = DATA.drop(columns="price"), DATA["price"]


def fitted(epsilon: float = 8.0, **options: Any) -> ps.PrivateScorecardRegressor:
    stated = {"low": -5, "high": 20, "schema": SCHEMA, "random_state": 0} | options
    return ps.PrivateScorecardRegressor(epsilon, **stated).fit(X, Y)


def test_the_card_is_in_units_of_the_outcome() -> None:
    model = fitted()
    assert model.score(X, Y) > 0.9
    effects = dict(zip(model.get_feature_names_out(), model.coef_, strict=True))
    assert effects["age>=50"] == pytest.approx(10, abs=1)
    assert effects["colour=red"] - effects["colour=blue"] == pytest.approx(4, abs=1.5)
    card = model.release_.model
    assert card.per_point == pytest.approx(np.abs(model.coef_).max() / 10, rel=0.06)
    assert model.predict(X) == pytest.approx(card.number_scale.start + card.per_point * model.totals(X))
    cut = fitted(low=2, high=12).predict(X)
    assert 2 <= cut.min() <= cut.max() <= 12
    assert model.diagnostics_.training_r2 == pytest.approx(model.score(X, Y), abs=0.01)
    assert np.array_equal(model.predict(pl.from_pandas(X)), model.predict(X))


def test_clipping_bounds_what_one_record_does() -> None:
    files = []
    for value in (1e300, 20.0):
        y = Y.to_numpy().copy()
        y[0] = value
        model = ps.PrivateScorecardRegressor(1.0, low=-5, high=20, schema=SCHEMA, random_state=1)
        files.append(model.fit(X, y).release_.to_json())
    assert files[0] == files[1]


def test_limits_and_directions_are_kept() -> None:
    model = fitted(max_questions=1, constraints=Constraints({"age": "down"}, ["age"]), max_points=3)
    names = model.get_feature_names_out()
    assert {name.split(">=")[0].split("=")[0] for name, c in zip(names, model.coef_, strict=True) if c} <= {"age"}
    assert (model.coef_ <= 0).all()
    assert np.abs(np.cumsum(model.release_.model.weights[:3])).max() <= 3 * 3


def test_wrong_options_are_refused_before_anything_is_paid() -> None:
    account = ps.Accountant(10.0, 1e-4, "replace", composition_delta=0.0)
    for options, words in (
        ({"low": None}, "low and high must be stated"),
        ({"low": 20, "high": 3}, "low must be less than high"),
        ({"delta": 0}, "delta must be above 0"),
        ({"epsilon": -1}, "epsilon"),
        ({"max_points": 0}, "max_points"),
    ):
        with pytest.raises(ValueError, match=words):
            fitted(**{"budget": account, "schema": None} | options)
    assert account.history == ()


def test_a_release_goes_to_a_file_and_back() -> None:
    model = fitted()
    again = ps.PrivateScorecardRegressor.from_release(ps.Release.from_json(model.release_.to_json()))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.release_.to_json() == model.release_.to_json()
    tree = ps.PrivateTreeClassifier(1.0, depth=1, schema=SCHEMA).fit(X, (Y > 0).astype(int))
    with pytest.raises(ValueError, match="use the estimator of that kind"):
        ps.PrivateScorecardRegressor.from_release(tree.release_)


def test_a_draft_is_paid_from_epsilon() -> None:
    account = ps.Accountant(3.0, 1e-4, "replace", composition_delta=0.0)
    model = ps.PrivateScorecardRegressor(3.0, low=-5, high=20, budget=account, random_state=0).fit(X, Y)
    assert model.privacy_.epsilon == pytest.approx(3.0)
    assert len(account.history) == 2
    assert model.score(X, Y) > 0.5


def test_the_card_says_what_is_predicted() -> None:
    model = fitted()
    card = model.scorecard_
    answers = {"age": "70 or more", "colour": "red", "size": "under 3"}
    person = pd.DataFrame({"age": [75], "colour": ["red"], "size": [1.0]})
    (said,) = model.predict(person)
    assert card.decide(answers) == f"{said:.1f}"
    assert card.score(answers) == model.totals(person)[0]
    for text in (card.to_text(), card.to_markdown(), card.to_html(), card._repr_html_()):
        assert "Predicted price" in text
        assert "decision is" not in text.replace("That the decision is right or fair for a person", "")
    for write in (card.to_sql, card.to_python, card.to_javascript, card.to_xlsx):
        with pytest.raises(ValueError, match="a card for a number cannot be written as"):
            write()


@pytest.mark.parametrize(
    ("high", "value", "text"), [(20_000, 3120.4, "3,120"), (0.5, -0.001, "−0.001"), (80, -0.01, "0.0")]
)
def test_numbers_are_rounded_for_people(high: float, value: float, text: str) -> None:
    assert NumberScale("cost", 0.0, 1.0, -0.1, high).figures(value) == text
