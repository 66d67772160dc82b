"""`privsolve plan`: what error to expect, before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from rich.table import Table

from privsolve.cli.common import as_json, console, one_line_errors
from privsolve.cli.options import Json, ModelName, ModelOptions, checked_model, with_options
from privsolve.data import Schema
from privsolve.domains import ConstrainedPoints, SparsePoints
from privsolve.domains.trees import DecisionTrees, TreeQuestions
from privsolve.engines.supports.work import estimate
from privsolve.learn.full_card_recipe import FullCardRecipe
from privsolve.learn.planning import (
    MOST_RECORDS,
    Expectation,
    Rehearsal,
    card_expectation,
    rehearse,
    smallest_epsilon,
    tree_expectations,
)
from privsolve.learn.recipe import Recipe
from privsolve.learn.short_card_recipe import ShortCardRecipe, chosen_from
from privsolve.learn.tree_recipe import TreeRecipe
from privsolve.losses import ZeroOneLoss
from privsolve.mechanisms.objective import Plan as ObjectivePlan
from privsolve.mechanisms.trees import public_work
from privsolve.models.leaves import UNIT, ProbabilityLeaves
from privsolve.privacy.adjacency import Adjacency

PROVED = "A bound for the worst table: typical results are much better. Nothing was spent."


@with_options(choice=ModelOptions)
def plan(
    context: typer.Context,
    choice: ModelOptions,
    records: Annotated[int, typer.Option(min=1, help="How many records the table will have.")],
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget of the release.")] = None,
    lose: Annotated[
        float | None,
        typer.Option(help="Instead: find the epsilon that promises to lose at most this share of the records."),
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="Schema file, for the number of features.")] = None,
    features: Annotated[int | None, typer.Option(min=1, help="Number of 0/1 features, instead of a schema.")] = None,
    rehearsal: Annotated[
        bool,
        typer.Option(
            "--rehearse", help="Also fit made-up records of the schema: what typically happens, and the time."
        ),
    ] = False,
    positive_share: Annotated[
        float, typer.Option(help="With --rehearse: the share of positive labels that is made up.")
    ] = 0.5,
    json_output: Json = False,
) -> None:
    """What a release may cost at most, with probability 0.95, or the epsilon for what it may cost. Looks at no data and
    spends nothing.
    """
    with one_line_errors():
        if (schema is None) == (features is None):
            raise ValueError("give either --schema or --features")
        found = None if schema is None else Schema.load(schema)
        choice = checked_model(context, choice, None if found is None else found.target)
        _check_schema(found, choice, rehearsal)
        recipe = choice.recipe(1.0, found)  # refuses what does not fit together
        planned = _planned(recipe, found, features or 0, records)
        if (epsilon is None) == (lose is None):
            raise ValueError("give either --epsilon, or --lose, what may be lost at most, for example --lose 0.02")
        if lose is not None:
            epsilon = smallest_epsilon(planned.share, lose)
        assert epsilon is not None
        content, rehearsed = planned.content(epsilon), None
        if rehearsal and found is not None:
            rehearsed = rehearse(choice.recipe(epsilon, found), found, records, positive_share)
        if json_output:
            typer.echo(as_json(content if rehearsed is None else content | {"rehearsal": asdict(rehearsed)}))
            return
        if lose is not None:
            console.print(
                f"Epsilon {epsilon:g} is the smallest that promises to lose at most {lose:.1%} of the records."
            )
        planned.show(epsilon)
        if choice.model is ModelName.scorecard and rehearsed is None:
            console.print("How good it gets depends on the records: --rehearse fits made-up records of the schema.")
        console.print("Nothing was spent." if choice.model is ModelName.scorecard else PROVED)
        if choice.model is not ModelName.scorecard and choice.adjacency == "replace":  # theory, section 17.5
            console.print(
                f"Epsilon {epsilon:g} is for one record changed; counted for one record added or left out, as in many "
                f"libraries, the same draw has {epsilon / 2:g}."
            )
        if rehearsed is not None:
            _show_rehearsal(rehearsed, records, positive_share)


def _check_schema(schema: Schema | None, choice: ModelOptions, rehearsal: bool) -> None:
    """Raise for what cannot be planned on this schema, or without one."""
    if schema is None and choice.limits.restrict:
        raise ValueError("constraints on a card are about the columns of a schema: give --schema")
    if rehearsal and schema is None:
        raise ValueError("--rehearse makes up records of a schema: give --schema")
    if schema is None or schema.target is None:
        return
    if rehearsal:
        raise ValueError("--rehearse makes up yes/no labels: leave it out for classes and numbers")
    if choice.model is ModelName.scorecard:
        raise ValueError("no error can be stated for a number beforehand: choose epsilon as for a yes/no label")


def _planned(recipe: Recipe, schema: Schema | None, features: int, records: int) -> _FullPlan | _CardPlan | _TreePlan:
    """The plan for what is wanted, on a schema or on so many 0/1 features."""
    if isinstance(recipe, FullCardRecipe):
        return _FullPlan(records, recipe, schema, features)
    if isinstance(recipe, ShortCardRecipe):
        limits = recipe.limits
        domain = limits.plain_domain(features + 1, True) if schema is None else limits.domain(schema)
        return _CardPlan(records, str(recipe.adjacency), domain, recipe.loss)
    assert isinstance(recipe, TreeRecipe)
    questions = TreeQuestions.plain(features) if schema is None else TreeQuestions.of(recipe.encoding(schema))
    return _TreePlan(records, str(recipe.adjacency), recipe.trees(questions))


@dataclass(frozen=True)
class _FullPlan:
    """Full scorecards: the public numbers. There is no bound on mistakes; a rehearsal shows what is typical."""

    records: int
    recipe: FullCardRecipe
    schema: Schema | None
    features: int

    def share(self, epsilon: float) -> float:
        raise ValueError("--lose is for short cards and trees: use --epsilon and --rehearse, or --model short")

    def content(self, epsilon: float) -> dict[str, Any]:
        recipe, features = replace(self.recipe, epsilon=epsilon), self.features
        if self.schema is None:
            found = ObjectivePlan(epsilon, recipe.delta, Adjacency.of(recipe.adjacency), features, features)
        else:
            found = recipe.plan(recipe.encoding(self.schema))
        return found.to_dict() | {"records": self.records}

    def show(self, epsilon: float) -> None:
        found = self.content(epsilon)
        console.print(
            f"Full scorecard with points for all answers ({found['features']} features), {self.records:,} records, epsilon "
            f"{epsilon:g}, delta {found['delta']:g}"
        )


@dataclass(frozen=True)
class _CardPlan:
    """Short cards, with and without constraints: what they may cost beyond the best small card."""

    records: int
    adjacency: str
    domain: SparsePoints
    loss: ZeroOneLoss

    def share(self, epsilon: float) -> float:
        return self._bound(self.domain, epsilon)[1]

    def content(self, epsilon: float) -> dict[str, Any]:
        found = self._cards(self.domain, epsilon)
        found |= {"records": self.records, "epsilon": epsilon, "seconds": self._seconds}
        if isinstance(self.domain, ConstrainedPoints):
            found["without_constraints"] = self._cards(self.domain.plain, epsilon)
        return found

    def show(self, epsilon: float) -> None:
        domain, (bound, share) = self.domain, self._bound(self.domain, epsilon)
        what = "mistakes" if self.loss.largest == 1 else "cost"
        words = f"{share:.1%} of the records" if share < 1 else "which says nothing"
        said = [
            f"{domain.size:,} scorecards on {domain.columns} features, {self.records:,} records, epsilon {epsilon:g}",
            f"Promise: with probability 0.95 at most {bound.excess:,.0f} more {what} than the best card with "
            f"{bound.compared_with}, {words}.",
        ]
        if isinstance(domain, ConstrainedPoints):
            without = self._bound(domain.plain, epsilon)[0].excess
            left = f"{domain.size:,} of {domain.plain.size:,} cards"
            said.append(f"The constraints leave {left}; without them it would be {without:,.0f}.")
        if math.isinf(self._seconds):
            said.append("There are too many cards for the memory of a usual machine: use fewer --max-features.")
        else:
            said.append(f"Time: {_seconds(self._seconds)} once compiled, from public numbers.")
        for line in said:
            console.print(line)

    def _bound(self, domain: SparsePoints, epsilon: float) -> tuple[Expectation, float]:
        """The bound, and its share of the records."""
        bound = card_expectation(domain, epsilon, self.adjacency, self.loss)
        return bound, bound.excess / self.records / self.loss.largest

    def _cards(self, domain: SparsePoints, epsilon: float) -> dict[str, Any]:
        return {"scorecards": domain.size, "bounds": _as_plain([self._bound(domain, epsilon)])}

    @property
    def _seconds(self) -> float:
        usable, supports = chosen_from(self.domain)
        return estimate(usable, self.domain.max_features, self.records, supports=supports)


@dataclass(frozen=True)
class _TreePlan:
    """Trees: what they may cost beyond the best tree of each depth, and the work."""

    records: int
    adjacency: str
    trees: DecisionTrees

    def share(self, epsilon: float) -> float:
        return self._bounds(epsilon)[0][1]  # of the smallest trees

    def content(self, epsilon: float) -> dict[str, Any]:
        sums = public_work(self.trees, self.records)
        found = {"depth": self.trees.depth, "features": self.trees.questions.size, "records": self.records}
        work = asdict(sums) | {"seconds": sums.seconds}
        return found | {"epsilon": epsilon, "bounds": _as_plain(self._bounds(epsilon)), "work": work}

    def show(self, epsilon: float) -> None:
        console.print(
            f"trees of depth {self.trees.depth} on {self.trees.questions.size} features, {self.records:,} records, "
            f"epsilon {epsilon:g}"
        )
        what, unit = "mistakes" if self.trees.leaves.range == 1 else "cost", 1.0
        if isinstance(self.trees.leaves, ProbabilityLeaves):
            what, unit = "Brier loss", UNIT
        title = f"More {what} than the best, at most, with probability 0.95"
        table = Table("drawn", title=title, min_width=min(len(title), console.width))
        table.add_column(what, justify="right")
        table.add_column("of records", justify="right")
        table.add_column("best of all")
        for bound, share in self._bounds(epsilon):
            words = f"{share:.1%}" if share < 1 else "says nothing"
            table.add_row(bound.mechanism, f"{bound.excess / unit:,.0f}", words, bound.compared_with)
        console.print(table)
        sums = public_work(self.trees, self.records)
        console.print(
            f"The sums over trees take about {_seconds(sums.processor_seconds)} of computing, shared by all cores, beside "
            f"the counting, and at most {max(1, round(sums.memory / 2**20)):,} MiB: public numbers."
        )

    def _bounds(self, epsilon: float) -> list[tuple[Expectation, float]]:
        """Each bound, and its share of the records."""
        bounds = tree_expectations(self.trees, epsilon, self.adjacency)
        return [(bound, bound.excess / self.records / self.trees.leaves.range) for bound in bounds]


def _as_plain(bounds: Sequence[tuple[Expectation, float]]) -> list[dict[str, Any]]:
    return [asdict(bound) | {"share": min(1.0, share)} for bound, share in bounds]


def _seconds(seconds: float) -> str:
    return "a second or less" if seconds <= 1 else f"{seconds:,.0f} s"


def _show_rehearsal(found: Rehearsal, records: int, positive_share: float) -> None:
    fewer = f" ({MOST_RECORDS:,} of the {records:,})" if found.records < records else ""
    console.print(
        f"Rehearsal on made-up records{fewer}: a rule of three features made up the labels, right in {found.planted:.1%}; "
        f"{len(found.accuracies)} private fits were right in {min(found.accuracies):.1%} to {max(found.accuracies):.1%}, "
        f"the middle one in {median(found.accuracies):.1%}; the same answer for everybody is right in "
        f"{max(positive_share, 1 - positive_share):.1%}. Once compiled a fit took {median(found.seconds[1:]):.1f} s."
    )
