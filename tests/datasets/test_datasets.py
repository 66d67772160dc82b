"""The Adult data set is the original one, and its three problems have the known sizes."""

from __future__ import annotations

import hashlib
import runpy
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from privsolve.datasets import (
    ADULT_CATEGORIES,
    ADULT_COLUMNS,
    adult,
    adult_categorical,
    adult_paper,
    adult_scorecard,
)

ORIGINAL_SHA256 = {
    "train": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}
FILES = {"train": "adult.data", "test": "adult.test"}
BUILD_SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "build_adult.py"
PACKED = resources.files("privsolve.datasets").joinpath("adult.csv.bz2")


def original_bytes(frame: pd.DataFrame, split: str) -> bytes:
    """The original file of a split, rendered back from the records."""
    first, dot = ("", "") if split == "train" else ("|1x3 Cross validator\n", ".")
    rows = frame[frame["split"] == split].drop(columns="split").astype(str).to_numpy()
    return (first + "".join(f"{', '.join(row)}{dot}\n" for row in rows) + "\n").encode("ascii")


@pytest.mark.parametrize("split", ["train", "test"])
def test_records_render_back_to_the_original_file(split: str) -> None:
    assert hashlib.sha256(original_bytes(adult(), split)).hexdigest() == ORIGINAL_SHA256[split]


@pytest.mark.skipif(not BUILD_SCRIPT.exists(), reason="the build script is not part of an installed package")
def test_build_script_gives_the_packaged_bytes(tmp_path: Path) -> None:
    for split, name in FILES.items():
        (tmp_path / name).write_bytes(original_bytes(adult(), split))
    main = runpy.run_path(str(BUILD_SCRIPT))["main"]
    for out in (tmp_path / "first", tmp_path / "second"):
        main(["--from", str(tmp_path), "--out", str(out)])
        assert out.read_bytes() == PACKED.read_bytes()


@pytest.mark.skipif(not BUILD_SCRIPT.exists(), reason="the build script is not part of an installed package")
def test_build_script_rejects_other_bytes(tmp_path: Path) -> None:
    for split, name in FILES.items():
        (tmp_path / name).write_bytes(original_bytes(adult(), split) + b"\n")
    main = runpy.run_path(str(BUILD_SCRIPT))["main"]
    with pytest.raises(SystemExit, match=r"adult\.data is not the original file"):
        main(["--from", str(tmp_path), "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


def test_counts() -> None:
    frame = adult()
    assert tuple(frame.columns) == ADULT_COLUMNS
    assert frame["split"].value_counts().to_dict() == {"train": 32_561, "test": 16_281}
    positive = frame[frame["income"] == ">50K"]
    assert positive["split"].value_counts().to_dict() == {"train": 7_841, "test": 3_846}
    assert not frame.isna().any(axis=None)


def test_categories_are_the_documented_ones() -> None:
    frame = adult()
    missing = {"workclass", "occupation", "native-country"}
    for column, categories in ADULT_CATEGORIES.items():
        assert list(categories) == sorted(categories)
        assert set(frame[column]) == set(categories) | ({"?"} if column in missing else set())


def test_paper_problem() -> None:
    table = adult_paper()
    assert (table.n, table.dim, len(table.features)) == (15_682, 23, 2_611)
    assert table.positives.sum() == table.negatives.sum() == 7_841
    assert table.names[0] == "marital-status=Divorced"
    assert table.names[-3:] == ("capital-gain", "capital-loss", "hours-per-week")
    assert table.scales == (1,) * 20 + (99_999, 4_356, 99)
    assert (table.features[:, :20].sum(axis=1) == 4).all()
    assert (table.features <= np.array(table.scales)).all()


def test_categorical_problem() -> None:
    table = adult_categorical()
    assert (table.n, table.dim, len(table.features)) == (15_682, 59, 3_890)
    assert {"workclass=?", "occupation=?"} <= set(table.names)
    assert "workclass=Never-worked" not in table.names


@pytest.mark.parametrize("seed", range(4))
def test_categorical_columns_do_not_depend_on_the_records(seed: int) -> None:
    assert adult_categorical(seed).names == adult_categorical(0, "test").names


def test_scorecard_problem() -> None:
    table = adult_scorecard()
    assert (table.n, table.dim, len(table.features)) == (32_561, 22, 2_454)
    assert table.names[-1] == "intercept"
    assert (table.features[:, -1] == 1).all()
    for group in ("age", "education-num", "hours-per-week"):
        columns = [j for j, name in enumerate(table.names) if name.startswith(group)]
        assert (table.features[:, columns].sum(axis=1) == 1).all()


def test_best_scorecard_makes_5052_mistakes() -> None:
    points = {
        "education-num=13": 1,
        "education-num>13": 1,
        "capital-gain>5000": 3,
        "capital-loss>1500": 1,
        "married": 2,
        "occupation=service-or-manual": -1,
        "intercept": -2,
    }
    table = adult_scorecard()
    assert table.mistakes([points.get(name, 0) for name in table.names]) == 5_052


@pytest.mark.parametrize("problem", [adult_paper, adult_categorical])
def test_balanced_subset_is_fixed_by_the_seed(problem) -> None:  # type: ignore[no-untyped-def]
    assert problem(seed=3) == problem(seed=3)
    assert problem(seed=3) != problem(seed=4)


@pytest.mark.parametrize(
    ("problem", "n", "rows"),
    [(adult_paper, 7_692, 1_649), (adult_categorical, 7_692, 2_469), (adult_scorecard, 16_281, 1_954)],
)
def test_test_split(problem, n: int, rows: int) -> None:  # type: ignore[no-untyped-def]
    table = problem(split="test")
    assert (table.n, len(table.features)) == (n, rows)
