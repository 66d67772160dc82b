"""What a draft will do, from public facts alone: names, the number of records, and options (theory, section 12)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from privsolve.checks import check_items
from privsolve.data.columns import Bins, Categories, Category, Column, Label, Real, Value
from privsolve.data.columns.base import check_decimal, check_missing_values, marks_of
from privsolve.data.columns.label import Target
from privsolve.data.private.counts import NA_CODES, Costs, Declared, count_records
from privsolve.data.private.cuts import DecimalGrid, Grid, StepGrid
from privsolve.data.reading import Marks, check_columns
from privsolve.data.schema import check_label
from privsolve.privacy.adjacency import Adjacency

IDENTIFIES = "its name says that it identifies people or records"
FREE_TEXT = "its name says that it holds free text"
TIME = "its name says that it holds dates or times: state its cut points"
PLACE_IN_FILE = "it has no name of its own: give it one in the data"

_LEFT_OUT = {
    IDENTIFIES: (
        "id ids uid uuid guid pid key ssn nif nhs mrn iban "
        "ticket cabin index rownames unnamed surname firstname lastname forename name names "
        "firstname lastname fullname username email mail phone fax address street "
        "zip zipcode postcode postalcode latitude longitude lat lon url ip hash serial passport"
    ),
    FREE_TEXT: "note notes comment comments remark remarks description text freetext message review title memo narrative",
    TIME: (
        "date dates datetime timestamp dob admissiontime dischargetime starttime endtime birthdate birthday dayofbirth "
        "dateofbirth dt created updated"
    ),
}


@dataclass(frozen=True)
class Usual:
    """Public cut points for columns with one of these names, which are written without spaces and in small letters."""

    names: str
    cuts: tuple[Real, ...]
    whole: bool = True


USUAL = (
    Usual(
        "age ages ageyears ageinyears patientage ageatadmission customerage personage",
        (15, 25, 35, 45, 55, 65, 75),
        False,
    ),
    Usual("bmi bodymassindex bmikgm2", (18.5, 25, 30, 35), False),
    Usual("diastolic dbp diabp aplo diastolicbp diastolicbloodpressure", (70, 80, 90, 100)),
    Usual(
        "systolic sbp sysbp trestbps trtbps aphi restingbp systolicbp systolicbloodpressure", (110, 120, 130, 140, 160)
    ),
    Usual("bp bloodpressure", (60, 70, 80, 90, 120, 140, 160)),
    Usual("ldl", (100, 130, 160, 190)),
    Usual("hdl", (40, 50, 60)),
    Usual("triglycerides triglyceride", (100, 150, 200, 500)),
    Usual("cholesterol chol totchol", (160, 180, 200, 220, 240, 280)),
    Usual("hba1c a1c hba1clevel", (5.7, 6.5, 8), False),
    Usual("glucose avgglucoselevel bloodglucose bloodglucoselevel", (80, 100, 126, 140, 160, 200)),
    Usual("thalach thalachh thalch maxhr heartrate pulse", (60, 80, 100, 120, 140, 160)),
    Usual("creatinine serumcreatinine", (0.8, 1, 1.2, 1.5, 2, 4), False),
    Usual("ejectionfraction", (30, 40, 50, 60)),
    Usual("haemoglobin hemoglobin", (8, 10, 12, 14, 16), False),
    Usual("serumsodium sodium", (130, 135, 140, 145)),
    Usual("oldpeak stdepression", (0.5, 1, 2, 3), False),
    Usual("weightkg weight", (50, 60, 70, 80, 90, 100, 120), False),
    Usual("heightcm", (150, 160, 170, 180, 190), False),
    Usual("hoursperweek weeklyhours workhours", (20, 35, 40, 45, 50, 60)),
    Usual("capitalgain capitalloss", (1, 1000, 2000, 5000, 10_000)),
    Usual("creditscore fico", (580, 620, 660, 700, 740, 800)),
    Usual("applicantincome monthlyincome", (1000, 2000, 3000, 5000, 7500, 10_000, 20_000)),
    Usual(
        "income salary wage wages annualincome estimatedsalary",
        (10_000, 20_000, 35_000, 50_000, 75_000, 100_000, 150_000),
    ),
    Usual("monthlycharges monthlyfee", (20, 40, 60, 80, 100)),
    Usual("totalcharges", (100, 500, 1000, 2000, 4000)),
    Usual("balance", (0, 500, 1000, 2000, 5000, 20_000, 100_000), False),
    Usual("fare", (10, 20, 50, 100), False),
    Usual(
        "creditamount loanamount loanamnt amount amt price cost", (100, 500, 1000, 2000, 5000, 10_000, 50_000), False
    ),
    Usual("educationnum educationalnum yearsofeducation", (9, 10, 11, 12, 13, 14)),
    Usual("durationmonths durationinmonth durationmonth months tenure", (6, 12, 18, 24, 36, 48, 60)),
    Usual("years yearsatcompany yearsemployed experience seniority", (1, 2, 3, 5, 10, 20)),
    Usual("days lengthofstay los timeinhospital", (2, 3, 5, 7, 14, 30)),
    Usual("priors priorscount priorcount priorconvictions", (1, 2, 3, 5, 10)),
    Usual("sibsp parch children dependents siblings numdependents nchildren numberofchildren", (1, 2, 3)),
    Usual(
        "numofproducts visits numberofvisits numvisits numberinpatient numberemergency numberoutpatient", (1, 2, 3, 5)
    ),
)


def _cased(words: str) -> tuple[str, ...]:
    """The words in small letters, with a capital, and in capitals."""
    return tuple(dict.fromkeys(form(word) for word in words.split() for form in (str, str.title, str.upper)))


_MALE = _cased("male m man männlich mann homme hombre")
_FEMALE = _cased("female f woman w weiblich frau femme mujer")

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def words(name: str) -> tuple[str, ...]:
    """The words of a name in small letters: `CustomerId` is customer and id, `hours-per-week` three words."""
    return tuple(word.lower() for word in _WORDS.findall(name))


def why_left_out(name: str) -> str | None:
    """Why a column of this name is not used unless somebody asks for it; None if nothing speaks against it."""
    if re.fullmatch(r"(.* )?\(column \d+\)", name) or name.startswith("Unnamed"):
        return PLACE_IN_FILE
    found = words(name)
    if found == ("time",):
        return TIME
    if len(found) > 1 and found[-1] in ("number", "nr", "nbr"):
        return IDENTIFIES
    ends = {"".join(found[-count:]) for count in (1, 2, 3)}  # `customer id` ends with `id`
    return next((reason for reason, known in _LEFT_OUT.items() if ends & set(known.split())), None)


def usual_column(name: str, missing: Sequence[Value], decimal: str, *, texts: bool) -> tuple[Column, str] | None:
    """A column of this name with cut points or values from the public catalogue, and a note; None if it has none.

    `texts` says that the values are texts by the definition of the table: sex is listed only then, as codes differ.
    """
    said = "".join(words(name))
    for usual in USUAL:
        if said in usual.names.split():
            cuts = Bins(name, usual.cuts, "thresholds", usual.whole, None, missing, decimal)
            return cuts, "From its name: cut points that are usual for it. Nothing was read."
    if texts and said in ("sex", "gender"):
        options: list[Value | Category] = [Category("male", _MALE), Category("code 1", ("1", "1.0"))]
        listed = Categories(
            name, options, no=Category("female", _FEMALE), missing_values=[v for v in missing if v != 1]
        )
        return listed, "From its name: values that are usual for it. Nothing was read."
    return None


RECOGNISED = 3
"""A value that one in so many records has must be told from noise, or a column is not asked."""

CLEARLY_RECOGNISED = 6
"""If a value that one in so many records has is told from noise, columns are asked that the catalogue of names knows too: their
values may be other ones than usual, such as ages in days."""


@dataclass(frozen=True)
class Options:
    """What is stated about the columns of a table before anything is read."""

    stated: Sequence[Column]
    bounds: Mapping[str, tuple[float, ...]]
    leave_out: Sequence[str]
    numbers: Sequence[str]
    texts: Sequence[str]
    missing: Sequence[Value]
    decimal: str

    def __post_init__(self) -> None:
        """Checked as far as that is possible without the table."""
        for key in ("leave_out", "numbers", "texts"):
            object.__setattr__(self, key, check_items(key, getattr(self, key), "be a list of columns"))
        if both := sorted(set(self.numbers) & set(self.texts)):
            raise ValueError(f"column {both[0]!r} is in numbers and in texts: it can only be one of them")
        object.__setattr__(self, "numbers", tuple(dict.fromkeys((*self.numbers, *self.bounds))))
        codes = check_items("missing", self.missing, "be a list of texts and numbers")
        object.__setattr__(self, "missing", check_missing_values(codes, "missing"))
        check_decimal(self.decimal, "the draft")

    @property
    def marks(self) -> Marks:
        """What stands for no value, and how numbers are written."""
        return marks_of((*NA_CODES, *self.missing), self.decimal)

    @property
    def named(self) -> tuple[str, ...]:
        """The columns whose kind is stated."""
        return (*self.numbers, *self.texts)

    def check(self, label: Label | Target | None, names: Sequence[str]) -> None:
        """Raise for a column that the table does not have."""
        target = () if label is None else (label.column,)
        check_columns([*target, *(column.column for column in self.stated), *self.leave_out, *self.named], names)


@dataclass(frozen=True)
class Plan:
    """Which columns are known from public facts, which are asked and on which grids, and why others are left out."""

    label: Label | Target | None
    options: Options
    order: tuple[str, ...]
    known: Mapping[str, Column]
    notes: Mapping[str, str]
    grids: Mapping[str, Grid]
    left_out: Mapping[str, str]
    costs: Costs
    records: int | None

    @classmethod
    def of(
        cls,
        data: Any,
        label: Label | Target | None,
        epsilon: float,
        delta: float,
        adjacency: Adjacency,
        options: Options,
    ) -> Plan:
        """Look at the names of the columns, the number of records where it is public, and nothing else."""
        if label is not None and not isinstance(label, Label | Target):
            raise ValueError(f"label must be a Label, with the values of its column, got {type(label).__name__}")
        declared = Declared.of(data)
        options.check(label, declared.names)
        records = _records(data, label, adjacency)
        known = {column.column: column for column in options.stated}
        notes, left_out = dict[str, str](), dict[str, str]()
        ask: list[str] = []
        usual: dict[str, tuple[Column, str]] = {}
        order = [n for n in declared.names if n not in options.leave_out and (label is None or n != label.column)]
        for name in order:
            if name in known:
                continue
            found = _from_its_name(name, declared, options)
            if found is None:
                ask.append(name)
            elif isinstance(found, str):
                left_out[name] = found
            else:
                usual[name] = found
        both = Costs(epsilon, delta, adjacency, len(ask) + len(usual))
        if records is not None and both.columns and CLEARLY_RECOGNISED * both.clear <= records:
            ask = [name for name in order if name in ask or (name in usual and name not in declared.booleans)]
        for name, found in usual.items():
            if name not in ask:
                known[name], notes[name] = found
        ask.sort(key=lambda name: name not in options.named)
        most = next((k for k in range(len(ask), 0, -1) if _recognised(replace(both, columns=k), records)), 0)
        why = "" if records is None else _too_many(records, epsilon, most)
        left_out |= dict.fromkeys(ask[most:], why)
        grids = {name: _grid(name, options.bounds) for name in ask[:most]}
        if not known and not grids:
            raise ValueError(_nothing(ask, left_out, why))
        costs = replace(both, columns=len(grids))
        return cls(label, options, tuple(order), known, notes, grids, left_out, costs, records)


def _records(data: Any, label: Label | Target | None, adjacency: Adjacency) -> int | None:
    """The number of records where it is public; labels are checked by the same query."""
    if label is None and adjacency is not Adjacency.REPLACE:
        return None
    records = count_records(data) if label is None else check_label(label, data)
    if not records:
        raise ValueError("the data has no records: give at least one")
    return records if adjacency is Adjacency.REPLACE else None


def _from_its_name(name: str, declared: Declared, options: Options) -> tuple[Column, str] | str | None:
    """The column with a note, why it is left out, or None if it has to be asked."""
    if name in declared.neither:
        return "neither texts nor numbers: convert it, or state it if it holds dates"
    if name in declared.booleans:
        return Categories(name, [True], no=False), "From its type: true or false. Nothing was read."
    if name in options.named:
        return None
    usual = usual_column(name, options.missing, options.decimal, texts=name in declared.texts)
    return why_left_out(name) if usual is None else usual


def _recognised(costs: Costs, records: int | None) -> bool:
    """Whether a value of a third of the records would be told from noise."""
    return records is None or RECOGNISED * costs.clear <= records


def _too_many(records: int, epsilon: float, most: int) -> str:
    can = f"only {most} column{'s' * (most != 1)}" if most else "no column"
    of = "1 sample" if records == 1 else f"{records:,} records"
    return (
        f"not asked: with {of} and epsilon {epsilon:g} the values of {can} can be told from noise; state it "
        "in a schema file, raise epsilon, or leave other columns out"
    )


def _nothing(ask: Sequence[str], left_out: Mapping[str, str], why: str) -> str:
    if ask:
        return f"nothing can be drafted, and nothing was spent: {why.removeprefix('not asked: ')}"
    reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items()) or "every column is left out"
    return f"no column is left to draft, and nothing was spent ({reasons})"


def _grid(name: str, bounds: Mapping[str, tuple[float, ...]]) -> Grid:
    if name not in bounds:
        return DecimalGrid()
    if len(bounds[name]) not in (2, 3):
        raise ValueError(f"bounds of {name!r} must be low and high, and a step if you like")
    return StepGrid.between(*bounds[name])
