"""Schemas drafted from records with a guarantee: what is read off the data is paid for (theory, section 12)."""

from privsolve.data.private.cuts import DecimalGrid, Grid, StepGrid
from privsolve.data.private.draft import DRAFT_SHARE, PrivateDraft, default_delta, private_draft

__all__ = ["DRAFT_SHARE", "DecimalGrid", "Grid", "PrivateDraft", "StepGrid", "default_delta", "private_draft"]
