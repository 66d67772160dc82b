"""Bands: how they are written, where they begin, and that they stay in the file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import privsolve as ps
from long_cards import long_release
from privsolve.cli import app
from privsolve.models.bands import Bands
from privsolve.models.linear import LinearRule
from privsolve.models.scales import RiskScale
from random_scorecards import GUARANTEE
from small_tables import SCHEMA


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
        ("", "write cut risks"),
        ("5%,20", "write cut risks"),
        ("low,high", "write cut risks"),
        ("5%,low", "write cut risks"),
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
    rule = LinearRule(weights, SCHEMA.features, SCHEMA.scales, True, SCHEMA)
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
