"""Options that several commands share, declared once, and the groups of options that say which model is fitted."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property, wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from privsolve.cli.common import engine_at_work
from privsolve.data import Categories, Schema
from privsolve.data.columns.label import Target
from privsolve.data.constraints import Constraints
from privsolve.data.tables import decimal_sign, open_table
from privsolve.data.weights import Weight
from privsolve.learn.evaluating import HoldOut
from privsolve.learn.full_card_recipe import DEFAULT_DELTA, FullCardRecipe, NumberCardRecipe
from privsolve.learn.recipe import Recipe
from privsolve.learn.short_card_recipe import CardLimits, ShortCardRecipe
from privsolve.learn.tree_recipe import DEPTH, TreeRecipe, leaves_of
from privsolve.losses import ZeroOneLoss
from privsolve.models.bands import Bands
from privsolve.models.leaves import LeafKind
from privsolve.models.linear import answers
from privsolve.privacy.decimals import at_most, exact
from privsolve.privacy.ledger import Ledger
from privsolve.safety.folder import SCORECARD, Folder, output_folder

TABLE, MODEL, PRIVACY, OUTPUT = "Table", "Model", "Privacy", "Output"
EXPERT = "For experts"
"""The panel of options that newcomers need not read."""

PANELS = (TABLE, MODEL, PRIVACY, OUTPUT, EXPERT)


def option(panel: str, text: str, *names: str, **more: Any) -> Any:
    """An option of a command, shown in a panel of its help."""
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


Data = Annotated[str, typer.Argument(help="CSV or Parquet file (or a quoted glob), or file.duckdb::table.")]
Header = Annotated[
    str | None,
    option(EXPERT, "Of a text file without one: the header line it lacks, with its separator, as 'age,sex,ill'."),
]
Epsilon = Annotated[float, typer.Option(help="Privacy budget of the release.")]
Adjacency = Annotated[str, option(PRIVACY, "replace (n is public) or add-remove.")]
Json = Annotated[bool, option(EXPERT, "Machine-readable output.", "--json")]
BandsText = Annotated[
    str | None,
    option(
        EXPERT,
        "Names for ranges of totals: cut risks 5%,20%, totals 12,20, or with names low,5%,medium,20%,high.",
        metavar="CUTS",
    ),
]


@dataclass(frozen=True)
class Running:
    """Who pays for a run, and whether it goes on with an earlier one."""

    ledger: Annotated[Path | None, option(PRIVACY, "Budget file that pays for it (`privsolve budget`).")] = None
    resume: Annotated[
        bool,
        option(
            OUTPUT, "Go on with a run that was interrupted: the same command, and nothing more is paid.", "--resume"
        ),
    ] = False
    seed: Annotated[int | None, option(EXPERT, "Repeatable noise, for testing only.")] = None

    @cached_property
    def budget(self) -> Ledger | None:
        """The ledger."""
        return Ledger.open(self.ledger) if self.ledger else None

    @property
    def no_delta(self) -> bool:
        """Whether the ledger has no δ for releases."""
        return self.budget is not None and not self.budget.budget.release_delta


@dataclass(frozen=True)
class Releasing(Running):
    """How a release is paid for, and where it goes beside its folder."""

    overwrite: Annotated[bool, option(OUTPUT, "Replace an earlier release in the folder.", "--overwrite")] = False
    curator: Annotated[
        Path | None,
        option(EXPERT, "Folder for what must not be published.", show_default="beside OUT, named OUT-curator"),
    ] = None
    note: Annotated[str | None, option(EXPERT, "What the ledger says of the payment; nothing of the data.")] = None

    def check_note(self) -> None:
        """Raise for a note that nothing would keep."""
        if self.note is not None and self.ledger is None:
            raise ValueError("--note is kept in a ledger: add --ledger, or leave it out")

    def folder(self, out: Path, page: str = SCORECARD) -> AbstractContextManager[Folder]:
        """The folder of the release."""
        return output_folder(out, curator=self.curator, overwrite=self.overwrite, resume=self.resume, page=page)


@dataclass(frozen=True)
class Counting:
    """By what records are grouped, and how much each of them counts."""

    by: Annotated[
        str | None,
        option(
            EXPERT, "Figures by group as well: a column of the schema, or COLUMN=VALUE,VALUE,... with public values."
        ),
    ] = None
    weight: Annotated[str | None, option(EXPERT, "Survey weights: how much each record counts.", metavar="COLUMN")] = (
        None
    )
    max_weight: Annotated[
        float | None, option(EXPERT, "With --weight: the largest weight, public; larger ones are cut.")
    ] = None

    @property
    def column(self) -> str | Categories | None:
        """The name of a column, or a column with the values that are listed."""
        name, equals, values = (self.by or "").partition("=")
        return Categories(name, [value.strip() for value in values.split(",")]) if equals else self.by

    def weights(self, data: str, header: str | None, decimal: str | None = None) -> Weight | None:
        """The weights; raises if only one of the options is given, or if no record has a weight above 0."""
        if self.weight is None and self.max_weight is None:
            return None
        if self.weight is None or self.max_weight is None:
            raise ValueError(
                "--weight and --max-weight go together, for example --weight w --max-weight 5: the column, and the largest "
                "weight, which is public"
            )
        weight = Weight(self.weight, self.max_weight, decimal or decimal_sign(data, header))
        with engine_at_work("reading", data):
            weight.check(open_table(data, header=header))
        return weight


@dataclass(frozen=True)
class Measuring(Counting):
    """How a model is evaluated on records that its fit holds out."""

    holdout: Annotated[
        float | None,
        option(
            PRIVACY,
            "Randomly hold out this share of the records and evaluate on them privately.",
            show_default="0.2 without --schema",
        ),
    ] = None
    evaluate_epsilon: Annotated[
        float | None,
        option(EXPERT, "Of the evaluation on held-out records.", show_default="that of the fit"),
    ] = None

    def check_target(self, target: Target | None) -> None:
        """Raise for a label that cannot be evaluated."""
        if target is not None and self.holdout:
            raise ValueError(
                "--holdout: only models with a yes/no label can be evaluated: leave it out for classes and numbers"
            )

    def check_epsilon(self, left: Fraction) -> None:
        """Raise for an evaluation with more than the fit has: on other records than it, up to that costs nothing more."""
        if self.evaluate_epsilon is not None and exact(self.evaluate_epsilon) > left:
            raise ValueError(
                f"--evaluate-epsilon {self.evaluate_epsilon:g}: the fit has {at_most(left):g}, and more than that would go "
                "beyond --epsilon: use at most that, or raise --epsilon"
            )

    def hold_out(self, schema: Schema, epsilon: float, weight: Weight | None) -> HoldOut | None:
        """What is held out of a fit with that epsilon, if anything is."""
        spent = epsilon if self.evaluate_epsilon is None else self.evaluate_epsilon
        self.check_epsilon(exact(epsilon))
        test = HoldOut.of(self.holdout, spent, self.column, schema, weight)
        if test is None and (self.by is not None or self.evaluate_epsilon is not None):
            raise ValueError(
                "--by and --evaluate-epsilon are for an evaluation: add --holdout, for example --holdout 0.2"
            )
        return test


class ModelName(StrEnum):
    """Which kind of model is chosen."""

    scorecard = "scorecard"
    short = "short"
    tree = "tree"


@dataclass(frozen=True)
class ModelOptions:
    """Which model is chosen, and how: together the options are a recipe."""

    model: Annotated[
        ModelName,
        option(MODEL, "A full scorecard, a short card or a decision tree.", show_default="scorecard; tree for classes"),
    ] = ModelName.scorecard
    max_questions: Annotated[int | None, option(MODEL, "Maximum number of columns that a card asks for.")] = None
    exclude: Annotated[
        list[str] | None, option(MODEL, "A card must not ask for it; may be repeated.", metavar="COLUMN")
    ] = None
    direction: Annotated[
        list[str] | None,
        option(MODEL, "Larger values never lower (up) or raise (down) the total.", metavar="COLUMN=up|down"),
    ] = None
    depth: Annotated[int, option(MODEL, "Of a tree: maximum number of questions for one record.")] = DEPTH
    delta: Annotated[
        float | None, option(PRIVACY, "Of a full scorecard; 0 for a short card or a tree.", show_default="1e-6")
    ] = None
    adjacency: Adjacency = "replace"
    require: Annotated[
        list[str] | None, option(EXPERT, "A card must ask for it; may be repeated.", metavar="COLUMN")
    ] = None
    max_points: Annotated[
        int | None, option(EXPERT, "Points lie in -N..N.", show_default="10, and 3 for a short card")
    ] = None
    sparsity: Annotated[float, option(EXPERT, "Of a full scorecard: above 0, small points become 0.")] = 0.0
    sample_rate: Annotated[float, option(EXPERT, "Of a full scorecard: share of the records that is read.")] = 1.0
    max_features: Annotated[
        int | None,
        option(
            EXPERT,
            "Of a short card: maximum number of features with points.",
            show_default="4, fewer on more than 148 columns",
        ),
    ] = None
    intercept: Annotated[int, option(EXPERT, "Of a short card: the intercept lies in -N..N.", min=0)] = 8
    leaves: Annotated[LeafKind, option(EXPERT, "What the leaves of a tree say.")] = LeafKind.LABELS
    false_positive: Annotated[int, option(EXPERT, "Cost of a false positive, a whole number.")] = 1
    false_negative: Annotated[int, option(EXPERT, "Cost of a false negative, a whole number.")] = 1

    def recipe(self, epsilon: float, schema: Schema | None = None, target: Target | None = None) -> Recipe:
        """Everything but the data; whatever does not fit together is refused.

        Args:
            epsilon: privacy budget of the model.
            schema: names the two labels of a tree; "no" and "yes" if left out.
            target: classes or numbers, where there is no schema yet.
        """
        model, costs = self.model, (self.false_positive, self.false_negative)
        if self.delta and model is not ModelName.scorecard:
            raise ValueError(f"--delta is for --model scorecard: leave it out with --model {model}")
        target = target if schema is None else schema.target
        if model is ModelName.tree:
            if target is not None and not target.classes:
                raise ValueError("--model tree: is for a label with classes; for a number use --model scorecard")
            yes, no = ("yes", "no") if schema is None else answers(schema.label)
            table = None if ZeroOneLoss(*costs) == ZeroOneLoss() else ((0, costs[0]), (costs[1], 0))
            leaves = leaves_of((no, yes) if target is None else target.classes, self.leaves, table)
            return TreeRecipe(epsilon, self.depth, leaves, self.adjacency)
        if target is not None and target.classes:
            raise ValueError(f"--model {model}: is not for several classes: use --model tree")
        if model is ModelName.short:
            if target is not None:
                raise ValueError("--model short: says yes or no; for a number use --model scorecard")
            return ShortCardRecipe(epsilon, self.limits, self.adjacency, None, *costs)
        common: dict[str, Any] = {
            "delta": DEFAULT_DELTA if self.delta is None else self.delta,
            "adjacency": self.adjacency,
            "max_points": 10 if self.max_points is None else self.max_points,
            "max_questions": self.max_questions,
            "sparsity": self.sparsity,
            "constraints": self.constraints,
        }
        if target is None:
            common |= {"false_positive": self.false_positive, "false_negative": self.false_negative}
            return FullCardRecipe(epsilon, **common, sample_rate=self.sample_rate)
        assert target.low is not None
        assert target.high is not None
        return NumberCardRecipe(epsilon, **common, low=float(target.low), high=float(target.high))

    @property
    def limits(self) -> CardLimits:
        """The short cards to choose from."""
        points = 3 if self.max_points is None else self.max_points
        ends = (-self.intercept, self.intercept)
        return CardLimits(self.max_features, points, ends, self.max_questions, self.constraints)

    @property
    def constraints(self) -> Constraints:
        """Directions, and columns that a card must or must not ask for."""
        ways: dict[str, str] = {}
        for stated in self.direction or ():
            name, equals, way = stated.rpartition("=")
            if not equals or ways.get(name, way) != way:
                raise ValueError(f"--direction {stated}: write COLUMN=up or COLUMN=down, once for a column")
            ways[name] = way
        return Constraints(ways, self.require or (), self.exclude or ())

    def on_drafted(self, schema: Schema) -> ModelOptions:
        """The options on a drafted schema, which may lack columns that they name."""
        stated = self.constraints.on_drafted(schema.columns)
        ways = [f"{name}={way}" for name, way in stated.directions]
        return replace(self, exclude=list(stated.excluded), direction=ways)

    def checked_bands(self, bands: str | None) -> Bands | None:
        """The bands of `--bands`: cut risks, because nobody knows the totals of a card before it is fitted."""
        found = None if bands is None else Bands.of(bands)
        if found is not None and not (found.by_risk and self.model is ModelName.scorecard):
            raise ValueError(
                f"--bands {bands}: a fit takes cut risks, such as 5%,20%, of a card with risks (--model scorecard); cut totals "
                "afterwards with `privsolve show release.json --bands`"
            )
        return found

    def check_most_features(self, schema: Schema) -> None:
        """Raise for a limit above the number of features, before anything is read: probably a mistake."""
        features = schema.dim - schema.intercept
        if self.max_features is not None and self.max_features > features:
            raise ValueError(
                f"--max-features {self.max_features}: the schema has {features} features; use at most {features}, few enough "
                "for people to add up (4 is usual), or --max-questions"
            )


_OF_CARDS = frozenset({"max_questions", "exclude", "direction", "require", "max_points"})
_OF_FULL = frozenset({"sparsity", "sample_rate", "weight", "max_weight"})
_OF_SHORT = frozenset({"max_features", "intercept"})
_OF_TREES = frozenset({"depth", "leaves"})
NOT_FOR = {
    ModelName.scorecard: _OF_SHORT | _OF_TREES,
    ModelName.short: _OF_FULL | _OF_TREES,
    ModelName.tree: _OF_CARDS | _OF_FULL | _OF_SHORT,
}
"""Options that have no meaning for a model."""

_OF_YES_NO = frozenset({"bands", "by", "evaluate_epsilon", "false_negative", "false_positive"}) | (
    _OF_FULL - {"sparsity"}
)


def checked_model(context: typer.Context, choice: ModelOptions, target: Target | None = None) -> ModelOptions:
    """The options, with a tree where no model is stated and no other tells classes apart.

    Raises for an option that was given on the command line and would be ignored.
    """
    if target is not None and target.classes and not _given(context, "model"):
        choice = replace(choice, model=ModelName.tree)
    model = choice.model
    for name in sorted(NOT_FOR[model]):
        if _given(context, name):
            takers = " or ".join(other for other in ModelName if name not in NOT_FOR[other])
            raise ValueError(f"{_flag(name)} is for --model {takers}: leave it out with --model {model.value}")
    for name in sorted(_OF_YES_NO) if target is not None else ():
        if _given(context, name):
            raise ValueError(f"{_flag(name)} is for a yes/no label: leave it out for classes and numbers")
    return choice


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name) if name in context.params else None
    return source is not None and source.name == "COMMANDLINE"


def with_options(**groups: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorates a command whose parameters of these names are groups of options.

    Args:
        groups: by the name of a parameter, a dataclass whose annotated fields are the options.

    Returns:
        A decorator. The command it makes has the fields as options, and passes one object for each group.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters: dict[str, inspect.Parameter] = {}
        for name, own in inspect.signature(command, eval_str=True).parameters.items():
            parameters |= _fields(groups[name]) if name in groups else {name: own}

        @wraps(command)
        def run(**given: Any) -> None:
            for name, group in groups.items():
                given[name] = group(**{field: given.pop(field) for field in _fields(group)})
            command(**given)

        in_order = sorted(parameters.values(), key=_panel)  # panels are shown in the order of their first options
        by_keyword = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in in_order]
        run.__signature__ = inspect.Signature(by_keyword)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in by_keyword}
        return run

    return decorate


def _panel(parameter: inspect.Parameter) -> int:
    """The place of the panel that an option is shown in; those without one come first."""
    for note in getattr(parameter.annotation, "__metadata__", ()):
        panel = getattr(note, "rich_help_panel", None)
        if panel in PANELS:
            return PANELS.index(panel)
    return -1


def _fields(group: type) -> dict[str, inspect.Parameter]:
    """The fields of a dataclass as parameters, with what their annotations say about the options."""
    hints = get_type_hints(group, include_extras=True)
    found = inspect.signature(group).parameters
    return {name: one.replace(annotation=hints[name]) for name, one in found.items()}
