"""Gurobi, the commercial solver of the paper's experiments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.oracles.catalogue import TRUSTED, Solver, SolverUnavailable, require
from privsolve.oracles.mip import End, MipOracle, Model, Outcome, Watch, build
from privsolve.problems.perturbation import UNIT, Perturbation
from privsolve.problems.problem import Problem

BUILT_IN_LIMIT = 2_000
"""Columns, and rows, that the licence inside the package allows."""

TOO_LARGE = 10_010
NOTE = "its built-in licence allows 2,000 columns and 2,000 rows"


@dataclass(frozen=True)
class GurobiOracle(MipOracle):
    """Minimum within the tolerance by Gurobi, trusting its dual bound.

    The package brings a licence for 2,000 columns and 2,000 rows; with a full licence there is no such limit.
    """

    about: ClassVar[Solver] = Solver("gurobi", "commercial", TRUSTED, NOTE, "gurobipy", "gurobipy")

    def check(self, problem: Problem) -> None:
        """Raise before any noise is drawn if Gurobi is missing, has no licence or one too small for the problem."""
        super().check(problem)
        solver = require(self.about)
        model = build(problem, _with_every_table(problem))
        with _environment(solver) as env:
            if max(model.columns, model.rows) > BUILT_IN_LIMIT and _is_limited(solver, env):
                raise SolverUnavailable(
                    f"the problem has {model.columns:,} columns and {model.rows:,} rows, but Gurobi's built-in licence "
                    f"allows {BUILT_IN_LIMIT:,} of each: install a full licence, or use oracle='tree' or 'highs'"
                )

    def _solve(self, solver: ModuleType, model: Model, start: Int64Array, watch: Watch) -> Outcome:
        with _environment(solver) as env, solver.Model(env=env) as program:
            for option, value in self._options(watch).items():
                program.setParam(option, value)
            columns = program.addMVar(
                model.columns, lb=model.low, ub=model.high, obj=model.cost / UNIT, vtype=solver.GRB.INTEGER
            )
            columns.Start = start
            matrix, low, high = model.big_m()
            for chosen, sense, side in ((np.isfinite(low), ">", low), (np.isfinite(high) & (low < high), "<", high)):
                equal = np.where(low[chosen] == high[chosen], "=", sense)
                program.addMConstr(matrix[chosen], columns, equal, side[chosen])
            _optimise(solver, program, watch)
            ends = {
                solver.GRB.OPTIMAL: End.DONE,
                solver.GRB.TIME_LIMIT: End.TIME_LIMIT,
                solver.GRB.INTERRUPTED: End.INTERRUPTED,
            }
            return Outcome(
                ends.get(program.Status, End.FAILED),
                columns.X if program.SolCount else None,
                self._lower(program.ObjBound),
                int(program.NodeCount),
            )

    def _options(self, watch: Watch) -> dict[str, Any]:
        options: dict[str, Any] = {
            "MIPGap": 0.0,
            "MIPGapAbs": self.tolerance / 2,
        }
        if watch.left is not None:
            options["TimeLimit"] = watch.left
        if self.threads is not None:
            options["Threads"] = self.threads
        return options


def _with_every_table(problem: Problem) -> Perturbation:
    """A perturbation that needs the largest model: a table of norms, not constant, unless all norms are equal."""
    zero = Perturbation.zero(problem.domain)
    if problem.domain.equal_norms:
        return zero
    return Perturbation(problem.domain, zero.coordinate, np.arange(len(problem.domain.norms_sq)))


@contextmanager
def _environment(solver: ModuleType) -> Iterator[Any]:
    """A silent environment; a refused licence is an error that says so."""
    env = solver.Env(empty=True)
    try:
        env.setParam("OutputFlag", 0)
        env.start()
    except solver.GurobiError as error:
        raise SolverUnavailable(f"Gurobi refuses its licence ({error}): renew it, or use oracle='tree'") from error
    try:
        yield env
    finally:
        env.dispose()


def _is_limited(solver: ModuleType, env: Any) -> bool:
    """Whether the licence refuses one column more than the built-in one allows."""
    with solver.Model(env=env) as probe:
        probe.addMVar(BUILT_IN_LIMIT + 1)
        try:
            probe.optimize()
        except solver.GurobiError as error:
            if error.errno == TOO_LARGE:
                return True
            raise
    return False


def _optimise(solver: ModuleType, program: Any, watch: Watch) -> None:
    def listen(model: Any, where: int) -> None:
        if where == solver.GRB.Callback.MIP:
            objective, bound, nodes = (
                model.cbGet(what)
                for what in (
                    solver.GRB.Callback.MIP_OBJBST,
                    solver.GRB.Callback.MIP_OBJBND,
                    solver.GRB.Callback.MIP_NODCNT,
                )
            )
            watch.report(objective, bound, int(nodes))

    try:
        program.optimize(listen)
    except solver.GurobiError as error:
        if error.errno == TOO_LARGE:
            raise SolverUnavailable(
                f"the problem is too large for Gurobi's built-in licence ({BUILT_IN_LIMIT:,} columns and rows): "
                "nothing is released; use the tree on the same noise"
            ) from error
        raise
