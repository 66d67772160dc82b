"""Models as values: the ones there are, and one of a user's own that is released and read back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import privsolve as ps
from privsolve.data import Bins, Categories, Label, Number, Schema
from privsolve.models.base import Model, check_fields
from privsolve.models.choices import Member
from privsolve.models.linear import LinearRule
from promises import promise

SCHEMA = Schema(
    [Categories("colour", ["red", "blue"]), Bins("age", [30, 50], "thresholds"), Number("dose", 0, 10, 1, 10)],
    Label("ill", "yes", "no"),
)
FRAME = pd.DataFrame({"colour": ["red", "blue", None], "age": [20, 40, 60], "dose": [0.0, 5.0, 10.0]})


def rule(weights: list[int], schema: Schema = SCHEMA) -> LinearRule:
    return LinearRule(np.array(weights), schema.features, schema.scales, schema.intercept, schema)


@dataclass(frozen=True)
class Coin(Model):
    """Says the same of everybody."""

    answer: bool
    kind: ClassVar[str] = "test-coin"
    setting_fields: ClassVar[frozenset[str]] = frozenset({"why"})

    def describe(self) -> str:
        return f"always {self.answer}"

    def predict(self, table: Any) -> NDArray[Any]:
        return np.full(len(table), self.answer)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "answer": self.answer}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Coin:
        check_fields(values, {"answer"})
        return cls(bool(values["answer"]))


def test_a_model_of_ones_own_is_released_and_read_back() -> None:
    first = ps.Release(Coin(True), promise(1.0), {"why": "a test"})
    again = ps.Release.from_json(first.to_json())
    assert again.model == Coin(True)
    assert again.to_json() == first.to_json()
    assert again.predict(FRAME).tolist() == [True] * 3
    assert (again.domain, again.loss, again.schema) == (None, None, None)
    with pytest.raises(AttributeError, match="test-coin has no weights"):
        _ = again.weights
    with pytest.raises(ValueError, match="release is a test-coin: only a linear rule is a scorecard"):
        again.card()
    with pytest.raises(ValueError, match="setting has missing or unknown fields: why"):
        ps.Release(Coin(True), promise(1.0))


def test_a_kind_is_taken_once() -> None:
    with pytest.raises(TypeError, match=r"model kind 'linear-rule' belongs to privsolve\.models\.linear"):
        type("Other", (Model,), {"kind": "linear-rule"})
    with pytest.raises(TypeError, match="kind must be a text"):
        type("Nameless", (Model,), {"kind": ""})


def test_a_rule_looks_only_at_the_columns_with_points() -> None:
    one = rule([0, 0, 2, 0, 0, -1])
    assert [column.column for column in one.used.stated_schema.columns] == ["age"]
    assert one.predict(FRAME[["age"]]).tolist() == ["no", "yes", "yes"]
    assert one.scores(FRAME[["age"]]).tolist() == [-1, 1, 1]
    assert one.used.used.features == one.used.features
    with pytest.raises(ValueError, match="no column 'age'"):
        one.predict(FRAME[["colour"]])
    nothing = rule([0, 0, 0, 0, 0, 1])
    assert nothing.predict(FRAME).tolist() == ["yes"] * 3


def test_rules_and_members_describe_themselves() -> None:
    assert rule([1, 0, 0, 0, 3, -2]).describe() == "positive if 1 × colour=red + 3/10 × dose > 2"
    assert rule([0] * 6).describe() == "positive if 0 > 0"
    member = Member(np.array([0, 2, 0]), ("a", "b", "c"))
    assert member.describe() == "b = 2"
    with pytest.raises(TypeError, match="a member does not predict: it is b = 2"):
        member.predict(FRAME)


def test_a_rule_without_a_schema_cannot_be_applied() -> None:
    bare = LinearRule(np.array([1, 0]), ("a", "b"), (1, 1), False)
    assert "schema" not in bare.to_dict()
    with pytest.raises(ValueError, match="has no schema"):
        bare.predict(FRAME)


def test_costs_give_members() -> None:
    problem = ps.LinearProblem([[1, 2]], ps.SignCube(2), largest=6)
    released = ps.opdisc(problem, 1.0, oracle="enumeration", random_state=0).release
    assert isinstance(ps.Release.from_json(released.to_json()).model, Member)
    assert json.loads(released.to_json())["setting"]["loss"]["kind"] == "linear"
