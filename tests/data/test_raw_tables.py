"""Private drafts of ordinary tables: at a total epsilon of 1 they are sensible, whatever the noise."""

from __future__ import annotations

from pathlib import Path

import pytest

import privsolve as ps
from privsolve.data import Bins, Categories, Label
from privsolve.data.private import DRAFT_SHARE, default_delta, private_draft
from privsolve.data.tables import open_table
from raw_tables import RAW_TABLES

SEEDS = 1


@pytest.mark.parametrize("name", RAW_TABLES)
def test_drafts_of_ordinary_tables_are_sensible(name: str, tmp_path: Path) -> None:
    raw = RAW_TABLES[name]
    table = open_table(str(raw.write(tmp_path / "raw.csv")))
    missing = [float(code) for code in raw.missing]
    delta = default_delta(raw.records)
    for seed in range(SEEDS):
        found = private_draft(
            table,
            Label(raw.label, [raw.positive]),
            DRAFT_SHARE,
            delta,
            missing=missing,
            decimal=raw.decimal,
            random_state=seed,
        )
        columns = {column.column: column for column in found.schema.columns}
        for column in raw.categories:
            assert isinstance(columns[column], Categories), column
        for column, low, high in raw.ranges:
            cut = columns[column]
            assert isinstance(cut, Bins)
            assert all(low <= point <= high for point in cut.cuts), (column, cut.cuts)
        for column in raw.absent:
            assert column in found.left_out
        assert set(columns) | set(found.left_out) | {raw.label} == set(table.columns)


@pytest.mark.parametrize("name", ["heart", "titanic", "german credit", "stroke", "few records"])
def test_what_is_drafted_can_be_fitted(name: str) -> None:
    raw = RAW_TABLES[name]
    frame = raw.frame()
    fitted = ps.PrivateShortCard(1.0, random_state=0, max_features=2).fit(
        frame.drop(columns=raw.label), frame[raw.label]
    )
    assert fitted.privacy_.epsilon == 1.0


def test_a_draft_of_adult_is_sensible() -> None:
    adult = ps.datasets.adult()
    found = private_draft(adult, Label("income", ">50K"), DRAFT_SHARE, 1e-6, leave_out=["split"], random_state=0)
    columns = {column.column: column for column in found.schema.columns}
    assert set(columns) | {"income", "split"} == set(adult.columns)
    for name in ("sex", "marital-status", "relationship", "occupation", "workclass", "race"):
        assert isinstance(columns[name], Categories), name
    assert "Married-civ-spouse" in str(columns["marital-status"])
    weights = columns["fnlwgt"]
    assert isinstance(weights, Bins)
    assert all(2e4 < cut < 1e6 for cut in weights.cuts)
