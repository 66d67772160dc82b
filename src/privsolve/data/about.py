"""Public words for people: what a table is about, what is decided, who answers for it, and how its columns are asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from privsolve.data.columns.base import check_keys, without_keys

KEYS = ("question", "unit")
"""Keys of a column in a schema file that are words; whatever its kind, it may have them."""

LONGEST = 300
"""Letters of one of these texts."""


@dataclass(frozen=True)
class About:
    """What cards and pages say of the table. All of it is public, optional, and must not be read off the data.

    Args:
        subject: what a record is: a person, a sample, a mail.
        question: what is decided, as a question: the title of the card.
        positive, negative: what the two decisions are called.
        owner: who publishes the card and answers for it.
        data: what the records are.
        date: when they were collected, or when the card was made, in any form.
        link: the address of a page that explains the card, such as what its privacy means to the owner.
        questions: how to ask for a column, by its name.
        units: what the numbers of a column are counted in, by its name.
    """

    subject: str | None = None
    question: str | None = None
    positive: str | None = None
    negative: str | None = None
    owner: str | None = None
    data: str | None = None
    date: str | None = None
    link: str | None = None
    questions: tuple[tuple[str, str], ...] = ()
    units: tuple[tuple[str, str], ...] = ()

    def __init__(
        self,
        subject: str | None = None,
        question: str | None = None,
        positive: str | None = None,
        negative: str | None = None,
        owner: str | None = None,
        data: str | None = None,
        date: str | None = None,
        link: str | None = None,
        questions: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        units: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    ) -> None:
        said = dict(zip(WORDS, (subject, question, positive, negative, owner, data, date, link), strict=True))
        for key, text in said.items():
            object.__setattr__(self, key, None if text is None else _text(text, f"about: {key}"))
        if self.link is not None and not re.fullmatch(r"https?://[^\s\"'<>]+", self.link):
            raise ValueError(f"about: link must be an address that starts with https://, got {link!r}")
        if positive is not None and positive == negative:
            raise ValueError(f"about: positive and negative are both {positive!r}: name the two decisions differently")
        for key, texts in (("question", questions), ("unit", units)):
            found = dict(texts).items()
            object.__setattr__(self, f"{key}s", tuple((c, _text(text, f"columns.{c}: {key}")) for c, text in found))

    def __bool__(self) -> bool:
        """Whether anything is said."""
        return self != About()

    @property
    def called(self) -> str:
        """What a record is called."""
        return self.subject or "person"

    def asking(self, column: str) -> str | None:
        """How to ask for a column, if there are words for it."""
        question, unit = dict(self.questions).get(column), dict(self.units).get(column)
        if question is None and unit is None:
            return None
        return (question or column) + (f" ({unit})" if unit else "")

    def settings(self, column: str) -> dict[str, str]:
        """The keys of a column in a schema file."""
        both = {"question": dict(self.questions).get(column), "unit": dict(self.units).get(column)}
        return {key: text for key, text in both.items() if text is not None}

    def check(self, columns: Sequence[str]) -> None:
        """Raise for words about a column that is not there."""
        for name in (*dict(self.questions), *dict(self.units)):
            if name not in columns:
                raise ValueError(f"about: the schema has no column {name!r}: take out its question and its unit")

    def only(self, columns: Sequence[str]) -> About:
        """The same words, without those about other columns."""
        questions, units = (
            tuple(pair for pair in pairs if pair[0] in columns) for pairs in (self.questions, self.units)
        )
        return replace(self, questions=questions, units=units)

    def to_dict(self) -> dict[str, str]:
        """The table `about` of a schema file; the words of columns stand with these."""
        return {key: getattr(self, key) for key in WORDS if getattr(self, key) is not None}


WORDS = ("subject", "question", "positive", "negative", "owner", "data", "date", "link")
"""The keys of `[about]` in a schema file."""


def words_taken_out(columns: Mapping[str, Any], about: object) -> tuple[dict[str, Any], About]:
    """The columns of a schema file without their words, and these with what `[about]` says."""
    check_keys(about, WORDS, "about")
    assert isinstance(about, Mapping)
    left, found = without_keys(columns, KEYS)
    return left, About(**about, questions=found["question"], units=found["unit"])


def _text(text: object, where: str) -> str:
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST or not text.isprintable():
        raise ValueError(f"{where} must be one line of text with at most {LONGEST} letters, got {text!r:.80}")
    return text.strip()
