"""Full cards: what a total means, decisions moved afterwards, bands of risk, and files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from typer.testing import CliRunner

import privsolve as ps
from long_cards import long_release
from privsolve.cards.words import total_lines, verdict
from privsolve.cli import app
from privsolve.models.bands import Bands
from privsolve.models.base import model_from_dict
from privsolve.models.full_card import FullCard
from privsolve.models.linear import LinearRule
from privsolve.models.outcomes import MOST_OUTCOMES
from privsolve.models.scales import RiskScale, cut_of_threshold, percent
from random_scorecards import GUARANTEE
from small_tables import INDICATORS as SCHEMA
from small_tables import SCHEMA as WITH_NUMBER
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


# --- bands --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stated", "names", "cuts"),
    [
        ("5%", ("low", "high"), (0.05,)),
        ("5%, 20%", ("low", "medium", "high"), (0.05, 0.2)),
        ("-3,12,20", ("low", "medium", "high", "very high"), (-3, 12, 20)),
        ("calm,5%,watch,12.5%,act", ("calm", "watch", "act"), (0.05, 0.125)),
    ],
)
def test_bands_are_written_as_cuts_or_with_names(stated: str, names: tuple[str, ...], cuts: tuple[float, ...]) -> None:
    bands = Bands.of(stated)
    assert (bands.names, bands.cuts) == (names, cuts)
    assert Bands.from_dict(json.loads(json.dumps(bands.to_dict()))) == bands


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        *((stated, "write cut risks") for stated in ("", "5%,20", "low,high", "5%,low")),
        ("low,5%", "one cut between two names"),
        ("20%,5%", "ascending"),
        ("0%,5%", "above 0% and below 100%"),
        ("low,5%,low", "different names"),
        ("1,2,3,4,5", "need names"),
    ],
)
def test_other_bands_are_refused(stated: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Bands.of(stated)


def test_a_band_begins_above_its_risk() -> None:
    for half in (0.0, -2.6, 40.0):
        scale = RiskScale(0.3, half)
        for risk in (0.001, 0.2, 0.5, 0.93):
            (start,) = Bands(("no", "yes"), (risk,), True).starts(scale)
            assert scale.risk(start - 1) <= risk < scale.risk(start)


def test_a_band_at_the_threshold_begins_where_the_decision_does() -> None:
    model = long_release(ps.datasets.adult_schema()).model
    for threshold in (0.03, 0.5, 0.8):
        moved = model.deciding_at(threshold).with_bands(f"{100 * threshold:g}%")  # type: ignore[attr-defined]
        assert moved.band_starts == ((moved.tally.threshold, "high"),)


def test_bands_are_on_every_form_and_in_the_file(tmp_path: Path) -> None:
    made = long_release(ps.datasets.adult_schema())
    cut = made.with_bands("calm,20%,watch,60%,act")
    assert ps.Release.from_json(cut.to_json()).to_json() == cut.to_json()
    assert cut.with_bands(None).to_json() == made.to_json()
    file = tmp_path / "release.json"
    file.write_text(made.to_json(), encoding="utf-8")
    card = cut.card()
    for form in ("text", "markdown", "html", "json", "sql", "python", "javascript"):
        args = ["show", str(file), "--format", form, "--bands", "calm,20%,watch,60%,act"]
        shown = CliRunner().invoke(app, args).stdout
        assert all(name in shown for name in ("calm", "watch", "act")), form
        assert "calm" not in CliRunner().invoke(app, args[:-2]).stdout
    assert "watch 59 to 73 (risks above 20%, up to 60%)" in " ".join(card.to_text().split())
    starts = [line.low for before, line in zip(card.totals, card.totals[1:], strict=False) if before.band != line.band]
    assert starts == list(card.band_starts)


def test_cards_without_risks_are_cut_at_totals_and_trees_are_not() -> None:
    weights = np.array([2, 0, 1, 0, 1, 2, 3, 0, -2])
    setting = {"domain": ps.FiniteSet([weights.tolist()]).to_dict(), "loss": ps.ZeroOneLoss().to_dict()}
    rule = LinearRule(weights, WITH_NUMBER.features, WITH_NUMBER.scales, True, WITH_NUMBER)
    release = ps.Release(rule, GUARANTEE, setting)
    with pytest.raises(ValueError, match="no risks; cut its totals"):
        release.with_bands("5%")
    card = release.with_bands("2,900").card()
    assert "low under 2; medium 2 or more; high no total" in card.to_text()  # type: ignore[union-attr]
    assert [line.band for line in card.totals] == sorted(line.band for line in card.totals)  # type: ignore[union-attr]


def test_a_fit_refuses_totals_before_anything_is_read() -> None:
    done = CliRunner().invoke(
        app, ["fit", "t.csv", "--label", "y", "--positive", "1", "--epsilon", "1", "--out", "o", "--bands", "3,5"]
    )
    assert done.exit_code == 2
    assert "a fit takes cut risks" in done.output
    assert not Path("o").exists()


def test_a_fraction_of_a_point_is_in_all_risks() -> None:
    model = replace(score_of(3), base=0.2)
    risks = model.risks(FRAME)
    assert risks == pytest.approx(expit(0.5 * model.scores(FRAME) + 0.2))
    assert model.scale.risks(model.totals(FRAME)) == pytest.approx(risks)
    for threshold in (0.1, 0.31, 0.5, 0.53, 0.77):
        assert (model.deciding_at(threshold).decide(FRAME) == (risks > threshold)).all()


def test_a_band_begins_with_its_first_total() -> None:
    adult = ps.datasets.adult_schema()
    made = long_release(ps.Schema(adult.columns[:4], adult.label))
    total = made.card().score(made.card().example)
    assert "(band “high”)" in verdict(made.with_bands(str(total)).card())
    assert "(band “low”)" in verdict(made.with_bands(str(total + 1)).card())
