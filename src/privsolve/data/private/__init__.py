"""Schemas drafted from records with a guarantee: what is read off the data is paid for (theory, section 12)."""

from privsolve.data.private.draft import DRAFT_SHARE, PrivateDraft, default_delta, private_draft
from privsolve.data.private.grids import DecimalGrid, Grid, StepGrid

__all__ = ["DRAFT_SHARE", "DecimalGrid", "Grid", "PrivateDraft", "StepGrid", "default_delta", "private_draft"]
