"""A private draft of a schema: its options, which are checked before anything is read, and the draft in its file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any

from rich.markup import escape

from privsolve.cli.common import console
from privsolve.cli.options import EXPERT, TABLE, Running, option
from privsolve.cli.releasing import release_from, sealed_run
from privsolve.data import About, Label
from privsolve.data.columns import Column, Value, tidy
from privsolve.data.columns.label import Comparison, Target
from privsolve.data.private import PrivateDraft, default_delta, private_draft
from privsolve.data.private.counts import count_records
from privsolve.data.private.plan import Options, Plan
from privsolve.data.reading import NUMBER_PATTERN, YES, check_columns
from privsolve.data.tables import content_digest, decimal_sign, open_table
from privsolve.privacy.accounting import Account
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.calibration import check_delta, check_epsilon
from privsolve.safety.folder import output_file
from privsolve.safety.signals import Stop


@dataclass(frozen=True)
class TableOptions:
    """What is said on the command line about a table without a schema. Each option of columns names one or several."""

    label: Annotated[str | None, option(TABLE, "The column to predict; a schema file names it.")] = None
    positive: Annotated[
        str | None,
        option(
            TABLE,
            "The positive value of the label; or a comparison with a plain number, such as '>=150'. '>50K' is a value, and "
            "'=<30' is the text <30.",
        ),
    ] = None
    negative: Annotated[str | None, option(TABLE, "The negative value; every other one if left out.")] = None
    classes: Annotated[
        str | None, option(TABLE, "Instead of --positive: the values of a label with several.", metavar="A,B,C")
    ] = None
    target: Annotated[
        str | None,
        option(TABLE, "Instead of --positive: the label is a number between public bounds.", metavar="LOW:HIGH"),
    ] = None
    leave_out: Annotated[
        list[str] | None, option(TABLE, "Columns not to use, with commas between them.", "--leave-out", "--drop")
    ] = None
    numbers: Annotated[list[str] | None, option(EXPERT, "Columns that are known to hold numbers.")] = None
    texts: Annotated[list[str] | None, option(EXPERT, "Columns that are known to hold texts.")] = None
    missing: Annotated[
        list[str] | None,
        option(EXPERT, "A value that stands for no value, such as -999; NA, NULL, ? and the like always do."),
    ] = None
    decimal: Annotated[
        str | None,
        option(EXPERT, "Sign before decimals, '.' or ','.", show_default="',' in files with semicolons, else '.'"),
    ] = None

    def check(self) -> None:
        """Raise unless the label is stated, and one of positive, classes and target."""
        stated = [self.positive, self.classes, self.target]
        if self.label is None or stated.count(None) == 3:
            raise ValueError(
                "--label and --positive: name the column to predict and its positive value, for example --label died "
                "--positive yes (or --classes, or --target); what the label says is stated, not read off the data"
            )
        if stated.count(None) != 2:
            raise ValueError("--positive, --classes and --target: give one of them only")
        if self.positive is None and self.negative is not None:
            raise ValueError("--negative goes with --positive: leave it out")

    def refuse_all(self) -> None:
        """Raise for any of them: a schema file says it."""
        for one in fields(self):
            if getattr(self, one.name):
                raise ValueError(f"--{one.name.replace('_', '-')}: the schema file says that: leave it out")

    @property
    def missing_values(self) -> tuple[Value, ...]:
        """What stands for no value: numbers where they read as such."""
        return tuple(map(_number_or_text, self.missing or ()))

    def several(self) -> Target | None:
        """Classes as texts, or bounds of numbers; None for a yes/no label."""
        self.check()
        assert self.label is not None
        marks: dict[str, Any] = {"missing_values": self.missing_values, "decimal": self.decimal or "."}
        if self.classes is not None:
            return Target(self.label, tuple(one.strip() for one in self.classes.split(",")), **marks)
        if self.target is None:
            return None
        try:
            low, high = map(float, self.target.split(":"))
        except ValueError:
            raise ValueError(f"--target {self.target}: write the public bounds as LOW:HIGH, such as 0:100") from None
        return Target(self.label, low=low, high=high, **marks)

    def label_in(self, table: Any) -> Label | Target:
        """The label with its values as the table has them: texts, numbers or booleans, by its type."""
        several, name = self.several(), str(self.label)
        check_columns([name], table.columns)
        kind = table[name].type()
        if several is not None:
            return replace(several, classes=tuple(_value(str(one), kind) for one in several.classes))
        assert self.positive is not None
        if self.negative is None and Comparison.of(self.positive) is not None:
            return Label(name, self.positive, missing_values=self.missing_values, decimal=self.decimal or ".")
        text = self.positive.removeprefix("=")  # "=<30" is the text "<30"
        positive = text if Comparison.of(text) is not None else self.positive
        negative = None if self.negative is None else [_value(self.negative, kind)]
        return Label(name, [_value(positive, kind)], negative)


@dataclass(frozen=True)
class Draft:
    """One private draft of the schema of a table: everything but the records.

    Args:
        data, header: the table, as `open_table` takes it.
        table: what is said about it.
        epsilon: privacy budget of the draft.
        delta: its δ; None chooses it by public facts.
        adjacency: `"replace"` or `"add-remove"`.
        no_delta: whether the ledger has no δ for releases.
        columns: the columns to use; all if empty.
        stated: columns that are public, and cost nothing.
        bounds: public bounds of numbers, as `COLUMN=LOW:HIGH`.
        about: public words for the card.
    """

    data: str
    header: str | None
    table: TableOptions
    epsilon: float
    delta: float | None = None
    adjacency: str = "replace"
    no_delta: bool = False
    columns: tuple[str, ...] = ()
    stated: tuple[Column, ...] = ()
    bounds: tuple[str, ...] = ()
    about: About = field(default_factory=About)

    def __post_init__(self) -> None:
        self.table.check()
        if self.table.decimal is None:
            decimal = decimal_sign(self.data, self.header)
            object.__setattr__(self, "table", replace(self.table, decimal=decimal))
        _ = [_bounds(one) for one in self.bounds]

    @cached_property
    def opened(self) -> Any:
        """The table; opening a text file goes through all of it once."""
        return open_table(self.data, header=self.header)

    @cached_property
    def asks_nothing(self) -> bool:
        """Whether public facts say it all, so that nothing is read and nothing has to be paid or sealed."""
        options, label = Options(**self._stated(self.opened)), self.table.label_in(self.opened)
        epsilon, adjacency = check_epsilon(self.epsilon), Adjacency.of(self.adjacency)
        return not Plan.of(self.opened, label, epsilon, self._delta(self.opened), adjacency, options).grids

    def write(self, out: Path, stop: Stop, running: Running) -> PrivateDraft:
        """Pay, draft and write the schema file, which has its place before anything is paid."""
        if not running.resume and self.asks_nothing:
            with output_file(out) as write:
                found = self.drafted("")
                write(found.to_toml())
            return found
        with (
            output_file(out, resume=running.resume) as write,
            sealed_run(out.with_name(f"{out.name}.sealed"), stop, running) as sealed,
        ):

            def written(found: PrivateDraft) -> Path:
                write(found.to_toml())
                return out

            return release_from(sealed, stop, partial(self.drafted, content_digest(self.data)), written)

    def drafted(self, content: str, *, random_state: Any = None, budget: Account | None = None) -> PrivateDraft:
        """Draft from files with that `content_digest`, paid for by the budget, with words for people."""
        table = self.opened
        found = private_draft(
            table,
            self.table.label_in(table),
            self.epsilon,
            self._delta(table),
            **self._stated(table),
            adjacency=self.adjacency,
            random_state=random_state,
            budget=budget,
        )
        return replace(found, schema=replace(found.schema, about=self.about))

    def _stated(self, table: Any) -> dict[str, Any]:
        """What is stated about the columns of a table; raises for a name that it does not have."""
        said, names = self.table, table.columns
        used, dropped = _names(self.columns, names), _names(said.leave_out or (), names)
        check_columns([*used, *dropped], names)
        others = [name for name in names if name not in used and name != said.label] if used else []
        return {
            "stated": self.stated,
            "bounds": dict(map(_bounds, self.bounds)),
            "leave_out": tuple(dict.fromkeys([*others, *dropped])),
            "numbers": _names(said.numbers or (), names),
            "texts": _names(said.texts or (), names),
            "missing": said.missing_values,
            "decimal": said.decimal,
        }

    def _delta(self, table: Any) -> float:
        """As stated; or none if the ledger has none; or by the number of records, where that is public."""
        if self.delta is not None:
            return check_delta(self.delta) if self.delta else 0.0
        if self.no_delta:
            return 0.0
        return default_delta(count_records(table) if Adjacency.of(self.adjacency) is Adjacency.REPLACE else None)


def show_left_out(left_out: Mapping[str, str]) -> None:
    """Why columns are not in the schema, those with the same reason together."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        console.print(f"Left out {escape(', '.join(names))}: {escape(reason)}", soft_wrap=True)


