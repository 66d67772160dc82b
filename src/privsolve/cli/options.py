"""Choices that several commands offer."""

from __future__ import annotations

from enum import StrEnum


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
