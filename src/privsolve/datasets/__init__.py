"""Public data sets, ready as tables of patterns."""

from privsolve.datasets._adult import (
    ADULT_CATEGORIES,
    ADULT_COLUMNS,
    adult,
    adult_categorical,
    adult_paper,
    adult_schema,
    adult_scorecard,
)

__all__ = [
    "ADULT_CATEGORIES",
    "ADULT_COLUMNS",
    "adult",
    "adult_categorical",
    "adult_paper",
    "adult_schema",
    "adult_scorecard",
]
