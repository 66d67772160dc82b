"""Options and choices that several commands offer."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from privsolve.mechanisms.registry import all_mechanisms, mechanism_names

MECHANISMS = mechanism_names()
NOISES = tuple(dict.fromkeys(law for mechanism in all_mechanisms() for law in mechanism.noises()))

Mechanism = Annotated[
    str,
    typer.Option(
        metavar=f"[{'|'.join(MECHANISMS)}]", autocompletion=lambda: MECHANISMS, help="How the points are chosen."
    ),
]
Noise = Annotated[
    str | None,
    typer.Option(
        metavar=f"[{'|'.join(NOISES)}]",
        autocompletion=lambda: NOISES,
        help="Noise for opdisc and rspm; proved and pure if left out.",
    ),
]
Epsilon = Annotated[float, typer.Option(help="Privacy budget of the release.")]
MaxFeatures = Annotated[
    int | None,
    typer.Option(help="At most so many features have points.", show_default="4, fewer on more than 148 columns"),
]
MaxPoints = Annotated[int, typer.Option(help="Points lie in -N..N.")]
Intercept = Annotated[int, typer.Option(min=0, help="The intercept lies in -N..N.")]
FalsePositive = Annotated[int, typer.Option(help="Cost of a false positive, a whole number.")]
FalseNegative = Annotated[int, typer.Option(help="Cost of a false negative, a whole number.")]
Adjacency = Annotated[str, typer.Option(help="replace (n is public) or add-remove.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


DEPTH = 3


class ModelName(StrEnum):
    """What is chosen."""

    card = "card"
    tree = "tree"

    @property
    def page(self) -> str:
        """What its page is called in machine-readable output."""
        return "scorecard" if self is ModelName.card else "tree"


class LeavesName(StrEnum):
    """What the leaves of a tree say."""

    labels = "labels"
    probabilities = "probabilities"


class CardFormat(StrEnum):
    """How a scorecard is written."""

    text = "text"
    markdown = "markdown"
    latex = "latex"
    html = "html"
    json = "json"
    sql = "sql"
