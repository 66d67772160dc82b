"""Options and choices that several commands offer."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from privsolve.data import Categories, Schema
from privsolve.data.constraints import Constraints
from privsolve.learn.fitting import Objective
from privsolve.learn.limits import CardLimits
from privsolve.mechanisms.registry import all_mechanisms, mechanism_names
from privsolve.models.leaves import LeafKind

MECHANISMS = mechanism_names()
NOISES = tuple(dict.fromkeys(law for mechanism in all_mechanisms() for law in mechanism.noises()))

TABLE, PRIVACY, OUTPUT = "Table", "Privacy", "Output"
EXPERT = "For experts"
"""The panel of options that newcomers need not read."""

Mechanism = Annotated[
    str,
    typer.Option(
        metavar=f"[{'|'.join(MECHANISMS)}]",
        autocompletion=lambda: MECHANISMS,
        help="How the points are chosen.",
        rich_help_panel=EXPERT,
    ),
]
Noise = Annotated[
    str | None,
    typer.Option(
        metavar=f"[{'|'.join(NOISES)}]",
        autocompletion=lambda: NOISES,
        help="Noise for opdisc and rspm; proved and pure if left out.",
        rich_help_panel=EXPERT,
    ),
]
Epsilon = Annotated[float, typer.Option(help="Privacy budget of the release.")]
MaxFeatures = Annotated[
    int | None,
    typer.Option(help="Maximum number of features with points.", show_default="4, fewer on more than 148 columns"),
]
MaxQuestions = Annotated[int | None, typer.Option(help="At most so many columns of the table are asked for.")]
MaxCuts = Annotated[int | None, typer.Option(help="At most so many features of one column have points.")]
Require = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="The card must ask for it; may be repeated.")]
Exclude = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="The card must not ask for it.")]
OneOf = Annotated[
    list[str] | None, typer.Option("--one-of", metavar="A,B,...", help="At most one of these columns is asked for.")
]
Directions = Annotated[
    list[str] | None,
    typer.Option(
        "--direction", metavar="COLUMN=up|down", help="Larger values never lower (up) or raise (down) the total."
    ),
]
ObjectiveOption = Annotated[
    Objective, typer.Option(help="mistakes: the card says yes or no; risk: it says how likely.")
]
LogOdds = Annotated[
    float, typer.Option(help="For a risk score: what one point adds to the log-odds.", rich_help_panel=EXPERT)
]
MaxPoints = Annotated[int | None, typer.Option(help="Points lie in -N..N.", show_default="10, and 3 for a short card")]
Intercept = Annotated[int, typer.Option(min=0, help="The intercept lies in -N..N.", rich_help_panel=EXPERT)]
Sparsity = Annotated[float, typer.Option(help="Above 0: small points become 0.", rich_help_panel=EXPERT)]
FalsePositive = Annotated[int, typer.Option(help="Cost of a false positive, a whole number.")]
FalseNegative = Annotated[int, typer.Option(help="Cost of a false negative, a whole number.")]
Adjacency = Annotated[str, typer.Option(help="replace (n is public) or add-remove.")]
By = Annotated[
    str | None,
    typer.Option(
        help="Figures by group as well: a column of the schema, or COLUMN=VALUE,VALUE,... with public values."
    ),
]
Note = Annotated[str | None, typer.Option(help="What the ledger says of the payment; nothing of the data.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


DEPTH = 3


class ModelName(StrEnum):
    """What is chosen."""

    scorecard = "scorecard"
    short = "short"
    tree = "tree"
    auto = "auto"

    @property
    def page(self) -> str:
        """What its page is called in machine-readable output."""
        return {"short": "scorecard", "auto": "model"}.get(self.value, self.value)


Model = Annotated[
    ModelName,
    typer.Option(help="A full scorecard, a short card, a decision tree, or a short card or tree, whichever fits."),
]
Depth = Annotated[int, typer.Option(help="Of a tree: at most so many questions are asked of a record.")]
TreeLeaves = Annotated[LeafKind, typer.Option(help="What the leaves of a tree say.")]
CardWeight = Annotated[
    float,
    typer.Option(
        help="With --model auto: how likely a card is before the data is seen; a tree has the rest.",
        rich_help_panel=EXPERT,
    ),
]

_CARDS, _TREES = frozenset({"max_features", "max_points", "intercept"}), frozenset({"depth"})
_LIMITS = frozenset({"max_questions", "max_cuts", "require", "exclude", "one_of", "direction"})
_RISKS = frozenset({"objective", "log_odds"})
_NOISE, _LEAVES, _WEIGHT = frozenset({"oracle", "noise", "delta"}), frozenset({"leaves"}), frozenset({"card_weight"})
_SPARSE, _MECHANISM = frozenset({"sparsity"}), frozenset({"mechanism", "oracle", "noise"})
STRANGE = {
    ModelName.scorecard: _TREES
    | _LEAVES
    | _WEIGHT
    | _RISKS
    | _MECHANISM
    | frozenset({"max_features", "intercept", "max_cuts", "one_of"}),
    ModelName.short: _TREES | _LEAVES | _WEIGHT | _SPARSE,
    ModelName.tree: _CARDS | _LIMITS | _NOISE | _WEIGHT | _RISKS | _SPARSE,
    ModelName.auto: _LIMITS | _NOISE | _LEAVES | _RISKS | _SPARSE,
}
"""Options that have no meaning for a model."""


def refuse_strange_options(context: typer.Context, model: ModelName) -> None:
    """Raise for an option that was given on the command line and would be ignored."""
    for name in sorted(STRANGE[model]):
        source = context.get_parameter_source(name) if name in context.params else None
        if source is not None and source.name == "COMMANDLINE":
            takers = " or ".join(other for other in ModelName if name not in STRANGE[other])
            raise ValueError(
                f"--{name.replace('_', '-')} is for --model {takers}: leave it out with --model {model.value}"
            )


def card_limits(
    max_questions: int | None,
    max_cuts: int | None,
    require: list[str] | None,
    exclude: list[str] | None,
    one_of: list[str] | None,
    direction: list[str] | None,
) -> CardLimits:
    """What the options state about a card."""
    ways: dict[str, str] = {}
    for stated in direction or ():
        name, equals, way = stated.rpartition("=")
        if not equals or ways.get(name, way) != way:
            raise ValueError(f"--direction {stated}: write COLUMN=up or COLUMN=down, once for a column")
        ways[name] = way
    lists = [[name.strip() for name in names.split(",")] for names in one_of or ()]
    return CardLimits(max_questions, max_cuts, Constraints(ways, require or (), exclude or (), alternatives=lists))


def check_most_features(max_features: int | None, schema: Schema) -> None:
    """Raise for a limit that limits nothing, before anything is read: who states it expects something else."""
    features = schema.dim - schema.intercept
    if max_features is not None and max_features > features:
        raise ValueError(
            f"--max-features {max_features}: the schema has {features} features; use at most {features}, few enough for people "
            "to add up (4 is usual), or --max-questions"
        )


def class_weights(card_weight: float) -> dict[str, float]:
    """The weights of the classes of `--model auto`."""
    if not 0 < card_weight < 1:
        raise ValueError(f"--card-weight must lie between 0 and 1, got {card_weight:g}: or use --model short or tree")
    return {"card": card_weight, "tree": 1 - card_weight}


Resume = Annotated[
    bool,
    typer.Option("--resume", help="Go on with a run that was interrupted: the same command, and nothing more is paid."),
]


class CardFormat(StrEnum):
    """How a scorecard is written."""

    text = "text"
    markdown = "markdown"
    latex = "latex"
    html = "html"
    json = "json"
    sql = "sql"
    python = "python"
    javascript = "javascript"
    xlsx = "xlsx"


def group_of(by: str | None) -> str | Categories | None:
    """What `--by` asks for: the name of a column, or a column with the values that are listed."""
    name, equals, values = (by or "").partition("=")
    return Categories(name, [value.strip() for value in values.split(",")]) if equals else by
