"""Full cards: what a total means, decisions moved afterwards, files, and the same answers inside an engine."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import privsolve as ps
from long_cards import long_release
from privsolve.cards.scoring import with_predictions
from privsolve.cards.words import total_lines
from privsolve.models.base import model_from_dict
from privsolve.models.full_card import FullCard
from privsolve.models.outcomes import MOST_OUTCOMES
from privsolve.models.scales import RiskScale, cut_of_threshold, percent
from small_tables import INDICATORS as SCHEMA
from small_tables import patients

FRAME = patients()
DIM = SCHEMA.dim


def score_of(seed: int = 0, log_odds: float = 0.5) -> FullCard:
    rng = np.random.default_rng(seed)
    weights = rng.integers(-3, 4, DIM)
    return FullCard(weights, SCHEMA.features, SCHEMA.scales, SCHEMA.intercept, SCHEMA, log_odds=log_odds)


def test_a_full_card_goes_to_a_file_and_back() -> None:
    model = score_of().deciding_at(0.2)
    same = model_from_dict(json.loads(json.dumps(model.to_dict())))
    assert isinstance(same, FullCard)
    assert same.to_dict() == model.to_dict()
    assert (same.decide(FRAME) == model.decide(FRAME)).all()
    with pytest.raises(ValueError, match="holds a short card with risks"):
        model_from_dict(model.to_dict() | {"kind": "risk-score"})
    with pytest.raises(ValueError, match="missing or unknown fields: log_odds"):
        model_from_dict({name: value for name, value in model.to_dict().items() if name != "log_odds"})


def test_decisions_follow_the_threshold_and_nothing_else_changes() -> None:
    model = score_of(3)
    risks = model.risks(FRAME)
    for threshold in (0.0, 0.1, 0.31, 0.5, 0.77, 0.999, 1.0):
        moved = model.deciding_at(threshold)
        assert (moved.decide(FRAME) == (risks > threshold)).all()
        assert (moved.risks(FRAME) == risks).all()
    assert model.decide(FRAME).tolist() == (model.scores(FRAME) > 0).tolist()
    assert cut_of_threshold(0.5, 1.0) > 10_000
    with pytest.raises(ValueError, match="threshold must be a number from 0 to 1"):
        model.deciding_at(1.5)


def test_the_engine_says_the_same_as_the_model(tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "t.parquet")
    for seed in range(4):
        model = score_of(seed, 0.4).deciding_at(0.3)
        table = ps.open_table(str(tmp_path / "t.parquet"))
        found = with_predictions(table, model).to_pyarrow().to_pydict()
        assert np.allclose(found["risk"], model.risks(FRAME))
        assert found["prediction"] == model.predict(FRAME).tolist()
        assert [model.scale.risk(total) for total in found["score"]] == pytest.approx(model.risks(FRAME))


def test_only_the_columns_with_points_are_needed() -> None:
    weights = np.zeros(DIM, dtype=np.int64)
    weights[0], weights[-1] = 2, -1
    model = FullCard(weights, SCHEMA.features, SCHEMA.scales, SCHEMA.intercept, SCHEMA)
    column = SCHEMA.columns[0].column
    few = pd.DataFrame({column: FRAME[column]})
    assert (model.risks(few) == model.risks(FRAME)).all()


def test_the_lines_of_the_table_cover_every_total_with_its_risk() -> None:
    scale = RiskScale(0.5, 3.0)
    lines = total_lines([[0, 2], [0, -1], [0, 3, 5]], scale)
    totals = sorted({a + b + c for a in (0, 2) for b in (0, -1) for c in (0, 3, 5)})
    for total in totals:
        (line,) = [line for line in lines if line.low <= total <= line.high]
        assert line.risk == percent(scale.risk(total))
    assert (lines[0].low, lines[-1].high) == (totals[0], totals[-1])
    many = total_lines([range(0, 400)], RiskScale(0.01, 0.0))
    assert len(many) <= 20
    assert many[0].risk == "50% to 55%"


def test_totals_of_a_long_full_card_are_taken_together_by_their_risks() -> None:
    model = long_release(ps.datasets.adult_schema(), log_odds=0.2).model
    assert isinstance(model, FullCard)
    listed = model.outcomes().listed
    assert len(listed) <= MOST_OUTCOMES
    risks = [outcome.risk or 0.0 for outcome in listed]
    assert risks == sorted(risks)
    odds = np.log(np.array(risks[1:-1]) / (1 - np.array(risks[1:-1])))
    assert np.diff(odds).max() < 0.6
    assert [outcome.positive for outcome in listed] == [risk > 0.5 for risk in risks]
