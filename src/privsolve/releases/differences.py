"""What changed between two releases, for whom: from the two alone, without any data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import product

import numpy as np
import pandas as pd

from privsolve.arrays import Floats
from privsolve.cards.words import badge
from privsolve.data.columns import Bins, Categories, Column, Dates, Number, Value, value_text
from privsolve.data.questions import Choice, Span
from privsolve.models.base import Model
from privsolve.models.full_card import FullCard, NumberCard
from privsolve.models.linear import LinearRule, decision_words
from privsolve.models.tree import DecisionTree, leaf_paths
from privsolve.privacy.accounting import one_after_another
from privsolve.privacy.guarantee import Guarantee
from privsolve.releases.release import Release

NAMES = {
    "full-card": "full scorecard",
    "linear-rule": "short card",
    "number-card": "full scorecard for a number",
}
MOST_COMBINATIONS = 50_000
"""Up to so many combinations of answers are asked of both models."""

NOT_KNOWN, ANY_OTHER = "not known", "any other"

Answers = Sequence[tuple[str, object]]
"""What can be answered to a question: in words, and as a value of a table."""


@dataclass(frozen=True)
class Change:
    """What an answer adds, against the first answer to the question, in the old and in the new release; None: not asked."""

    question: str
    answer: str
    old: float | None
    new: float | None


@dataclass(frozen=True)
class Differences:
    """What changed: `words` of the models, `changes` by answer in a common `unit`, and `privacy` of both and together."""

    words: tuple[str, ...]
    unit: str
    changes: tuple[Change, ...]
    privacy: tuple[str, ...]


def differences(old: Release, new: Release) -> Differences:
    """Compare two releases. Looks at no data and costs nothing.

    Args:
        old: a release with a schema, of a card or a tree.
        new: another one, of the same kind or not.

    Returns:
        What changed, in words and by answer.

    Raises:
        ValueError: if one of them cannot be applied to a table.
    """
    used = [used_columns(release.model) for release in (old, new)]
    both = {c.column: [columns[c.column] for columns in used if c.column in columns] for s in used for c in s.values()}
    asked = {name: _answers(columns) for name, columns in both.items()}
    models = old.model, new.model
    words = [*_whats(old, new), *_questions(*used)]
    unit, changes, alike = "", tuple[Change, ...](), _predicted(old) == _predicted(new)
    if old.model.to_dict() == new.model.to_dict():
        return Differences(("The two models are the same.",), unit, changes, _privacy(old, new))
    rules = [model for model in models if isinstance(model, LinearRule)]
    units = {_unit(rule) for rule in rules}
    risks = [rule for rule in rules if isinstance(rule, FullCard)]
    if asked and len(rules) == 2 and len(units) == 1 and (alike or rules[0].number_scale is None):
        (unit,), changes = units, _changes(rules, used, asked)
        words += _thresholds(rules) if rules[0].number_scale is None else []
        words += _risks(risks, asked) if risks else []
    if isinstance(old.model, DecisionTree) and isinstance(new.model, DecisionTree):
        words += _paths(old.model, new.model)
    if alike:
        words += _decisions(models, asked)
    return Differences(tuple(words), unit, changes, _privacy(old, new))


def _unit(rule: LinearRule) -> str:
    """What the answers of a card add to."""
    if rule.number_scale is not None:
        return f"predicted {rule.number_scale.name}"
    return "log-odds" if isinstance(rule, FullCard) else "points"


def used_columns(model: Model) -> dict[str, Column]:
    """The columns that a model asks for, by name."""
    if isinstance(model, DecisionTree):
        columns = model.used[0].columns if model.asked else ()
    elif isinstance(model, LinearRule):
        columns = tuple(entry.column for entry in model.tally.entries)
    else:
        raise ValueError(f"a {model.kind} cannot be compared: give releases of scorecards or trees")
    return {column.column: column for column in columns}


def _answers(columns: Sequence[Column]) -> Answers:
    """The answers to a question that at least one of the columns tells apart; "not known" comes last."""
    unknown = (NOT_KNOWN, None)
    if all(isinstance(column, Number) for column in columns):
        ends = sorted({float(end) for c in columns if isinstance(c, Number) for end in (c.low, c.high)})
        return [*((f"{end:,.15g}", end) for end in ends), unknown]
    if all(isinstance(column, Bins) for column in columns):
        cuts = sorted({cut for c in columns if isinstance(c, Bins) for cut in c.cuts})
        name, days = columns[0].column, [isinstance(c, Dates) for c in columns]
        if all(days):
            texts = [f"{int(cut):08d}" for cut in cuts]
            merged: Bins = Dates(name, [f"{t[:4]}-{t[4:6]}-{t[6:]}" for t in texts])
        else:
            merged = Bins(name, cuts, whole=all(c.whole for c in columns if isinstance(c, Bins)))
        question = merged.question()
        assert isinstance(question, Choice)
        spans = [option.span for option in question.options if option.span is not None]
        return [*((span.text, _inside(span, all(days))) for span in spans), unknown]
    return [*_listed(columns), unknown]


def _inside(span: Span, is_day: bool) -> object:
    """A number or a day in a span."""
    low = span.low if span.low is not None else span.high
    assert low is not None
    if not is_day:
        return low if span.low is not None else low - 1
    day = date(int(low) // 10_000, int(low) // 100 % 100, int(low) % 100)
    return day if span.low is not None else day - timedelta(days=1)


def _listed(columns: Sequence[Column]) -> list[tuple[str, object]]:
    """Values in lists, by the names of their options where all columns have the same ones; and one that is in no list."""
    lists = [column.listed for column in columns if isinstance(column, Categories)]
    if lists and len(lists) == len(columns) and all(one == lists[0] for one in lists):
        found: list[tuple[str, object]] = [(option.name, option.values[0]) for option in lists[0]]
    else:
        values: dict[Value, None] = {v: None for options in lists for option in options for v in option.values}
        found = [(value_text(value, "an answer"), value) for value in values]
    numbers = [float(value) for _, value in found if not isinstance(value, str)]  # type: ignore[arg-type]
    return [*found, (ANY_OTHER, max(numbers) + 1 if numbers else f"({ANY_OTHER})")]


def _frame(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series([row[name] for row in rows], dtype=object) for name in rows[0]})


def _added(rule: LinearRule, frame: pd.DataFrame) -> Floats:
    """The total of every row, in log-odds where it has a risk, and in units of the outcome where that is a number."""
    totals = rule.totals(frame)
    if isinstance(rule, NumberCard):
        return np.asarray(totals * rule.per_point)
    return np.asarray(totals * (rule.log_odds if isinstance(rule, FullCard) else 1.0))


def _changes(
    rules: Sequence[LinearRule], used: Sequence[Mapping[str, Column]], asked: Mapping[str, Answers]
) -> tuple[Change, ...]:
    first = {name: answers[0][1] for name, answers in asked.items()}
    named = [(name, text, {**first, name: value}) for name, answers in asked.items() for text, value in answers]
    frame, start = _frame([row for *_, row in named]), _frame([first])
    parts = [_added(rule, frame) - _added(rule, start)[0] for rule in rules]
    found = []
    for place, (name, text, _) in enumerate(named):
        old, new = (float(part[place]) if name in columns else None for part, columns in zip(parts, used, strict=True))
        found.append(Change(name, text, old, new))
    return tuple(found)


def _whats(old: Release, new: Release) -> list[str]:
    """What the two are, and whether they predict the same."""
    kinds = [NAMES.get(release.model.kind, release.model.kind.replace("-", " ")) for release in (old, new)]
    said = [_predicted(release) for release in (old, new)]
    words = [f"A {kinds[0]} became a {kinds[1]}." if kinds[0] != kinds[1] else f"Both are a {kinds[0]}."]
    if said[0] != said[1]:
        words.append(f"They do not predict the same: {said[0]} before, {said[1]} now.")
    return words


def _predicted(release: Release) -> str:
    schema = release.schema
    target = None if schema is None else schema.target
    return decision_words(schema)[0] if target is None else f"{target.column} ({target.words})"


def _questions(old: Mapping[str, Column], new: Mapping[str, Column]) -> list[str]:
    found = (
        ("No longer asked", [name for name in old if name not in new]),
        ("Newly asked", [name for name in new if name not in old]),
        ("Asked with other answers", [name for name in old if name in new and old[name] != new[name]]),
    )
    return [f"{words}: {', '.join(names)}." for words, names in found if names]


def _thresholds(rules: Sequence[LinearRule]) -> list[str]:
    """From which total on the two decide positively, and at which risk."""
    totals = [(rule, rule.tally.threshold) for rule in rules]
    risks = [f", a risk of {rule.scale.risk(t):.1%}" if isinstance(rule, FullCard) else "" for rule, t in totals]
    before, now = (f"{total}{risk}" for (_, total), risk in zip(totals, risks, strict=True))
    return [f"Positive from a total of {before} before; from {now} now."]


def _risks(rules: Sequence[FullCard], asked: Mapping[str, Answers]) -> list[str]:
    """Risks at the same answers: the first ones, and where they rose and fell most. Log-odds add up over questions."""

    def risks(row: Mapping[str, tuple[str, object]]) -> list[float]:
        frame = _frame([{name: value for name, (_, value) in row.items()}])
        return [rule.scale.risk(int(rule.totals(frame)[0])) for rule in rules]

    first = {name: answers[0] for name, answers in asked.items()}
    rows = {"Every first answer": first, "Risen most": dict(first), "Fallen most": dict(first)}
    for name, answers in asked.items():
        known = [answer for answer in answers if answer[0] not in (NOT_KNOWN, ANY_OTHER)] or list(answers)
        frame = _frame([{**{n: one[1] for n, one in first.items()}, name: value} for _, value in known])
        moved = _added(rules[1], frame) - _added(rules[0], frame)
        rows["Risen most"][name], rows["Fallen most"][name] = known[moved.argmax()], known[moved.argmin()]
    lines = []
    for words, row in rows.items():
        old, new = risks(row)
        if (words == "Risen most" and new <= old) or (words == "Fallen most" and new >= old):
            continue
        said = ", ".join(f"{name} {text}" for name, (text, _) in row.items())
        lines.append(f"{words} ({said}): a risk of {old:.1%} before, {new:.1%} now.")
    return lines


def _paths(old: DecisionTree, new: DecisionTree) -> list[str]:
    """The leaves that only one of two trees has."""
    before, now = ({f"{path} → {tree.leaves.text(value)}" for path, value in leaf_paths(tree)} for tree in (old, new))
    lines = [f"Only before: {path}." for path in sorted(before - now)]
    return [*lines, *(f"Only now: {path}." for path in sorted(now - before))]


def _decisions(models: Sequence[Model], asked: Mapping[str, Answers]) -> list[str]:
    """How many combinations of answers get another decision or number, where they can be gone through."""
    count = math.prod(len(answers) for answers in asked.values())
    if not asked or count > MOST_COMBINATIONS:
        return []
    values = ([value for _, value in answers] for answers in asked.values())
    frame = _frame([dict(zip(asked, row, strict=True)) for row in product(*values)])
    old, new = (model.predict(frame) for model in models)
    if all(np.issubdtype(said.dtype, np.floating) for said in (old, new)):
        apart = np.abs(new - old)
        said = f"the predictions are at most {apart.max():,.4g} apart, {apart.mean():,.4g} on average"
        return [f"Over {count:,} combinations of answers, {said} (combinations, not people)."]
    other = int(np.sum([str(a) != str(b) for a, b in zip(old, new, strict=True)]))
    return [f"Of {count:,} combinations of answers, {other:,} get another decision (combinations, not people)."]


def _privacy(old: Release, new: Release) -> tuple[str, ...]:
    """What each promises, and both together. What both hold, such as a draft of the schema, is paid once."""
    lines = [f"{when}: {badge(release.total)}." for when, release in (("Before", old), ("Now", new))]
    if old.to_json() == new.to_json():
        return (lines[1], "The files hold the same release, which is paid for once.")
    if old.guarantee.adjacency is not new.guarantee.adjacency:
        return (*lines, "The two do not add up: one is for a record changed, the other for a record added or left out.")
    drafts = {str(paid): paid.guarantee for paid in (old.drafted, new.drafted) if paid is not None}
    parts: list[Guarantee] = [old.own, new.own]
    if old.model.to_dict() == new.model.to_dict() and old.guarantee == new.guarantee:  # the same fit
        parts = [new.own, *([] if old.evaluation is None else [old.evaluation.guarantee])]
    both = one_after_another([*drafts.values(), *parts])
    return (*lines, f"Both, if they were made from the same records (the files do not say): {both.sentence()}")
