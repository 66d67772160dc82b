"""How a problem is solved is decided by what is public: domain, scales and declared ranges, never by the records."""

from __future__ import annotations

import numpy as np
import pytest

import privsolve as ps
from privsolve.engines.coordinates.instance import lay_out
from privsolve.mechanisms.exponential import ExponentialSampler
from privsolve.oracles import TreeOracle

CARDS = ps.SparsePoints(3, 2, 2)
BINARY = [(0, 1)] * 3


def records(last: list[int], ranges: list[tuple[int, int]] | None = None) -> ps.PatternTable:
    return ps.PatternTable.from_records([[0, 1, 0], [1, 0, 1], last], [True, False, True], ranges=ranges)


def test_one_record_does_not_change_the_method() -> None:
    """A 2 in one record of a table that declares it possible: both neighbours go to the general method."""
    wider = [(0, 1), (0, 2), (0, 1)]
    problems = [ps.Problem(records(last, wider), CARDS) for last in ([1, 1, 0], [1, 2, 0])]
    methods = [ExponentialSampler(problem, 1.0, random_state=0).statistics["method"] for problem in problems]
    assert methods == ["tree", "tree"]
    solved = [TreeOracle().minimise(problem, ps.Perturbation.zero(CARDS)).work for problem in problems]
    assert [sorted(work) for work in solved] == [["nodes"], ["nodes"]]


def test_a_scorecard_without_declarations_asks_yes_no_questions() -> None:
    """It is solved by supports, or refused before anything is paid for: never by another method that one record chose."""
    problem = ps.Problem(records([1, 1, 0]), CARDS)
    assert ExponentialSampler(problem, 1.0, random_state=0).statistics["method"] == "supports"
    other, accountant = ps.Problem(records([1, 2, 0]), CARDS), ps.Accountant(10.0)
    with pytest.raises(ValueError, match="say what they are by `ranges` of the PatternTable"):
        ps.exponential(other, 1.0, budget=accountant)
    with pytest.raises(ValueError, match="say what they are by `ranges` of the PatternTable"):
        ps.rspm(other, 1.0, budget=accountant)
    assert accountant.history == ()


def test_declared_columns_are_solved_by_supports() -> None:
    problem = ps.Problem(records([1, 1, 0], BINARY), CARDS)
    assert ExponentialSampler(problem, 1.0, random_state=0).statistics["method"] == "supports"
    assert "supports" in TreeOracle().minimise(problem, ps.Perturbation.zero(CARDS)).work
    with_intercept = ps.SparsePoints(3, 1, 2, intercept=1)
    table = ps.PatternTable([[0, 1, 1]], [1], [0], ranges=BINARY)
    assert ExponentialSampler(ps.Problem(table, with_intercept), 1.0).statistics["method"] == "tree"
    table = ps.PatternTable([[0, 1, 1]], [1], [0], ranges=[(0, 1), (0, 1), (1, 1)])
    assert ExponentialSampler(ps.Problem(table, with_intercept), 1.0).statistics["method"] == "supports"


def test_records_outside_the_declaration_are_refused_without_showing_them() -> None:
    with pytest.raises(ValueError, match=r"features\['x1'\] has values outside its declared range 0 to 1") as error:
        records([1, 734, 0], BINARY)
    assert "734" not in str(error.value)
    for wrong in ([(0, 1)], [(1, 0)] * 3, [(0, 0.5)] * 3, 5):
        with pytest.raises(ValueError, match="ranges"):
            records([1, 1, 0], wrong)  # type: ignore[arg-type]


def test_insisting_on_supports_is_a_declaration_that_is_checked_before_paying() -> None:
    account = ps.Accountant(epsilon=1.0, delta=0.0)
    with pytest.raises(ValueError, match="0/1 features"):
        ps.exponential(ps.Problem(records([1, 2, 0]), CARDS), 0.5, method="supports", budget=account)
    assert ps.exponential(ps.Problem(records([1, 1, 0]), CARDS), 1.0, method="supports", budget=account)


def test_a_schema_declares_its_features() -> None:
    schema = ps.Schema(
        [ps.Categories("colour", ["red", "blue"]), ps.Number("dose", 0, 2, 0.5, 2, missing=1)], ps.Label("y", 1)
    )
    assert schema.ranges == ((0, 1), (0, 1), (0, 4), (1, 1))
    assert schema.scales == (1, 1, 2, 1)
    frame = {"colour": ["red", "green"], "dose": [0.5, 99.0], "y": [1, 0]}
    pandas = pytest.importorskip("pandas")
    assert schema.table(pandas.DataFrame(frame)).table.ranges == schema.ranges


@pytest.mark.parametrize("domain", [ps.IntegerBall(3, 9), ps.SparsePoints(3, 2, 3), ps.SignCube(3)])
def test_the_layout_follows_the_declared_ranges(domain: ps.IntegerBall) -> None:
    """One record moves from 0 to the largest value of its column: the same columns are tabulated."""

    def levels(value: int, ranges: list[tuple[int, int]] | None) -> int:
        rows = [[0, 1, 0], [1, 0, 1], [1, 1, value], [1, 0, 3]]
        problem = ps.Problem(ps.PatternTable(rows, [1, 0, 2, 1], [0, 3, 1, 1], ranges=ranges), domain)
        return lay_out(problem, ps.Perturbation.zero(domain)).row_levels

    declared = [(0, 1), (0, 1), (0, 10_000)]
    assert levels(0, declared) == levels(9_999, declared) == 1
    assert (levels(0, None), levels(9_999, None)) == (0, 1)  # what the declaration is for
    assert levels(3, [(0, 1), (0, 1), (-3, 3)]) == 0


@pytest.mark.parametrize("seed", range(20))
def test_declaring_ranges_changes_no_answer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.integers(0, 2, size=(12, 2)), rng.integers(-40, 40, size=(12, 2))], axis=1)
    counts = rng.integers(0, 4, size=(2, 12)) + 1
    scales = [1, 1, 1, int(rng.choice([1, 7]))]
    domain = ps.IntegerBall(4, int(rng.integers(1, 8)))
    perturbation = ps.Perturbation.lifted(domain, rng.normal(size=domain.lift_dim))
    values = set()
    for ranges in (None, [(0, 1), (0, 1), (-40, 40), (-50, 60)], [(0, 1), (-3, 9), (-900, 900), (-40, 40)]):
        table = ps.PatternTable(rows, *counts, scales=scales, ranges=ranges)
        values.add(TreeOracle().minimise(ps.Problem(table, domain), perturbation).value)
    assert len(values) == 1
