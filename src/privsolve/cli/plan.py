"""`privsolve plan`: what error to expect, before anything is spent."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from privsolve.cli.common import as_json, console, one_line_errors
from privsolve.cli.options import (
    DEPTH,
    Adjacency,
    CardWeight,
    Depth,
    Directions,
    Exclude,
    FalseNegative,
    FalsePositive,
    Intercept,
    Json,
    LogOdds,
    MaxCuts,
    MaxFeatures,
    MaxPoints,
    MaxQuestions,
    Model,
    ModelName,
    ObjectiveOption,
    OneOf,
    Require,
    TreeLeaves,
    card_limits,
    class_weights,
    refuse_strange_options,
)
from privsolve.cli.plans import CardPlan, FullPlan, Plan, TreePlan
from privsolve.cli.recipes import Wanted
from privsolve.data import EncodedTable, Schema
from privsolve.data.constraints import Constraints
from privsolve.domains.trees import DecisionTrees, TreeQuestions, tree_schema
from privsolve.learn.fitting import Objective, scorecard_domain
from privsolve.learn.limits import CardLimits
from privsolve.learn.planning import smallest_epsilon
from privsolve.learn.rehearsal import MOST_RECORDS, Rehearsal, rehearse
from privsolve.losses import ZeroOneLoss
from privsolve.models.leaves import LabelLeaves, LeafKind, ProbabilityLeaves
from privsolve.problems.unions import label_costs
from privsolve.releases import Run

PROVED = "Proved for every table, so usually far above what happens. Nothing was spent."


def plan(
    context: typer.Context,
    records: Annotated[int, typer.Option(min=1, help="How many records the table will have.")],
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget of the release.")] = None,
    lose: Annotated[
        float | None,
        typer.Option(help="Instead: find the epsilon that promises to lose at most this share of the records."),
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="Schema file, for the number of features.")] = None,
    features: Annotated[int | None, typer.Option(min=1, help="Number of 0/1 features, instead of a schema.")] = None,
    objective: ObjectiveOption = Objective.MISTAKES,
    log_odds: LogOdds = 0.5,
    max_features: MaxFeatures = None,
    max_questions: MaxQuestions = None,
    max_cuts: MaxCuts = None,
    require: Require = None,
    exclude: Exclude = None,
    one_of: OneOf = None,
    direction: Directions = None,
    max_points: MaxPoints = None,
    intercept: Intercept = 8,
    false_positive: FalsePositive = 1,
    false_negative: FalseNegative = 1,
    adjacency: Adjacency = "replace",
    model: Model = ModelName.scorecard,
    depth: Depth = DEPTH,
    leaves: TreeLeaves = LeafKind.LABELS,
    card_weight: CardWeight = 0.5,
    rehearsal: Annotated[
        bool,
        typer.Option(
            "--rehearse", help="Also fit made-up records of the schema: what typically happens, and the time."
        ),
    ] = False,
    expert: Annotated[
        bool, typer.Option("--expert", help="Compare all mechanisms, not only the one that fit uses.")
    ] = False,
    json_output: Json = False,
) -> None:
    """What a release may cost at most, with probability 0.95, or the epsilon for what it may cost. Looks at no data and
    spends nothing.
    """
    with one_line_errors():
        refuse_strange_options(context, model)
        if (schema is None) == (features is None):
            raise ValueError("give either --schema or --features")
        found = None if schema is None else Schema.load(schema)
        stated = card_limits(max_questions, max_cuts, require, exclude, one_of, direction)
        wanted = Wanted(
            model, adjacency, (false_positive, false_negative), objective, log_odds, stated,
            max_features, max_points, intercept, depth, leaves, card_weight,
        )  # fmt: skip
        if found is None and stated != CardLimits(constraints=Constraints()):
            raise ValueError("constraints on a card are about the columns of a schema: give --schema")
        if rehearsal and found is None:
            raise ValueError("--rehearse makes up records of a schema: give --schema")
        planned = _planned(wanted, found, features or 0, records, expert)
        if (epsilon is None) == (lose is None):
            raise ValueError("give either --epsilon, or --lose, what may be lost at most, for example --lose 0.02")
        if lose is not None:
            epsilon = smallest_epsilon(planned.share, lose)
        assert epsilon is not None
        content, rehearsed = planned.content(epsilon), None
        if rehearsal and found is not None:
            rehearsed = _rehearse(wanted, found, records, epsilon)
        if json_output:
            typer.echo(as_json(content | ({} if rehearsed is None else {"rehearsal": asdict(rehearsed)})))
            return
        if lose is not None:
            console.print(
                f"Epsilon {epsilon:g} is the smallest that promises to lose at most {lose:.1%} of the records."
            )
        planned.show(epsilon)
        if model is ModelName.scorecard:
            console.print("Nothing was spent.")
        else:
            console.print(PROVED)
        if (
            adjacency == "replace" and model is not ModelName.scorecard
        ):  # one draw, of bounded range (theory, section 17.5)
            console.print(
                f"Epsilon {epsilon:g} is for one record changed; counted for one record added or left out, as in many "
                f"libraries, the same draw has {epsilon / 2:g}."
            )
        if rehearsed is not None:
            _show_rehearsal(rehearsed, records)


def _planned(wanted: Wanted, schema: Schema | None, features: int, records: int, expert: bool) -> Plan:
    """The plan for what is wanted, on a schema or on so many 0/1 features."""
    model, limits, loss = wanted.model, wanted.limits, ZeroOneLoss(*wanted.costs)
    if model is ModelName.scorecard:
        return FullPlan(records, wanted.adjacency, wanted, schema, features)
    asked = schema if schema is None or model is ModelName.short else tree_schema(schema, intercept=True)
    dim, has_intercept = (features + 1, True) if asked is None else (asked.dim, asked.intercept)
    ends = (-wanted.intercept, wanted.intercept) if has_intercept else None
    most: dict[str, Any] = {"max_features": wanted.max_features, "max_points": wanted.short_points, "intercept": ends}
    restricted = asked if model is ModelName.short and asked is not None and limits.states(asked) else None
    domain = scorecard_domain(dim, **most) if restricted is None else limits.domain(restricted, **most)
    if model is ModelName.short:
        return CardPlan(records, wanted.adjacency, domain, wanted.card_recipe(1.0).loss, expert)
    questions = TreeQuestions.plain(features) if schema is None else TreeQuestions.of(tree_schema(schema))
    trees = DecisionTrees(questions, wanted.depth, _leaves(wanted.leaves, loss))
    probabilities = wanted.leaves is LeafKind.PROBABILITIES
    if model is ModelName.tree:
        return TreePlan(records, wanted.adjacency, trees, probabilities)
    weight = class_weights(wanted.card_weight)["card"]
    return TreePlan(records, wanted.adjacency, trees, probabilities, domain, weight, loss)


def _rehearse(wanted: Wanted, schema: Schema, records: int, epsilon: float) -> Rehearsal:
    chosen = wanted.recipe(epsilon, schema)

    def fit(encoded: EncodedTable, seed: int) -> Run:
        return chosen.run(encoded, random_state=seed)

    return rehearse(fit, chosen.asked, records)


def _show_rehearsal(found: Rehearsal, records: int) -> None:
    fewer = f" ({MOST_RECORDS:,} of the {records:,})" if found.records < records else ""
    console.print(
        f"Rehearsal on made-up records{fewer}: a rule of three features made up the labels, right in {found.planted:.1%}; "
        f"{len(found.accuracies)} private fits were right in {min(found.accuracies):.1%} to {max(found.accuracies):.1%}, "
        f"the middle one in {found.middle:.1%}. Once compiled a fit took {found.typical_seconds:.1f} s."
    )


def _leaves(leaves: LeafKind, loss: ZeroOneLoss) -> LabelLeaves | ProbabilityLeaves:
    if leaves is LeafKind.LABELS:
        return LabelLeaves(["no", "yes"], label_costs(loss))
    if loss != ZeroOneLoss():
        raise ValueError("costs of mistakes are for leaves of labels: leave them out with probabilities")
    return ProbabilityLeaves(["no", "yes"])
