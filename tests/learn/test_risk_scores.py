"""Risk scores as estimators and on the command line: probabilities, thresholds, and everything a person gets to see."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.metrics import RocCurveDisplay, roc_auc_score
from sklearn.model_selection import TunedThresholdClassifierCV
from typer.testing import CliRunner

import privsolve as ps
from privsolve.cli import app
from privsolve.data import Category
from privsolve.learn.card_limits import CardLimits
from privsolve.learn.planning import expectations
from privsolve.models.risk import RiskScore
from privsolve.privacy.profiles import BoundedRange
from small_tables import SCHEMA, patients

FRAME = patients(600)
X, Y = FRAME.drop(columns="ill"), FRAME["ill"]
POSITIVE = SCHEMA.positive(Y.to_numpy())


def fitted(**options: object) -> ps.PrivateShortCard:
    card = ps.PrivateShortCard(3.0, objective="risk", schema=SCHEMA, random_state=1, **options)  # type: ignore[arg-type]
    return card.fit(X, Y)  # type: ignore[no-any-return]


def test_probabilities_are_the_risks_of_the_totals() -> None:
    card = fitted()
    risks = card.predict_proba(X)
    assert risks.shape == (len(X), 2)
    assert risks.sum(axis=1) == pytest.approx(1)
    assert (card.predict(X) == card.classes_[(risks[:, 1] > 0.5).astype(int)]).all()
    assert roc_auc_score(POSITIVE, risks[:, 1]) > 0.7
    scale = card.scorecard_.scale
    assert scale is not None
    assert [scale.risk(total) for total in map(_fraction, card.totals(X))] == pytest.approx(risks[:, 1])
    assert (card.totals(X) - float(card.scorecard_.threshold) + 1 == card.decision_function(X)).all()
    assert isinstance(card.release_.model, RiskScore)


def _fraction(value: float) -> object:
    from fractions import Fraction

    return Fraction(value)


def test_a_card_by_mistakes_has_no_probabilities() -> None:
    by_mistakes = ps.PrivateShortCard(1.0, max_features=2, schema=SCHEMA, random_state=0).fit(X, Y)
    assert not hasattr(by_mistakes, "predict_proba")
    assert not isinstance(by_mistakes.release_.model, RiskScore)


def test_rare_outcomes_are_told_apart() -> None:
    """2% of 200,000 records are positive. A loss that is flat below 18% would choose at random here."""
    rng = np.random.default_rng(0)
    answers = rng.integers(0, 2, (200_000, 8))
    ill = rng.random(200_000) < 1 / (1 + np.exp(7 - 1.5 * answers[:, :3].sum(axis=1)))
    frame = pd.DataFrame(answers, columns=[f"c{i}" for i in range(8)]).assign(ill=ill.astype(int))
    assert 0.01 < ill.mean() < 0.03
    columns = [ps.Categories(f"c{i}", [Category("yes", [1])]) for i in range(8)]
    schema = ps.Schema(columns, ps.Label("ill", [1]))
    for seed in range(3):
        card = ps.PrivateShortCard(
            3.0, objective="risk", max_features=3, schema=schema, adjacency="add-remove", random_state=seed
        ).fit(frame)
        assert roc_auc_score(ill, card.predict_proba(frame)[:, 1]) > 0.7
    assert card.release_.loss == ps.BrierLoss(0.5, 5.0)


def test_the_draw_has_the_law_of_brier_over_short_cards() -> None:
    """One draw of the exponential mechanism over the ordinary cards, and its guarantee."""
    card = fitted(max_features=2, adjacency="add-remove")
    assert card.release_.guarantee.profile == BoundedRange(3.0)
    assert card.release_.domain == CardLimits(max_features=2).domain(SCHEMA)
    assert set(card.release_.setting) == {"domain", "loss"}


def test_costs_move_the_decision_and_not_the_risks() -> None:
    plain, careful = fitted(), fitted(false_negative=9)
    assert (plain.predict_proba(X) == careful.predict_proba(X)).all()
    assert (careful.predict(X) == careful.classes_[(careful.predict_proba(X)[:, 1] > 0.1).astype(int)]).all()
    assert careful.release_.guarantee == plain.release_.guarantee
    assert careful.diagnostics_.mistakes == (careful.predict(X) != Y).sum()
    noisy = careful.evaluate(X, Y, 1000.0, random_state=0).cells.accuracy().value
    assert noisy == pytest.approx(careful.score(X, Y), abs=0.01)


@pytest.mark.filterwarnings("ignore::privsolve.PrivacyWarning")
def test_the_tools_of_scikit_learn_take_it() -> None:
    base = ps.PrivateShortCard(3.0, objective="risk", max_features=2, schema=SCHEMA, random_state=1)
    calibrated = CalibratedClassifierCV(base, cv=2).fit(X, Y)
    assert calibrated.predict_proba(X).shape == (len(X), 2)
    tuned = TunedThresholdClassifierCV(base, cv=2, scoring="balanced_accuracy").fit(X, Y)
    assert set(tuned.predict(X)) <= set(base.fit(X, Y).classes_)
    assert 0.6 < RocCurveDisplay.from_estimator(fitted(), X, Y, pos_label=fitted().classes_[1]).roc_auc <= 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"objective": "profit"}, "objective must be one of"),
        ({"objective": "risk", "log_odds": -1.0}, "log_odds must be a number from"),
        ({"objective": "risk", "false_positive": -1}, "false_positive"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_paid(wrong: dict[str, object], message: str) -> None:
    account = ps.Accountant(1.0)
    with pytest.raises(ValueError, match=message):
        ps.PrivateShortCard(0.5, schema=SCHEMA, budget=account, **wrong).fit(X, Y)  # type: ignore[arg-type]
    assert account.totals.releases == 0


def test_every_form_of_the_card_has_the_risks() -> None:
    card = fitted().scorecard_
    for form in (card.to_text(), card.to_markdown(), card.to_html()):
        assert "Risk of " in form
        for line in card.totals:
            assert line.risk.replace("%", "") in form
    assert card.totals[0].low == card.minimum
    assert card.totals[-1].high == card.maximum


def test_the_command_line_from_a_file_to_risks(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "patients.csv", index=False)
    SCHEMA.save(tmp_path / "schema.toml")
    run = CliRunner().invoke
    asked = ["--schema", str(tmp_path / "schema.toml"), "--epsilon", "2", "--objective", "risk", "--seed", "1"]
    done = run(app, ["fit", "--model", "short", str(tmp_path / "patients.csv"), *asked, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "Risk of" in done.output
    release = str(tmp_path / "out" / "release.json")
    assert "Risk of " in run(app, ["show", release]).output
    scored = tmp_path / "scored.csv"
    assert (
        run(app, ["predict", str(tmp_path / "patients.csv"), "--release", release, "--out", str(scored)]).exit_code == 0
    )
    found, model = pd.read_csv(scored), ps.Release.from_json(Path(release).read_text()).model
    assert isinstance(model, RiskScore)
    assert np.allclose(found["risk"], model.risks(FRAME))
    assert (found["score"] - float(model.scale.half) == model.scores(FRAME)).all()
    assert (found["score"] == model.totals(FRAME)).all()
    plan = run(
        app,
        [
            "plan",
            "--model",
            "short",
            "--epsilon",
            "1",
            "--records",
            "30000",
            "--features",
            "33",
            "--objective",
            "risk",
            "--json",
        ],
    )
    planned = json.loads(plan.output)
    (bound, _) = expectations(ps.SparsePoints(34, 4, 3, (-8, 8)), 1.0, loss=ps.BrierLoss(), expert=False)
    assert planned["bounds"][0]["excess"] == pytest.approx(
        bound.excess / 4096
    )  # a Brier loss of 1 is 4096 in the table
    assert planned["bounds"][0]["share"] == pytest.approx(bound.excess / 4096 / 30_000)
    refused = run(
        app,
        [
            "fit",
            "--model",
            "short",
            str(tmp_path / "patients.csv"),
            *asked,
            "--model",
            "tree",
            "--out",
            str(tmp_path / "other"),
        ],
    )
    assert refused.exit_code != 0
    assert "--objective is for --model short" in refused.output


def test_a_score_before_the_fit_is_refused_in_words() -> None:
    with pytest.raises(NotFittedError):
        ps.PrivateShortCard(1.0, schema=SCHEMA).score(X, Y)
