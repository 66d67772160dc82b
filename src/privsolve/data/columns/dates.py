"""A date cut at public days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, ClassVar

from privsolve.arrays import Floats
from privsolve.data.columns.bins import Bins, Encoding
from privsolve.data.columns.values import Real, Value, declared, declared_marks, marks_of
from privsolve.data.days import FORMATS, ISO, day_of, days_of, number_of_day
from privsolve.data.questions import DateSpan, Span


@dataclass(frozen=True)
class Dates(Bins):
    """A date cut at public days: a date at a cut opens the next part. Times of day are left out.

    Dates are those of the data's own type, or texts in the `format`: `YYYY-MM-DD` unless stated, with or without a time behind
    it. Inside, a day is the number `yyyymmdd`, which orders days as the calendar does. `"thresholds"` gives every cut an
    indicator (`born>=1990-01-01`), `"intervals"` every part.
    """

    key: ClassVar[str] = "dates"
    keys: ClassVar[tuple[str, ...]] = ("dates", "encoding", "missing", "missing_values", "format")

    encoding: Encoding = Encoding.THRESHOLDS
    whole: bool = field(default=False, init=False)
    decimal: str = field(default=".", init=False)
    format: str = ISO

    def __init__(
        self,
        column: str,
        cuts: Sequence[date | str | float],
        encoding: Encoding | str = Encoding.THRESHOLDS,
        missing: str | None = None,
        missing_values: Sequence[Value] = (),
        format: str = ISO,
    ) -> None:
        where = f"columns.{column}"
        if isinstance(cuts, str) or not isinstance(cuts, Sequence) or not cuts:
            raise ValueError(f'{where}: dates must be a non-empty list of days such as "1990-01-31"')
        if format not in FORMATS:
            raise ValueError(f"{where}: format must be one of {', '.join(FORMATS)}, got {format!r}")
        days = [number_of_day(cut, f"{where}: dates") for cut in cuts]
        if sorted(set(days)) != days:
            raise ValueError(f"{where}: dates must be in ascending order without repeats")
        super().__init__(column, days, encoding, False, missing, missing_values)
        object.__setattr__(self, "format", format)

    def _cut_text(self, cut: float) -> str:
        day = f"{int(cut):08d}"
        return f"{day[:4]}-{day[4:6]}-{day[6:]}"

    def _range_text(self, i: int) -> str:
        if i == 0:
            return f"before {self._cut_text(self.cuts[0])}"
        if i == len(self.cuts):
            return f"from {self._cut_text(self.cuts[-1])} on"
        return f"{self._cut_text(self.cuts[i - 1])} to before {self._cut_text(self.cuts[i])}"

    def _span(self, low: Real | None, high: Real | None) -> Span:
        return DateSpan(low, high)

    def _bin_name(self, i: int) -> str:
        return f"{self.column} {self._range_text(i)}"

    def _values(self, series: Any) -> Floats:
        return days_of(series, self.column, self.format, marks_of(self.missing_values))

    def read(self, value: Any) -> Any:
        """The number of the day, in an engine; null where it is missing."""
        return day_of(value, self.column, self.format, marks_of(self.missing_values))

    def to_dict(self) -> dict[str, Any]:
        """As in a schema file."""
        settings: dict[str, Any] = {"dates": [self._cut_text(cut) for cut in self.cuts]}
        said = declared(
            encoding=self.encoding if self.encoding is not Encoding.THRESHOLDS else None,
            missing=self.missing,
            format=self.format if self.format != ISO else None,
        )
        return settings | said | declared_marks(self.missing_values)

    @classmethod
    def from_dict(cls, name: str, settings: Mapping[str, Any]) -> Dates:
        """As in a schema file."""
        return cls(name, settings["dates"], **{key: value for key, value in settings.items() if key != "dates"})
