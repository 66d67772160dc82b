"""`privsolve plan`: what error to expect, before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from privsolve.cli.common import console, one_line_errors
from privsolve.cli.options import (
    DEPTH,
    Adjacency,
    CardWeight,
    Depth,
    Epsilon,
    FalseNegative,
    FalsePositive,
    Intercept,
    Json,
    LeavesName,
    LogOdds,
    MaxFeatures,
    MaxPoints,
    Model,
    ModelName,
    ObjectiveOption,
    StagesOption,
    TreeLeaves,
    class_weights,
    refuse_strange_options,
)
from privsolve.data import Schema
from privsolve.domains import SparsePoints
from privsolve.domains.trees import DecisionTrees, TreeQuestions, tree_schema
from privsolve.engines.trees.sampler import Work
from privsolve.learn.fitting import scorecard_domain
from privsolve.learn.planning import expectations, tree_expectations, union_expectations
from privsolve.learn.publishing import as_json
from privsolve.learn.risks import Objective
from privsolve.losses import BrierLoss, ZeroOneLoss
from privsolve.mechanisms.base import Expectation
from privsolve.mechanisms.counted import SHARE, count_and_stages
from privsolve.mechanisms.stages import Stages, number_of_stages, stages_utility_bound
from privsolve.mechanisms.trees import public_work
from privsolve.models.leaves import UNIT, LabelLeaves, ProbabilityLeaves
from privsolve.problems.unions import label_costs

PROVED = "Proved for every table, so usually far above what happens. Nothing was spent."


def plan(
    context: typer.Context,
    epsilon: Epsilon,
    records: Annotated[int, typer.Option(min=1, help="How many records the table will have.")],
    schema: Annotated[Path | None, typer.Option(help="Schema file, for the number of features.")] = None,
    features: Annotated[int | None, typer.Option(min=1, help="Number of 0/1 features, instead of a schema.")] = None,
    objective: ObjectiveOption = Objective.MISTAKES,
    stages: StagesOption = None,
    log_odds: LogOdds = 0.5,
    max_features: MaxFeatures = None,
    max_points: MaxPoints = 3,
    intercept: Intercept = 8,
    false_positive: FalsePositive = 1,
    false_negative: FalseNegative = 1,
    adjacency: Adjacency = "replace",
    model: Model = ModelName.card,
    depth: Depth = DEPTH,
    leaves: TreeLeaves = LeavesName.labels,
    card_weight: CardWeight = 0.5,
    json_output: Json = False,
) -> None:
    """What a release may cost at most, with probability 0.95. Looks at no data and spends nothing."""
    with one_line_errors():
        refuse_strange_options(context, model)
        if (schema is None) == (features is None):
            raise ValueError("give either --schema or --features")
        found = None if schema is None else Schema.load(schema)
        loss = ZeroOneLoss(false_positive, false_negative)
        in_stages = objective is Objective.RISK or stages not in (None, 1)
        as_given = found is None or (model is ModelName.card and not in_stages)
        asked = found if found is None or as_given else tree_schema(found, intercept=True)
        dim, has_intercept = ((features or 0) + 1, True) if asked is None else (asked.dim, asked.intercept)
        limits = (-intercept, intercept) if has_intercept else None
        if in_stages:
            count = number_of_stages(epsilon, records, adjacency) if stages is None else stages
            shape = Stages.of(dim, count, max_features=max_features, max_points=max_points, intercept=limits)
            by = BrierLoss(log_odds) if objective is Objective.RISK else loss
            counted = stages is None and adjacency == "add-remove"
            _plan_stages(shape, epsilon, records, adjacency, by, json_output, counted)
            return
        if model is ModelName.card:
            domain = scorecard_domain(dim, max_features, max_points, limits)
            _plan_cards(domain, epsilon, records, adjacency, loss, json_output)
            return
        questions = TreeQuestions.plain(features or 0) if found is None else TreeQuestions.of(tree_schema(found))
        trees = DecisionTrees(questions, depth, _leaves(leaves, loss))
        sums = public_work(trees, records)
        words = f"trees of depth {depth} on {questions.size} features, {records:,} records, epsilon {epsilon:g}"
        if model is ModelName.tree:
            bounds = tree_expectations(trees, epsilon, adjacency=adjacency)
        else:
            domain = scorecard_domain(dim, max_features, max_points, limits)
            weight = class_weights(card_weight)["card"]
            bounds = union_expectations(domain, trees, epsilon, card_weight=weight, adjacency=adjacency, loss=loss)
            words = f"{domain.size:,} scorecards and {words}"
        unit = UNIT if leaves is LeavesName.probabilities else 1
        _show_trees(words, bounds, trees, records, epsilon, unit, sums, json_output)


def _leaves(leaves: LeavesName, loss: ZeroOneLoss) -> LabelLeaves | ProbabilityLeaves:
    if leaves is LeavesName.labels:
        return LabelLeaves(["no", "yes"], label_costs(loss))
    if loss != ZeroOneLoss():
        raise ValueError("costs of mistakes are for leaves of labels: leave them out with probabilities")
    return ProbabilityLeaves(["no", "yes"])


def _plan_cards(
    domain: SparsePoints, epsilon: float, records: int, adjacency: str, loss: ZeroOneLoss, json_output: bool
) -> None:
    bounds = expectations(domain, epsilon, adjacency=adjacency, loss=loss)
    shares = [bound.excess / records / loss.largest for bound in bounds]
    if json_output:
        rows = _rows(bounds, shares)
        typer.echo(as_json({"scorecards": domain.size, "records": records, "epsilon": epsilon, "bounds": rows}))
        return
    console.print(f"{domain.size:,} scorecards on {domain.columns} features, {records:,} records, epsilon {epsilon:g}")
    what = "mistakes" if loss.largest == 1 else "cost"
    title = f"More {what} than the best card, at most, with probability 0.95"
    console.print(_table(title, ("mechanism", what, "of records", "best of all cards with"), bounds, shares))
    console.print(PROVED)


def _plan_stages(
    plan: Stages,
    epsilon: float,
    records: int,
    adjacency: str,
    loss: BrierLoss | ZeroOneLoss,
    json_output: bool,
    counted: bool,
) -> None:
    left = count_and_stages(epsilon)[1] if counted else epsilon
    excess = stages_utility_bound(plan, left, loss=loss, adjacency=adjacency) / loss.largest
    most = plan.domains[0].max_features
    if json_output:
        content = {"stages": plan.count, "features_per_stage": most, "records": records, "epsilon": epsilon}
        typer.echo(as_json(content | {"excess": excess, "share": min(1.0, excess / records)}))
        return
    what = "Brier loss" if isinstance(loss, BrierLoss) else "mistakes" if loss.largest == 1 else "cost"
    console.print(
        f"{plan.count} stage{'s' * (plan.count > 1)} of at most {most} of {plan.domain.columns} features, {records:,} records, "
        f"epsilon {epsilon:g}"
    )
    if counted:
        console.print(f"The number of stages follows a noisy count of the records, with {float(SHARE):.0%} of epsilon.")
    share = f"{excess / records:.1%} of records" if excess < records else "which says nothing"
    console.print(
        f"More {what} than the best short card that each stage could add, at most, with probability 0.95: {excess:,.0f}, "
        f"{share}."
    )
    console.print(PROVED)


def _show_trees(
    words: str, bounds: Sequence[Expectation], trees: DecisionTrees, records: int, epsilon: float, unit: int, sums: Work,
    json_output: bool,
) -> None:  # fmt: skip
    shares = [bound.excess / records / trees.leaves.range for bound in bounds]
    if json_output:
        work = asdict(sums) | {"seconds": sums.seconds}
        content = {"depth": trees.depth, "features": trees.questions.size, "records": records, "epsilon": epsilon}
        typer.echo(as_json(content | {"bounds": _rows(bounds, shares), "work": work}))
        return
    console.print(words)
    what = "Brier loss" if unit > 1 else "mistakes" if trees.leaves.range == 1 else "cost"
    title = f"More {what} than the best, at most, with probability 0.95"
    console.print(_table(title, ("drawn", what, "of records", "best of all"), bounds, shares, unit))
    console.print(
        f"The sums over trees take about {_seconds(sums.processor_seconds)} of computing, shared by all cores, beside the "
        f"counting, and at most {max(1, round(sums.memory / 2**20)):,} MiB: public numbers."
    )
    console.print(PROVED)


def _seconds(seconds: float) -> str:
    return "a second or less" if seconds <= 1 else f"{seconds:,.0f} s"


def _rows(bounds: Sequence[Expectation], shares: Sequence[float]) -> list[dict[str, Any]]:
    return [asdict(bound) | {"share": min(1.0, share)} for bound, share in zip(bounds, shares, strict=True)]


def _table(
    title: str, heads: Sequence[str], bounds: Sequence[Expectation], shares: Sequence[float], unit: int = 1
) -> Table:
    table = Table(title=title, min_width=min(len(title), console.width))
    for place, head in enumerate(heads):
        table.add_column(head, justify="right" if place in (1, 2) else "left")
    for bound, share in zip(bounds, shares, strict=True):
        words = f"{share:.1%}" if share < 1 else "says nothing"
        table.add_row(bound.mechanism, f"{bound.excess / unit:,.0f}", words, bound.compared_with)
    return table
