"""Schemas drafted from records with a guarantee: what is read off the data is paid for (theory, section 12)."""

from privsolve.data.private.draft import PrivateDraft, private_draft
from privsolve.data.private.grids import DecimalGrid, Grid, StepGrid

__all__ = ["DecimalGrid", "Grid", "PrivateDraft", "StepGrid", "private_draft"]
