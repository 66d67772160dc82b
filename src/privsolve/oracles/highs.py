"""HiGHS, an open mixed-integer solver."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.engines.coordinates.minimise import POLL_SECONDS
from privsolve.oracles.catalogue import TRUSTED, Solver
from privsolve.oracles.mip import End, MipOracle, Model, Outcome, Watch
from privsolve.problems.perturbation import UNIT


@dataclass(frozen=True)
class HighsOracle(MipOracle):
    """Minimum within the tolerance by HiGHS, trusting its dual bound."""

    about: ClassVar[Solver] = Solver("highs", "MIT", TRUSTED, "the default for integer programs", "highspy", "highspy")

    def _solve(self, solver: ModuleType, model: Model, start: Int64Array, watch: Watch) -> Outcome:
        highs = solver.Highs()
        for option, value in self._options(watch).items():
            highs.setOptionValue(option, value)
        highs.passModel(_program(solver, model))
        first = solver.HighsSolution()
        first.col_value = start.astype(np.float64)
        highs.setSolution(first)

        def listen(event: Any) -> None:
            state = event.data_out
            watch.report(state.mip_primal_bound, state.mip_dual_bound, int(state.mip_node_count))

        highs.cbMipInterrupt += listen
        _run(highs)
        ends = {
            solver.HighsModelStatus.kOptimal: End.DONE,
            solver.HighsModelStatus.kTimeLimit: End.TIME_LIMIT,
            solver.HighsModelStatus.kInterrupt: End.INTERRUPTED,
        }
        info, solution = highs.getInfo(), highs.getSolution()
        return Outcome(
            ends.get(highs.getModelStatus(), End.FAILED),
            np.asarray(solution.col_value) if solution.value_valid else None,
            self._lower(info.mip_dual_bound),
            int(info.mip_node_count),
        )

    def _options(self, watch: Watch) -> dict[str, Any]:
        options: dict[str, Any] = {
            "output_flag": False,
            "mip_rel_gap": 0.0,
            "mip_abs_gap": self.tolerance / 2,
        }
        if watch.left is not None:
            options["time_limit"] = watch.left
        if self.threads is not None:
            options["threads"] = self.threads
        return options


def _run(highs: Any) -> None:
    """Solve in a thread of its own, so that Ctrl-C is heard."""
    highs.HandleUserInterrupt = True
    thread = highs.startSolve()
    try:
        while thread.is_alive():
            thread.join(POLL_SECONDS)
    except KeyboardInterrupt:
        highs.cancelSolve()
        thread.join()
        raise


def _program(solver: ModuleType, model: Model) -> Any:
    matrix, low, high = model.big_m()
    program = solver.HighsLp()
    program.num_col_, program.num_row_ = model.columns, len(low)
    program.col_cost_ = model.cost / UNIT
    program.col_lower_, program.col_upper_ = model.low.astype(np.float64), model.high.astype(np.float64)
    program.row_lower_, program.row_upper_ = low, high
    program.integrality_ = [solver.HighsVarType.kInteger] * model.columns
    program.a_matrix_.format_ = solver.MatrixFormat.kRowwise
    program.a_matrix_.start_ = matrix.indptr
    program.a_matrix_.index_ = matrix.indices
    program.a_matrix_.value_ = matrix.data
    return program
