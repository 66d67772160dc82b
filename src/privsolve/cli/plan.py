"""`privsolve plan`: what error to expect, before anything is spent."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from privsolve.cli.common import as_json, console, one_line_errors
from privsolve.cli.model_options import ModelName, ModelOptions, checked_model
from privsolve.cli.option_groups import with_options
from privsolve.cli.options import Json
from privsolve.cli.plans import CardPlan, FullPlan, Plan, TreePlan
from privsolve.data import EncodedTable, Schema
from privsolve.domains.trees import TreeQuestions
from privsolve.learn.planning import smallest_epsilon
from privsolve.learn.rehearsal import MOST_RECORDS, Rehearsal, rehearse
from privsolve.releases import Run

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
    expert: Annotated[
        bool, typer.Option("--expert", help="Compare all mechanisms, not only the one that fit uses.")
    ] = False,
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
        if found is None and choice.restrict:
            raise ValueError("constraints on a card are about the columns of a schema: give --schema")
        if rehearsal and found is None:
            raise ValueError("--rehearse makes up records of a schema: give --schema")
        if rehearsal and found is not None and found.target is not None:
            raise ValueError("--rehearse makes up yes/no labels: leave it out for classes and numbers")
        if choice.model is ModelName.scorecard and found is not None and found.target is not None:
            raise ValueError(
                "--model scorecard: no error can be stated for a number beforehand: plan --model tree instead"
            )
        planned = _planned(choice, found, features or 0, records, expert)
        if (epsilon is None) == (lose is None):
            raise ValueError("give either --epsilon, or --lose, what may be lost at most, for example --lose 0.02")
        if lose is not None:
            epsilon = smallest_epsilon(planned.share, lose)
        assert epsilon is not None
        content, rehearsed = planned.content(epsilon), None
        if rehearsal and found is not None:
            rehearsed = _rehearse(choice, found, records, epsilon, positive_share)
        if json_output:
            typer.echo(as_json(content | ({} if rehearsed is None else {"rehearsal": asdict(rehearsed)})))
            return
        if lose is not None:
            console.print(
                f"Epsilon {epsilon:g} is the smallest that promises to lose at most {lose:.1%} of the records."
            )
        planned.show(epsilon)
        if choice.model is ModelName.scorecard:
            console.print("Nothing was spent.")
        else:
            console.print(PROVED)
            if choice.adjacency == "replace":  # one draw, of bounded range (theory, section 17.5)
                console.print(
                    f"Epsilon {epsilon:g} is for one record changed; counted for one record added or left out, as in many "
                    f"libraries, the same draw has {epsilon / 2:g}."
                )
        if rehearsed is not None:
            _show_rehearsal(rehearsed, records)


def _planned(choice: ModelOptions, schema: Schema | None, features: int, records: int, expert: bool) -> Plan:
    """The plan for what is wanted, on a schema or on so many 0/1 features."""
    choice.recipe(1.0, schema)  # refuses what does not fit together
    if choice.model is ModelName.scorecard:
        return FullPlan(records, choice.adjacency, choice, schema, features)
    if choice.model is ModelName.short:
        recipe = choice.short_recipe(1.0)
        domain = choice.limits.plain_domain(features + 1, True) if schema is None else choice.limits.domain(schema)
        return CardPlan(records, choice.adjacency, domain, recipe.loss, expert)
    tree = choice.tree_recipe(1.0, schema)
    questions = TreeQuestions.plain(features) if schema is None else TreeQuestions.of(tree.encoding(schema))
    return TreePlan(records, choice.adjacency, tree.trees(questions))


def _rehearse(choice: ModelOptions, schema: Schema, records: int, epsilon: float, share: float) -> Rehearsal:
    recipe = choice.recipe(epsilon, schema)

    def fit(encoded: EncodedTable, seed: int) -> Run:
        return recipe.run(encoded, random_state=seed)

    return rehearse(fit, recipe.encoding(schema), records, positive_share=share)


def _show_rehearsal(found: Rehearsal, records: int) -> None:
    fewer = f" ({MOST_RECORDS:,} of the {records:,})" if found.records < records else ""
    console.print(
        f"Rehearsal on made-up records{fewer}: a rule of three features made up the labels, right in {found.planted:.1%}; "
        f"{len(found.accuracies)} private fits were right in {min(found.accuracies):.1%} to {max(found.accuracies):.1%}, "
        f"the middle one in {found.middle:.1%}. Once compiled a fit took {found.typical_seconds:.1f} s."
    )
