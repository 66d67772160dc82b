"""What the name of a column says, which is public: that it is no feature, or where it is usually cut (theory, section 12)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from privsolve.data.columns import Bins, Categories, Category, Column, Real, Value

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

_MALE = ("male", "Male", "MALE", "m", "M", "man", "Man")
_FEMALE = ("female", "Female", "FEMALE", "f", "F", "woman", "Woman")

_COMMON = """
yes no Yes No YES NO y n Y N t f T F male Male MALE m M female Female FEMALE low medium high Low Medium High none None
other Other unknown Unknown single married divorced widowed normal abnormal positive negative
"""
COMMON_TEXTS = tuple(_COMMON.split())
"""Texts that are counted without a threshold: a public list. Texts that read as numbers or truth values are none of them."""

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
        options: list[Value | Category] = [Category("male", _MALE), "1"]
        listed = Categories(
            name, options, no=Category("female", _FEMALE), missing_values=[v for v in missing if v != 1]
        )
        return listed, "From its name: values that are usual for it. Nothing was read."
    return None
