"""Single options that several commands offer."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from privsolve.cli.engine import engine_at_work
from privsolve.cli.option_groups import EXPERT, OUTPUT, PRIVACY, TABLE
from privsolve.data import Categories
from privsolve.data.tables import decimal_sign, open_table
from privsolve.data.weights import Weight

Epsilon = Annotated[float, typer.Option(help="Privacy budget of the release.")]
Adjacency = Annotated[str, typer.Option(help="replace (n is public) or add-remove.", rich_help_panel=PRIVACY)]
By = Annotated[
    str | None,
    typer.Option(
        help="Figures by group as well: a column of the schema, or COLUMN=VALUE,VALUE,... with public values.",
        rich_help_panel=EXPERT,
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        help="The positive value of the label; or a comparison with a plain number, such as '>=150'. '>50K' is a value, and "
        "'=<30' is the text <30.",
        rich_help_panel=TABLE,
    ),
]
Negative = Annotated[
    str | None, typer.Option(help="The negative value; every other one if left out.", rich_help_panel=TABLE)
]
Classes = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,C", help="Instead of --positive: the values of a label with several.", rich_help_panel=TABLE
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="LOW:HIGH",
        help="Instead of --positive: the label is a number between public bounds.",
        rich_help_panel=TABLE,
    ),
]
Note = Annotated[
    str | None,
    typer.Option(help="What the ledger says of the payment; nothing of the data.", rich_help_panel=EXPERT),
]
WeightColumn = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Survey weights: how much each record counts.", rich_help_panel=EXPERT),
]
MaxWeight = Annotated[
    float | None,
    typer.Option(help="With --weight: the largest weight, public; larger ones are cut.", rich_help_panel=EXPERT),
]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.", rich_help_panel=EXPERT)]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on with a run that was interrupted: the same command, and nothing more is paid.",
        rich_help_panel=OUTPUT,
    ),
]


BandsText = Annotated[
    str | None,
    typer.Option(
        metavar="CUTS",
        help="Names for ranges of totals: cut risks 5%,20%, totals 12,20, or with names low,5%,medium,20%,high.",
        rich_help_panel=EXPERT,
    ),
]


class CardFormat(StrEnum):
    """How a scorecard is written."""

    text = "text"
    markdown = "markdown"
    html = "html"
    json = "json"
    sql = "sql"
    python = "python"
    javascript = "javascript"
    xlsx = "xlsx"


def weight_of(
    column: str | None, largest: float | None, data: str, header: str | None, decimal: str | None = None
) -> Weight | None:
    """What `--weight` and `--max-weight` ask for; raises if only one is given, or if no record has a weight above 0."""
    if column is None and largest is None:
        return None
    if column is None or largest is None:
        raise ValueError(
            "--weight and --max-weight go together, for example --weight w --max-weight 5: the column, and the largest weight, "
            "which is public"
        )
    weight = Weight(column, largest, decimal or decimal_sign(data, header))
    with engine_at_work("reading", data):
        weight.check(open_table(data, header=header))
    return weight


def group_of(by: str | None) -> str | Categories | None:
    """What `--by` asks for: the name of a column, or a column with the values that are listed."""
    name, equals, values = (by or "").partition("=")
    return Categories(name, [value.strip() for value in values.split(",")]) if equals else by
