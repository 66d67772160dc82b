"""Options and choices that several commands offer."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

Epsilon = Annotated[float, typer.Option(help="Privacy budget of the release.")]
MaxFeatures = Annotated[int, typer.Option(help="At most so many features have points.")]
MaxPoints = Annotated[int, typer.Option(help="Points lie in -N..N.")]
Intercept = Annotated[int, typer.Option(min=0, help="The intercept lies in -N..N.")]
FalsePositive = Annotated[int, typer.Option(help="Cost of a false positive, a whole number.")]
FalseNegative = Annotated[int, typer.Option(help="Cost of a false negative, a whole number.")]
Adjacency = Annotated[str, typer.Option(help="replace (n is public) or add-remove.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


class MechanismName(StrEnum):
    """How weights are chosen."""

    exponential = "exponential"
    opdisc = "opdisc"
    rspm = "rspm"


class NoiseName(StrEnum):
    """Noise laws of OPDisc and RSPM."""

    gamma = "gamma"
    linf_gamma = "linf-gamma"
    laplace = "laplace"
    gaussian = "gaussian"
    gaussian_published = "gaussian-published"


class CardFormat(StrEnum):
    """How a scorecard is written."""

    text = "text"
    markdown = "markdown"
    latex = "latex"
    html = "html"
    json = "json"
