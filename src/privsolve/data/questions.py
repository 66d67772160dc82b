"""What a scorecard asks: each column of the data as one question that a person can answer."""

from __future__ import annotations

from dataclasses import dataclass, replace

Real = int | float


@dataclass(frozen=True)
class Span:
    """Numbers from `low` to below `high`, each of which may be open; `whole` says that there are whole numbers only."""

    low: Real | None
    high: Real | None
    whole: bool = False

    @property
    def text(self) -> str:
        """The numbers as people say them."""
        if self.low is None and self.high is None:
            return "any number"
        if self.low is None:
            return f"under {self.high}"
        if self.high is None:
            return f"{self.low} or more"
        if not self.whole:
            return f"{self.low} to under {self.high}"
        last = self.high - 1
        return f"{self.low}" if last == self.low else f"{self.low} to {last}"

    def until(self, other: Span) -> Span:
        """Both as one, where the other one follows."""
        return replace(self, high=other.high)


class DateSpan(Span):
    """Days, written as the numbers YYYYMMDD."""

    @property
    def text(self) -> str:
        """The days as people say them."""
        low, high = (None if day is None else date_text(int(day)) for day in (self.low, self.high))
        if low is None:
            return "any date" if high is None else f"before {high}"
        return f"from {low} on" if high is None else f"{low} to before {high}"


def date_text(day: int) -> str:
    """The number YYYYMMDD as a date."""
    return f"{day // 10_000:04}-{day // 100 % 100:02}-{day % 100:02}"


@dataclass(frozen=True)
class Option:
    """One possible answer, and the 0/1 features that are 1 for it (none, one, or several for cumulative bins).

    An answer that stands for numbers says which, so that neighbours with the same points can be read as one.
    """

    text: str
    features: tuple[str, ...]
    span: Span | None = None


@dataclass(frozen=True)
class Choice:
    """A column whose value falls into exactly one of a few public options."""

    column: str
    options: tuple[Option, ...]
    text: str | None = None
    """How a person is asked for it; its name if there are no words."""


@dataclass(frozen=True)
class Quantity:
    """A number between public bounds: clipped, the feature is `floor(value / step + 1/2)`, and scores `w / scale` each."""

    column: str
    feature: str
    low: float
    high: float
    step: float
    scale: int
    text: str | None = None


Question = Choice | Quantity


def answered(question: str, answer: str) -> str:
    """A question with its answer, as a line."""
    return f"{question}{' ' if question.endswith('?') else ': '}{answer}"
