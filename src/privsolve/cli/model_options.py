"""The options of `fit` and `plan` that say which model is chosen, and how: together they are a recipe."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated

import typer

from privsolve.cli.option_groups import EXPERT, MODEL, PRIVACY
from privsolve.cli.options import Adjacency
from privsolve.data import Schema
from privsolve.data.columns.label import Target
from privsolve.data.constraints import Constraints
from privsolve.learn.full_card_recipe import DEFAULT_DELTA, FullCardRecipe
from privsolve.learn.number_card_recipe import NumberCardRecipe
from privsolve.learn.recipe import Recipe
from privsolve.learn.short_card_recipe import CardLimits, ShortCardRecipe
from privsolve.learn.tree_recipe import DEPTH, TreeRecipe, target_leaves, two_class_leaves
from privsolve.models.bands import Bands
from privsolve.models.leaves import LeafKind
from privsolve.models.linear import answers


class ModelName(StrEnum):
    """Which kind of model is chosen."""

    scorecard = "scorecard"
    short = "short"
    tree = "tree"

    @property
    def page(self) -> str:
        """What its page is called in machine-readable output."""
        return "tree" if self is ModelName.tree else "scorecard"


@dataclass(frozen=True)
class ModelOptions:
    """Which model is chosen, and how."""

    model: Annotated[
        ModelName,
        typer.Option(
            help="A full scorecard, a short card or a decision tree.",
            show_default="scorecard; tree for classes",
            rich_help_panel=MODEL,
        ),
    ] = ModelName.scorecard
    max_questions: Annotated[
        int | None, typer.Option(help="Maximum number of columns that a card asks for.", rich_help_panel=MODEL)
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A card must not ask for it; may be repeated.", rich_help_panel=MODEL),
    ] = None
    direction: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=up|down",
            help="Larger values never lower (up) or raise (down) the total.",
            rich_help_panel=MODEL,
        ),
    ] = None
    depth: Annotated[
        int, typer.Option(help="Of a tree: maximum number of questions for one record.", rich_help_panel=MODEL)
    ] = DEPTH
    delta: Annotated[
        float | None,
        typer.Option(
            help="Of a full scorecard; 0 for a short card or a tree.", show_default="1e-6", rich_help_panel=PRIVACY
        ),
    ] = None
    adjacency: Adjacency = "replace"
    require: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A card must ask for it; may be repeated.", rich_help_panel=EXPERT),
    ] = None
    max_points: Annotated[
        int | None,
        typer.Option(help="Points lie in -N..N.", show_default="10, and 3 for a short card", rich_help_panel=EXPERT),
    ] = None
    sparsity: Annotated[
        float, typer.Option(help="Of a full scorecard: above 0, small points become 0.", rich_help_panel=EXPERT)
    ] = 0.0
    sample_rate: Annotated[
        float, typer.Option(help="Of a full scorecard: share of the records that is read.", rich_help_panel=EXPERT)
    ] = 1.0
    max_features: Annotated[
        int | None,
        typer.Option(
            help="Of a short card: maximum number of features with points.",
            show_default="4, fewer on more than 148 columns",
            rich_help_panel=EXPERT,
        ),
    ] = None
    intercept: Annotated[
        int, typer.Option(min=0, help="Of a short card: the intercept lies in -N..N.", rich_help_panel=EXPERT)
    ] = 8
    leaves: Annotated[LeafKind, typer.Option(help="What the leaves of a tree say.", rich_help_panel=EXPERT)] = (
        LeafKind.LABELS
    )
    false_positive: Annotated[
        int, typer.Option(help="Cost of a false positive, a whole number.", rich_help_panel=EXPERT)
    ] = 1
    false_negative: Annotated[
        int, typer.Option(help="Cost of a false negative, a whole number.", rich_help_panel=EXPERT)
    ] = 1

    def recipe(self, epsilon: float, schema: Schema | None = None, target: Target | None = None) -> Recipe:
        """Everything but the data; whatever does not fit together is refused.

        Args:
            epsilon: privacy budget of the model.
            schema: names the two labels of a tree; "no" and "yes" if left out.
            target: classes or numbers, where there is no schema yet.
        """
        if self.delta and self.model is not ModelName.scorecard:
            raise ValueError(f"--delta is for --model scorecard: leave it out with --model {self.model.value}")
        if self.model is ModelName.tree:
            return self.tree_recipe(epsilon, schema, target)
        if (several := target if schema is None else schema.target) is not None:
            return self.number_recipe(epsilon, several)
        return self.full_recipe(epsilon) if self.model is ModelName.scorecard else self.short_recipe(epsilon)

    def full_recipe(self, epsilon: float) -> FullCardRecipe:
        """How a full scorecard is found."""
        return FullCardRecipe(
            epsilon,
            DEFAULT_DELTA if self.delta is None else self.delta,
            self.adjacency,
            10 if self.max_points is None else self.max_points,
            self.max_questions,
            self.sparsity,
            self._constraints,
            self.false_positive,
            self.false_negative,
            self.sample_rate,
        )

    def number_recipe(self, epsilon: float, target: Target) -> NumberCardRecipe:
        """How a full scorecard for a number is found."""
        if target.low is None or target.high is None:
            raise ValueError(f"--model {self.model.value}: is not for several classes: use --model tree")
        if self.model is ModelName.short:
            raise ValueError("--model short: says yes or no; for a number use --model scorecard")
        plain = self.full_recipe(epsilon)
        common = (plain.max_points, plain.max_questions, plain.sparsity, plain.constraints)
        return NumberCardRecipe(epsilon, float(target.low), float(target.high), plain.delta, self.adjacency, *common)

    def short_recipe(self, epsilon: float) -> ShortCardRecipe:
        """How a short card is chosen."""
        costs = (self.false_positive, self.false_negative)
        return ShortCardRecipe(epsilon, self.limits, self.adjacency, None, *costs)

    def tree_recipe(self, epsilon: float, schema: Schema | None, target: Target | None = None) -> TreeRecipe:
        """How a tree is chosen."""
        if (several := target if schema is None else schema.target) is not None:
            return TreeRecipe(epsilon, self.depth, target_leaves(several, self.leaves), self.adjacency)
        yes, no = ("yes", "no") if schema is None else answers(schema.label)
        leaves = two_class_leaves((no, yes), self.leaves, self.false_positive, self.false_negative)
        return TreeRecipe(epsilon, self.depth, leaves, self.adjacency)

    @property
    def limits(self) -> CardLimits:
        """The short cards to choose from."""
        points = 3 if self.max_points is None else self.max_points
        ends = (-self.intercept, self.intercept)
        return CardLimits(self.max_features, points, ends, self.max_questions, self._constraints)

    @property
    def restrict(self) -> bool:
        """Whether anything is stated about questions or columns."""
        return self.limits.restrict

    @property
    def _constraints(self) -> Constraints:
        ways: dict[str, str] = {}
        for stated in self.direction or ():
            name, equals, way = stated.rpartition("=")
            if not equals or ways.get(name, way) != way:
                raise ValueError(f"--direction {stated}: write COLUMN=up or COLUMN=down, once for a column")
            ways[name] = way
        return Constraints(ways, self.require or (), self.exclude or ())

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
        """Raise for a limit that limits nothing, before anything is read: who states it expects something else."""
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

_OF_YES_NO = (
    "bands",
    "by",
    "evaluate_epsilon",
    "false_negative",
    "false_positive",
    "max_weight",
    "sample_rate",
    "weight",
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
            raise ValueError(
                f"--{name.replace('_', '-')} is for --model {takers}: leave it out with --model {model.value}"
            )
    for name in _OF_YES_NO if target is not None else ():
        if _given(context, name):
            raise ValueError(f"--{name.replace('_', '-')} is for a yes/no label: leave it out for classes and numbers")
    return choice


def _given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name) if name in context.params else None
    return source is not None and source.name == "COMMANDLINE"
