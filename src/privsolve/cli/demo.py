"""`privsolve demo`: one release on the embedded Adult data."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

import privsolve as ps
from privsolve.cli.common import console, one_line_errors, show_run
from privsolve.display import sampling_progress, search_progress


class Mechanism(StrEnum):
    """What `demo` can run."""

    exponential = "exponential"
    opdisc = "opdisc"


def demo(
    epsilon: Annotated[float, typer.Option(help="Privacy budget of the release.")] = 1.0,
    mechanism: Annotated[Mechanism, typer.Option(help="How the weights are chosen.")] = Mechanism.exponential,
    seed: Annotated[int | None, typer.Option(help="Repeatable noise, for testing only.")] = None,
) -> None:
    """The paper's Adult problem, from the table to the release."""
    with one_line_errors():
        _demo(epsilon, mechanism, seed)


def _demo(epsilon: float, mechanism: Mechanism, seed: int | None) -> None:
    table = ps.datasets.adult_paper(seed=0)
    problem = ps.Problem(table, ps.IntegerBall(dim=table.dim, radius_sq=table.dim))
    console.print(
        f"[bold]Adult[/bold]: {table.n:,} records, {table.dim} features. "
        f"Choosing among {problem.domain.size:,} integer weight vectors by their mistakes.\n"
    )
    if mechanism is Mechanism.opdisc:
        with search_progress(console, f"OPDisc at epsilon {epsilon:g}") as progress:
            run = ps.opdisc(problem, epsilon=epsilon, random_state=seed, progress=progress)
    else:
        with sampling_progress(console, f"exponential mechanism at epsilon {epsilon:g}") as counter:
            run = ps.exponential(problem, epsilon=epsilon, prior=ps.SparsePrior(), random_state=seed, progress=counter)
    show_run(run)
