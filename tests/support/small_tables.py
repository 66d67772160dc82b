"""A small table with every kind of column, and a schema for it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from privsolve.data import Bins, Categories, Label, Number, Schema

LABEL = Label("ill", "yes", "no")
SCHEMA = Schema(
    [
        Categories("colour", ["red", "blue"], other="another"),
        Bins("age", [30, 50], "intervals", whole=True, missing="unknown"),
        Number("dose", 0, 2, 0.5, 2),
    ],
    LABEL,
)
INDICATORS = Schema(SCHEMA.columns[:2], LABEL)
"""Without the number: 0/1 features only."""


def patients(n: int = 300, seed: int = 0) -> pd.DataFrame:
    """Records whose label is, but for one in ten, whether the colour is red or the age 50 or more."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n).astype(float)
    colour = rng.choice(["red", "blue", "green"], n)
    ill = ((colour == "red") | (age >= 50)) ^ (rng.random(n) < 0.1)
    age[rng.random(n) < 0.05] = np.nan
    return pd.DataFrame(
        {"colour": colour, "age": age, "dose": rng.uniform(-0.5, 2.5, n).round(2), "ill": np.where(ill, "yes", "no")}
    )
