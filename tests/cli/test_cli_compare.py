"""`privsolve compare`: the curator's page of several models."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import privsolve as ps
from commands import done, refused
from privsolve.learn.comparing import compare_models


def table(records: int = 2000, share: float = 0.5) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({name: rng.integers(0, 2, records) for name in "abc"})
    odds = np.log(share / (1 - share)) + 2 * (frame["a"] - 0.5) + (frame["b"] - 0.5)
    return frame.assign(ill=np.where(rng.random(records) < 1 / (1 + np.exp(-odds)), "yes", "no"))


SCHEMA = ps.Schema([ps.Categories(name, [1]) for name in "abc"], ps.Label("ill", "yes"))


def test_the_page_compares_all_models_and_says_that_it_must_not_be_published(here: Path) -> None:
    table().to_csv("data.csv", index=False)
    SCHEMA.save("s.toml")
    compare = "compare data.csv --schema s.toml --epsilon 1 --out c.html --seed 0"
    said, page = done(compare).output, Path("c.html").read_text()
    assert "Do not publish" in page
    assert Path("c.html").stat().st_mode & 0o077 == 0
    for name in ("Full scorecard", "Short card", "Decision tree", "Logistic regression", "The larger class"):
        assert name in said
        assert name in page
    refused("exists", compare)  # never replaces a file


def test_figures_are_those_of_the_held_out_records() -> None:
    """The share of decisions that are right, the AUC and the mean risk, against a rule that is known."""
    found = compare_models(SCHEMA, table(20_000), 3.0, seed=1)
    by_name = {model.name: cells for model, cells in found.found}
    full, plain = by_name["Full scorecard"], by_name["Logistic regression"]
    everybody = table(20_000)
    best = roc_auc_score(everybody["ill"] == "yes", 2 * everybody["a"] + everybody["b"])
    for cells in (full, plain):
        assert cells.records() == found.records[1]
        assert cells.auc().value == pytest.approx(best, abs=0.03)
        assert cells.surplus().value == pytest.approx(0, abs=0.04)
    assert by_name["The larger class for everybody"].accuracy().value == pytest.approx(0.5, abs=0.05)
    assert sum(found.records) == 20_000


def test_a_model_that_refuses_the_table_says_why_and_one_label_is_refused() -> None:
    """A tree does not keep constraints on cards."""
    stated = ps.Schema(SCHEMA.columns, SCHEMA.label, constraints=ps.Constraints({"a": "up"}))
    found = compare_models(stated, table(), 1.0, seed=0)
    problems = {model.name: model.problem for model in found.models if model.problem}
    assert set(problems) == {"Decision tree"}
    assert "constraints" in problems["Decision tree"]
    assert re.search("Decision tree:</strong> .*constraints", found.to_html())
    with pytest.raises(ValueError, match="same label"):
        compare_models(SCHEMA, table(50).assign(ill="yes").replace({"ill": {"no": "yes"}}), 1.0)
