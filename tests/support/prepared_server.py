"""Imported by the server of forks alone: the signals find its processes at work, not at compiling."""

from __future__ import annotations

import fit_processes  # noqa: F401
import ledger_processes  # noqa: F401
from privsolve.learn.short_card_recipe import CardLimits, ShortCardRecipe
from small_tables import INDICATORS, patients

ShortCardRecipe(2.0, CardLimits(max_features=2)).run(INDICATORS.table(patients(50)))
