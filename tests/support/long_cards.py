"""Cards with points for nearly every answer of many questions, and tables with gaps for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import privsolve as ps
from privsolve.cards.rows import UNKNOWN, Answer
from privsolve.data import About, Bins, Categories, Category, Column, Dates, Label, Number, Schema
from privsolve.data.codes import codes_of_frame
from privsolve.models.full_card import FullCard
from random_scorecards import GUARANTEE

LABEL = Label("ill", "yes", "no")
CITIES = ("Aarhus", "Bergen", "Cork", "Dover", "Évora", "it's", 'say "hi"', "Graz")


def long_schema(columns: int) -> Schema:
    """Numbers with cuts, categories, yes/no, dates and booleans in turn, some with options for missing values."""
    kinds = (_number, _category, _yes_no, _date, _truth, _coded, _number)
    found = [kinds[i % len(kinds)](i) for i in range(columns)]
    about = About(question="Will the patient fall ill?", positive="will fall ill", negative="stays well")
    return Schema(found, LABEL, about=about)


def _number(i: int) -> Column:
    cuts = [10, 20, 35, 50.5, 70][: 2 + i % 4]
    marks = [-999, "unknown"] if i % 2 else []
    decimal = "," if i % 3 == 0 and i else "."
    return Bins(
        f"number {i}", cuts, missing="not measured" if i % 4 == 2 else None, missing_values=marks, decimal=decimal
    )


def _category(i: int) -> Column:
    options = [*CITIES[: 3 + i % 4], Category("island", ["Malta", "Crete"])]
    return Categories(f"city_{i}", options, other="elsewhere" if i % 2 else None, missing_values=["?"])


def _yes_no(i: int) -> Column:
    return Categories(f"smoker {i}", ["yes"], no="no", missing="no answer" if i % 2 else None)


def _date(i: int) -> Column:
    form = ("YYYY-MM-DD", "DD.MM.YYYY", "MM/DD/YYYY", "DD/MM/YYYY")[i // 7 % 4]
    return Dates(f"born {i}", ["1950-01-01", "1975-06-15", "2000-02-29"], format=form)


def _truth(i: int) -> Column:
    return Categories(f"insured {i}", [True])


def _coded(i: int) -> Column:
    return Categories(f"grade {i}", [1, 2, 3], missing_values=[9], missing="no grade" if i % 2 else None)


def long_release(schema: Schema, seed: int = 0, log_odds: float = 0.12) -> ps.Release:
    """A full card with points from -10 to 10 on nearly every feature."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(-10, 11, schema.dim)
    weights[rng.random(schema.dim) < 0.1] = 0
    if schema.intercept:
        weights[-1] = -int(weights[:-1].sum()) // 2
    model = FullCard(weights, schema.features, schema.scales, schema.intercept, schema, log_odds=log_odds, cut=0)
    return ps.Release(model, GUARANTEE, {"objective": {}})


def long_table(schema: Schema, records: int = 300, seed: int = 0) -> pd.DataFrame:
    """A table of texts, as a CSV file holds them: listed values, others, texts that are no numbers, and gaps."""
    rng = np.random.default_rng(seed)
    found = {}
    for column in schema.columns:
        texts = _texts(column, rng, records)
        texts[rng.random(records) < 0.1] = ""
        found[column.column] = texts
    return pd.DataFrame(found)


def answers_of(release: ps.Release, table: pd.DataFrame) -> list[dict[str, Answer]]:
    """What people would answer for records of texts, gaps included."""
    model: Any = release.model
    columns = model.schema.columns
    found: list[dict[str, Answer]] = [{} for _ in range(len(table))]
    for column, question, codes in zip(columns, model.schema.questions(), codes_of_frame(table, columns), strict=True):
        options = [option.text for option in question.options]
        for answers, code in zip(found, codes.tolist(), strict=True):
            text = column.answers()[code]
            unlisted = isinstance(column, Categories) and column.no is not None and code == column.outside["other"]
            answers[column.column] = column.no.name if unlisted else text if text in options else UNKNOWN
    return found


def _texts(column: Column, rng: np.random.Generator, records: int) -> np.ndarray:
    if isinstance(column, Dates):
        return np.array([_day(column.format, rng) for _ in range(records)], dtype=object)
    if isinstance(column, Bins):
        numbers = rng.uniform(-20, 90, records).round(1)
        at_cuts = rng.choice(np.array(column.cuts, dtype=float), records)
        numbers = np.where(rng.random(records) < 0.3, at_cuts, numbers)
        texts = np.array([f"{x:g}".replace(".", column.decimal) for x in numbers], dtype=object)
        odd = np.array(["n/a", "-999", "unknown", "1e1", "+7", " 12 ", "12a", "nan"], dtype=object)
        return np.where(rng.random(records) < 0.2, rng.choice(odd, records), texts)
    if isinstance(column, Number):
        return np.array([f"{x:g}" for x in rng.uniform(-3, 12, records).round(1)], dtype=object)
    assert isinstance(column, Categories)
    values = [value for option in column.listed for value in option.values]
    listed = ["true", "True", "yes", "1"] if column.kind == "boolean" else ["1.0", *map(str, values)]
    odd = {"boolean": ["false", "no", "0", "2", "?"], "number": ["4", "9", "x"], "text": ["Oslo", " ", "YES", "?"]}
    return rng.choice(np.array([*listed, *odd[column.kind]], dtype=object), records)


def _day(form: str, rng: np.random.Generator) -> str:
    year, month, day = int(rng.integers(1930, 2020)), int(rng.integers(1, 13)), int(rng.integers(1, 31))
    kind = rng.random()
    if kind < 0.1:
        return str(rng.choice(["soon", "0000-00-00", "31.02.1990", "1990-02-30"]))
    width = "02" if kind < 0.7 else "01"
    text = form.replace("YYYY", f"{year:04}").replace("MM", format(month, width)).replace("DD", format(day, width))
    return text + (" 10:30:00" if kind > 0.9 else "")
