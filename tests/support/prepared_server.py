"""Imported by the server of forks alone: the signals find its processes at work, not at compiling."""

from __future__ import annotations

import fit_processes  # noqa: F401
import ledger_processes  # noqa: F401
from privsolve.learn.fitting import Recipe, scorecard_domain
from small_tables import INDICATORS, patients

Recipe(2.0).run(INDICATORS.table(patients(50)), scorecard_domain(INDICATORS.dim, 2, 3, (-8, 8)))
