"""Risk scores: what a total means, decisions moved afterwards, files, and the same answers inside an engine."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import privsolve as ps
from long_cards import long_release
from privsolve.cards.scoring import with_predictions
from privsolve.cards.totals import total_lines
from privsolve.losses import RiskLoss, loss_from_dict
from privsolve.models.base import model_from_dict
from privsolve.models.odds import RiskScale, cut_of_threshold, last_score, percent, risk_at
from privsolve.models.outcomes import MOST_OUTCOMES
from privsolve.models.risk import RiskScore
from small_tables import SCHEMA, patients

FRAME = patients()
DIM = SCHEMA.dim


def score_of(seed: int = 0, log_odds: float = 0.5) -> RiskScore:
    rng = np.random.default_rng(seed)
    weights = rng.integers(-3, 4, DIM)
    return RiskScore(weights, SCHEMA.features, SCHEMA.scales, SCHEMA.intercept, SCHEMA, log_odds=log_odds)


@pytest.mark.parametrize("loss", [ps.BrierLoss(0.5), ps.BrierLoss(0.3, 1.5), ps.LogLoss(0.7, 2.0)])
def test_the_tables_are_rounded_losses_of_the_stated_risk(loss: RiskLoss) -> None:
    for entry, score in enumerate(range(loss.first, loss.first + loss.table.shape[1])):
        p = 1 / (1 + math.exp(-loss.log_odds * score))
        assert loss.risks[entry] == pytest.approx(p)
        for label, chance in enumerate((p, 1 - p)):
            stated = (1 - chance) ** 2 if isinstance(loss, ps.BrierLoss) else min(-math.log(chance), 2.0) / 2.0
            assert abs(loss.table[label, entry] - 4096 * stated) <= 0.5 + 1e-6
    assert loss.entries(np.array([-(10**6), 10**6])).tolist() == [0, loss.table.shape[1] - 1]
    assert loss_from_dict(json.loads(json.dumps(loss.to_dict()))) == loss
    assert loss.largest <= 4096


def test_the_brier_table_is_least_at_the_true_risk() -> None:
    loss = ps.BrierLoss(0.5)
    for score in range(-6, 7):
        p = risk_at(0.5, Fraction(score))
        costs = 1000 * p * loss.table[0] + 1000 * (1 - p) * loss.table[1]
        assert abs(int(np.argmin(costs)) + loss.first - score) == 0


def test_a_narrow_span_lets_one_record_change_less_and_leaves_the_risks_of_the_model() -> None:
    wide, narrow = ps.BrierLoss(0.5), ps.BrierLoss(0.5, 1.5)
    assert narrow.entries(np.array([-9, -3, 3, 9])).tolist() == [0, 0, 6, 6]
    assert narrow.largest == int(np.ptp(wide.table[:, 7:-7], axis=1).max()) < 0.7 * wide.largest
    encoded = SCHEMA.table(FRAME)
    weights, domain = score_of().weights, ps.SparsePoints(DIM, DIM - 1, 3, (-3, 3))
    models = [ps.Problem(encoded.table, domain, loss, SCHEMA).model(weights) for loss in (wide, narrow)]
    for model in models:
        assert isinstance(model, RiskScore)
        assert model.risks(FRAME).min() < 0.05 < narrow.risks.min()
        assert model.risks(FRAME).tolist() == models[0].risks(FRAME).tolist()  # type: ignore[attr-defined]


def test_losses_written_without_a_span_have_the_whole_scale() -> None:
    assert loss_from_dict({"kind": "brier", "log_odds": 0.7}) == ps.BrierLoss(0.7, 5.0)
    with pytest.raises(ValueError, match="loss must have the fields"):
        loss_from_dict({"kind": "brier", "span": 1.0})


def test_a_clip_that_leaves_nothing_to_choose_by_is_refused() -> None:
    with pytest.raises(ValueError, match="raise clip or span"):
        ps.LogLoss(0.5, 0.1, 1.5)


@pytest.mark.parametrize("span", [0.0, 5.1, math.nan, "wide"])
def test_wrong_spans_are_refused(span: object) -> None:
    with pytest.raises(ValueError, match="span must be a number from"):
        ps.BrierLoss(0.5, span)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"log_odds": 0.0}, {"log_odds": math.nan}, {"log_odds": "much"}])
def test_wrong_losses_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="log_odds must be a number from"):
        ps.BrierLoss(**wrong)  # type: ignore[arg-type]


def test_a_risk_score_goes_to_a_file_and_back() -> None:
    model = score_of().deciding_at(0.2)
    same = model_from_dict(json.loads(json.dumps(model.to_dict())))
    assert isinstance(same, RiskScore)
    assert same.to_dict() == model.to_dict()
    assert (same.decide(FRAME) == model.decide(FRAME)).all()
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
    assert cut_of_threshold(0.5, 1.0) > last_score(0.5)
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
        totals = [float(t) for t in found["score"]]
        assert [model.scale.risk(Fraction(t)) for t in totals] == pytest.approx(model.risks(FRAME))


def test_only_the_columns_with_points_are_needed() -> None:
    weights = np.zeros(DIM, dtype=np.int64)
    weights[0], weights[-1] = 2, -1
    model = RiskScore(weights, SCHEMA.features, SCHEMA.scales, SCHEMA.intercept, SCHEMA)
    column = SCHEMA.columns[0].column
    few = pd.DataFrame({column: FRAME[column]})
    assert (model.risks(few) == model.risks(FRAME)).all()


def test_the_lines_of_the_table_cover_every_total_with_its_risk() -> None:
    scale = RiskScale(0.5, Fraction(3))
    lines = total_lines([[0, 2], [0, -1], [0, 3, 5]], scale)
    totals = sorted({a + b + c for a in (0, 2) for b in (0, -1) for c in (0, 3, 5)})
    for total in totals:
        (line,) = [line for line in lines if line.low <= total <= line.high]
        assert line.risk == percent(scale.risk(Fraction(total)))
    assert (lines[0].low, lines[-1].high) == (totals[0], totals[-1])
    many = total_lines([range(0, 400)], RiskScale(0.01, Fraction(0)))
    assert len(many) <= 20
    assert many[0].risk == "50% to 55%"


def test_totals_of_a_long_risk_score_are_taken_together_by_their_risks() -> None:
    model = long_release(ps.datasets.adult_schema(), log_odds=0.2).model
    assert isinstance(model, RiskScore)
    listed = model.outcomes().listed
    assert len(listed) <= MOST_OUTCOMES
    risks = [outcome.risk or 0.0 for outcome in listed]
    assert risks == sorted(risks)
    odds = np.log(np.array(risks[1:-1]) / (1 - np.array(risks[1:-1])))
    assert np.diff(odds).max() < 0.6
    assert [outcome.positive for outcome in listed] == [risk > 0.5 for risk in risks]
