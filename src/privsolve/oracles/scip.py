"""SCIP, an open mixed-integer solver."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.oracles.catalogue import TRUSTED, Solver
from privsolve.oracles.mip import End, MipOracle, Model, Outcome, Watch
from privsolve.problems.perturbation import UNIT


@dataclass(frozen=True)
class ScipOracle(MipOracle):
    """Minimum within the tolerance by SCIP, trusting its dual bound. SCIP uses one thread."""

    about: ClassVar[Solver] = Solver("scip", "Apache-2.0", TRUSTED, "one thread", "pyscipopt", "PySCIPOpt")

    def _solve(self, solver: ModuleType, model: Model, start: Int64Array, watch: Watch) -> Outcome:
        program, columns = _program(solver, model)
        program.setParam("limits/gap", 0.0)
        program.setParam("limits/absgap", self.tolerance / 2)
        if watch.left is not None:
            program.setParam("limits/time", watch.left)
        first = program.createSol()
        for column, value in zip(columns, start.tolist(), strict=True):
            program.setSolVal(first, column, value)
        program.addSol(first)
        program.includeEventhdlr(_listener(solver, watch), "progress", "reports incumbent and bound")
        program.optimizeNogil()
        found = program.getNSols() > 0
        best = program.getBestSol() if found else None
        ends = {
            "optimal": End.DONE,
            "gaplimit": End.DONE,
            "timelimit": End.TIME_LIMIT,
            "userinterrupt": End.INTERRUPTED,
        }
        return Outcome(
            ends.get(program.getStatus(), End.FAILED),
            np.array([program.getSolVal(best, c) for c in columns[: model.dim]]) if found else None,
            self._lower(program.getDualbound()),
            int(program.getNTotalNodes()),
        )


def _program(scip: ModuleType, model: Model) -> tuple[Any, list[Any]]:
    program = scip.Model()
    program.hideOutput()
    cost, low, high = (model.cost / UNIT).tolist(), model.low.tolist(), model.high.tolist()
    columns = [
        program.addVar(vtype="I" if i < model.dim else "B", lb=low[i], ub=high[i], obj=cost[i])
        for i in range(model.columns)
    ]
    matrix, row_low, row_high = model.big_m()
    for i, (least, most) in enumerate(zip(row_low.tolist(), row_high.tolist(), strict=True)):
        span = slice(matrix.indptr[i], matrix.indptr[i + 1])
        entries = zip(matrix.indices[span], matrix.data[span].tolist(), strict=True)
        row = scip.quicksum(value * columns[c] for c, value in entries)
        if least == most:
            program.addCons(row == least)
        elif np.isinf(least):
            program.addCons(row <= most)
        elif np.isinf(most):
            program.addCons(row >= least)
        else:
            program.addCons((row <= most) >= least)
    return program, columns


def _listener(scip: ModuleType, watch: Watch) -> Any:
    events = scip.SCIP_EVENTTYPE.BESTSOLFOUND | scip.SCIP_EVENTTYPE.NODESOLVED | scip.SCIP_EVENTTYPE.LPSOLVED

    class Listener(scip.Eventhdlr):  # type: ignore[name-defined, misc]
        """Passes incumbent and bound on."""

        def eventinit(self) -> None:
            self.model.catchEvent(events, self)

        def eventexit(self) -> None:
            self.model.dropEvent(events, self)

        def eventexec(self, event: Any) -> None:
            program = self.model
            watch.report(program.getPrimalbound(), program.getDualbound(), int(program.getNTotalNodes()))

    return Listener()
