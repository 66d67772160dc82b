"""CP-SAT (OR-Tools), a constraint solver that works in integers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.errors import IntegerRangeError
from privsolve.oracles.catalogue import TRUSTED_INTEGERS, Solver
from privsolve.oracles.mip import End, MipOracle, Model, Outcome, Watch
from privsolve.problems.perturbation import UNIT
from privsolve.problems.problem import Problem

INTEGER_LIMIT = 2**61
"""Sums of absolute terms below this fit CP-SAT, which refuses a model that could overflow int64."""


@dataclass(frozen=True)
class CpsatOracle(MipOracle):
    """The exact minimum by CP-SAT: objective and scores are its own integers, so the tolerance is 0 by default.

    With several threads it may return any one of several optimal members.
    """

    tolerance: float = 0.0
    about: ClassVar[Solver] = Solver(
        "cpsat", "Apache-2.0", TRUSTED_INTEGERS, "tolerance 0", "ortools.sat.python.cp_model", "ortools"
    )
    smallest_tolerance: ClassVar[float] = 0.0

    def check(self, problem: Problem) -> None:
        """Raise before any noise is drawn if OR-Tools is missing or the scores leave its integers."""
        super().check(problem)
        widest = [int(np.abs(problem.domain.values(j)).max()) for j in range(problem.domain.dim)]
        rows = np.abs(problem.table.score_features).max(axis=0).tolist()
        if sum(a * b for a, b in zip(rows, widest, strict=True)) >= INTEGER_LIMIT:
            raise IntegerRangeError("scores leave the integers of cpsat: use coarser scales or oracle='tree'")

    def _check_range(self, model: Model) -> None:
        if model.largest >= INTEGER_LIMIT:
            raise IntegerRangeError(
                "loss and noise leave the integers of cpsat: nothing is released; solve the same noise with 'tree'"
            )

    def _solve(self, solver: ModuleType, model: Model, start: Int64Array, watch: Watch) -> Outcome:
        program, columns = _program(solver, model, start)
        search = solver.CpSolver()
        search.parameters.num_workers = self.threads or os.cpu_count() or 1
        search.parameters.absolute_gap_limit = float(int(self.tolerance * UNIT / 2))
        search.parameters.relative_gap_limit = 0.0
        if watch.left is not None:
            search.parameters.max_time_in_seconds = watch.left
        listener = _listener(solver, watch)
        search.best_bound_callback = listener.on_bound
        status = search.solve(program, listener)
        found = status in (solver.OPTIMAL, solver.FEASIBLE)
        return Outcome(
            _end(solver, status, watch),
            np.array([search.value(c) for c in columns[: model.dim]]) if found else None,
            int(search.response_proto.inner_objective_lower_bound) if found else None,
            int(search.num_branches),
        )


def _end(cp: ModuleType, status: Any, watch: Watch) -> End:
    """CP-SAT does not say why it stopped without a proof: for lack of time, or because of Ctrl-C."""
    if status == cp.OPTIMAL:
        return End.DONE
    if status not in (cp.FEASIBLE, cp.UNKNOWN):
        return End.FAILED
    return End.TIME_LIMIT if watch.almost_over else End.INTERRUPTED


def _program(cp: ModuleType, model: Model, start: Int64Array) -> tuple[Any, list[Any]]:
    """The model with its implications stated as such: no constant is needed to switch a row off."""
    program = cp.CpModel()
    low, high = model.low.tolist(), model.high.tolist()
    columns = [
        program.new_int_var(low[i], high[i], "") if i < model.dim else program.new_bool_var("")
        for i in range(model.columns)
    ]
    for column, value in zip(columns, start.tolist(), strict=True):
        program.add_hint(column, value)

    def combination(matrix: Any, i: int) -> Any:
        span = slice(matrix.indptr[i], matrix.indptr[i + 1])
        terms = [columns[c] for c in matrix.indices[span]]
        return cp.LinearExpr.weighted_sum(terms, matrix.data[span].tolist())

    choices, patterns = model.choices, model.patterns
    for i in range(len(choices.low)):
        program.add_linear_constraint(combination(choices.matrix, i), int(choices.low[i]), int(choices.high[i]))
    for i in range(len(patterns.cost)):
        score, positive = combination(patterns.features, i), columns[model.first_pattern + i]
        program.add(score >= int(patterns.positive[i])).only_enforce_if(positive)
        program.add(score <= int(patterns.nonpositive[i])).only_enforce_if(~positive)
    program.minimize(cp.LinearExpr.weighted_sum(columns, model.cost.tolist()))
    return program, columns


def _listener(cp: ModuleType, watch: Watch) -> Any:
    class Listener(cp.CpSolverSolutionCallback):  # type: ignore[name-defined, misc]
        """Keeps the last objective and bound, and passes them on."""

        def __init__(self) -> None:
            super().__init__()
            self.objective, self.bound, self.branches = float("inf"), float("-inf"), 0

        def on_solution_callback(self) -> None:
            self.objective = self.objective_value / UNIT
            self.branches = int(self.num_branches)
            self.on_bound(self.best_objective_bound)

        def on_bound(self, bound: float) -> None:
            self.bound = max(self.bound, bound / UNIT)
            watch.report(self.objective, self.bound, self.branches)

    return Listener()