def _names(stated: Sequence[str], known: Sequence[str]) -> list[str]:
    """An option is the name of a column, which may have commas, or several names with commas between them."""
    found = []
    for one in stated:
        found += [one] if one in known else [name.strip() for name in one.split(",") if name.strip()]
    return found


def _number_or_text(text: str) -> Value:
    text = text.strip()
    return tidy(float(text)) if re.search(NUMBER_PATTERN, text) else text


def _value(text: str, kind: Any) -> Value:
    if kind.is_string():
        return text.strip()
    if kind.is_boolean():
        return text.strip().lower() in (*YES, "1")
    try:
        number = float(text)
    except ValueError:
        raise ValueError(
            f"the label holds numbers, got {text!r}: give one of its values, or a comparison such as '>=150' alone"
        ) from None
    return int(number) if number.is_integer() else number


def _bounds(stated: str) -> tuple[str, tuple[float, ...]]:
    name, _, ends = stated.rpartition("=")
    try:
        numbers = tuple(float(end) for end in ends.split(":"))
    except ValueError:
        numbers = ()
    if not name or len(numbers) not in (2, 3):
        raise ValueError(f"--bounds {stated}: must be COLUMN=LOW:HIGH or COLUMN=LOW:HIGH:STEP")
    return name, numbers
