"""Integer programming solvers as oracles: HiGHS, CP-SAT, SCIP and Gurobi on the model of `oracles.mip`.

Floating-point solvers work to about 1e-6: what they are asked to prove must be well above that. Their own tolerances are
left alone. Tightening them looks safer and is not: at 1e-9 HiGHS was seen to cut off the optimum and to claim a wrong
bound, where a loose row can only lead to an answer that fails its certificate.
"""

from __future__ import annotations

import math
import os
import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from threading import Thread
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.domains import Domain, FiniteSet, KnapsackDomain
from privsolve.engines.coordinates.minimise import POLL_SECONDS, Progress, ProgressCallback
from privsolve.errors import IntegerRangeError, OracleNotCertified, WorkLimitReached
from privsolve.oracles.base import TRUSTED, TRUSTED_INTEGERS, Oracle, Solution, Solver, SolverUnavailable
from privsolve.oracles.mip import Model, build, first_member
from privsolve.problems.perturbation import UNIT, Perturbation
from privsolve.problems.problem import BaseProblem, Problem

BELIEVED = 0.25
"""A floating-point bound is believed up to this share of the tolerance; the solver may leave half of it as its gap."""

FLOAT_RANGE = 2.0**38
"""Floating-point solvers are given objectives of at most this many tolerances: fifteen bits of a double to spare."""

INTEGER_LIMIT = 2**61
"""Sums of absolute terms below this fit CP-SAT, which refuses a model that could overflow int64."""

BUILT_IN_LIMIT = 2_000
"""Columns, and rows, that the licence inside Gurobi's package allows."""

TOO_LARGE = 10_010
"""Gurobi's error for a model beyond its licence."""


class End(Enum):
    """Why a solver stopped. After a failure nothing that it says is used."""

    DONE = "done"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class Outcome(NamedTuple):
    """What a solver found: columns, or None, and its lower bound in units, without the model's constant."""

    end: End
    columns: NDArray[np.float64] | None
    lower: int | None
    nodes: int


@dataclass
class Watch:
    """Clock and progress of one solve. Solvers report objective and bound in mistakes, without the model's constant."""

    constant: int
    best: int
    bound: int
    time_limit: float | None
    progress: ProgressCallback | None
    began: float = field(default_factory=time.monotonic)
    last: float = -math.inf

    @property
    def elapsed(self) -> float:
        """Seconds since the oracle was called."""
        return time.monotonic() - self.began

    @property
    def left(self) -> float | None:
        """Seconds until the time limit, or None; never zero, which some solvers read as no limit."""
        return None if self.time_limit is None else max(self.time_limit - self.elapsed, 1e-3)

    def report(self, objective: float, bound: float, nodes: int) -> None:
        """Pass the state of the search on, at most ten times a second."""
        if self.progress is None or self.elapsed - self.last < POLL_SECONDS:
            return
        self.last = self.elapsed
        value, lower = self.best / UNIT, self.bound / UNIT
        offset = self.constant / UNIT
        if math.isfinite(objective):
            value = min(value, objective + offset)
        if math.isfinite(bound):
            lower = min(max(lower, bound + offset), value)
        self.progress(Progress(value, lower, nodes, self.elapsed))


@dataclass(frozen=True)
class MipOracle(Oracle):
    """A general solver as an oracle. It is trusted for its lower bound, and for nothing else.

    The weights it returns are rounded, their objective is recomputed in integers, and the answer is certified only if
    the solver's bound is within `tolerance` mistakes of that. Every mechanism pays for the tolerance in noise (theory,
    sections 1 and 6). `time_limit` (seconds) ends the search with `WorkLimitReached`; `threads` is left to the solver.
    """

    tolerance: float = 0.01
    time_limit: float | None = None
    threads: int | None = None
    problems: ClassVar[tuple[type[BaseProblem], ...]] = (Problem,)
    domains: ClassVar[tuple[type[Domain], ...]] = (KnapsackDomain, FiniteSet)
    about: ClassVar[Solver]
    smallest_tolerance: ClassVar[float] = 1e-4

    def __post_init__(self) -> None:
        if not self.smallest_tolerance <= self.tolerance < math.inf:
            raise ValueError(f"tolerance must be at least {self.smallest_tolerance:g} mistakes, got {self.tolerance!r}")
        for option in ("time_limit", "threads"):
            value = getattr(self, option)
            if value is not None and not value > 0:
                raise ValueError(f"{option} must be positive or None, got {value!r}")

    @property
    def name(self) -> str:
        """The name that goes into the guarantee."""
        return f"{self.about.name} (trusts the solver's bound)"

    def unsupported(self, problem: BaseProblem) -> str:
        """The models know the sign of a score only: a loss of several steps is beyond them."""
        if isinstance(problem, Problem) and not problem.loss.is_step:
            return f"oracle {self.about.name!r} cannot solve a loss of several steps: use oracle='tree'"
        return super().unsupported(problem)

    def check(self, problem: Problem) -> None:
        """Raise before any noise is drawn if the solver is missing or cannot take the problem."""
        super().check(problem)
        self.about.load()

    def minimise(
        self, problem: Problem, perturbation: Perturbation, progress: ProgressCallback | None = None
    ) -> Solution:
        """A member within the tolerance of the minimum, by the solver's bound; otherwise an error."""
        began = time.monotonic()
        super().check(problem)
        problem.check_perturbation(perturbation)
        model = build(problem, perturbation)
        self._check_range(model)
        weights = first_member(problem.domain, perturbation)
        value = problem.objective(weights, perturbation)
        watch = Watch(model.constant, value, model.trivial_bound, self.time_limit, progress, began)
        watch.report(math.inf, -math.inf, 0)
        outcome = self._solve(self.about.load(), model, model.encode(weights), watch)
        if outcome.end is End.INTERRUPTED:
            raise KeyboardInterrupt
        if outcome.columns is not None and problem.domain.contains(found := model.weights(outcome.columns)):
            weights = min(weights, found, key=lambda w: problem.objective(w, perturbation))
        unknown = outcome.end is End.FAILED or outcome.lower is None
        lower = model.trivial_bound if unknown else model.constant + (outcome.lower or 0)
        value = problem.objective(weights, perturbation)
        solution = Solution(weights, value, lower, self.tolerance, {"nodes": outcome.nodes})
        self._certify(solution, outcome.end)
        return solution

    @abstractmethod
    def _solve(self, solver: ModuleType, model: Model, start: Int64Array, watch: Watch) -> Outcome:
        """Run the solver on the model from the columns of a known member."""

    def _check_range(self, model: Model) -> None:
        if model.largest > FLOAT_RANGE * self.tolerance * UNIT:
            raise IntegerRangeError(
                f"loss and noise are too large for {self.about.name} to resolve {self.tolerance:g} mistakes in floating "
                "point: nothing is released; solve the same noise with an oracle that works in integers, such as 'tree'"
            )

    def _lower(self, bound: float | None) -> int | None:
        """A floating-point bound in mistakes as one in units, lowered by what is left to the solver's rounding."""
        if bound is None or not abs(bound) < 1e15:
            return None
        return math.floor((bound - BELIEVED * self.tolerance) * UNIT)

    def _certify(self, solution: Solution, end: End) -> None:
        name, objective, bound = self.about.name, solution.objective, solution.bound
        if solution.lower > solution.value:
            raise OracleNotCertified(
                f"{name} claims a bound of {bound:.6g}, above the exact objective {objective:.6g} of a "
                "member: its arithmetic failed and nothing is released; use the tree on the same noise"
            )
        if solution.certified:
            return
        state = f"gap {objective - bound:.6g} (objective {objective:.6g}, bound {bound:.6g})"
        if end is End.TIME_LIMIT:
            raise WorkLimitReached(
                f"{name} hit its time limit of {self.time_limit:g} s at {state}: nothing is "
                "released; retry with the same noise and a larger limit"
            )
        raise OracleNotCertified(
            f"{name} stopped at {state}, more than its tolerance of {self.tolerance:g} mistakes: nothing is "
            "released; use the tree on the same noise"
        )


@dataclass(frozen=True)
class HighsOracle(MipOracle):
    """Minimum within the tolerance by HiGHS, as SciPy brings it, trusting its dual bound.

    SciPy's interface has no number of threads, no start and no news of the search. An interrupt is heard at once (SciPy 1.15 or
    later); the search itself then ends with the process or at its time limit.
    """

    about: ClassVar[Solver] = Solver("highs", "MIT", TRUSTED, "part of SciPy", "scipy.optimize", "scipy")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threads is not None:
            raise ValueError("threads must be None for oracle 'highs': SciPy does not let it be chosen")

    def _solve(self, solver: ModuleType, model: Model, start: Int64Array, watch: Watch) -> Outcome:
        matrix, low, high = model.big_m()
        options: dict[str, Any] = {"mip_rel_gap": self.tolerance / 2 / max(model.largest / UNIT, 1.0)}
        if watch.left is not None:
            options["time_limit"] = watch.left
        found: list[Any] = []

        def search() -> None:
            try:
                found.append(
                    solver.milp(
                        model.cost / UNIT,
                        integrality=np.ones(model.columns),
                        bounds=solver.Bounds(model.low, model.high),
                        constraints=solver.LinearConstraint(matrix, low, high),
                        options=options,
                    )
                )
            except Exception as error:
                found.append(error)

        thread = Thread(target=search, daemon=True)  # so that Ctrl-C is heard: SciPy lets other threads run
        thread.start()
        while thread.is_alive():
            thread.join(POLL_SECONDS)
        (result,) = found
        if isinstance(result, Exception):
            raise result
        end = {0: End.DONE, 1: End.TIME_LIMIT}.get(result.status, End.FAILED)
        return Outcome(end, result.x, self._lower(result.mip_dual_bound), int(result.mip_node_count or 0))


@dataclass(frozen=True)
class CpsatOracle(MipOracle):
    """The exact minimum by CP-SAT (OR-Tools): objective and scores are its own integers, so the tolerance is 0 by default.

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
        program, columns = _cpsat_program(solver, model, start)
        search = solver.CpSolver()
        search.parameters.num_workers = self.threads or os.cpu_count() or 1
        search.parameters.absolute_gap_limit = float(int(self.tolerance * UNIT / 2))
        search.parameters.relative_gap_limit = 0.0
        if watch.left is not None:
            search.parameters.max_time_in_seconds = watch.left
        listener = _cpsat_listener(solver, watch)
        search.best_bound_callback = listener.on_bound
        status = search.solve(program, listener)
        found = status in (solver.OPTIMAL, solver.FEASIBLE)
        # without a proof CP-SAT does not say why it stopped: for lack of time, or because of Ctrl-C
        late = self.time_limit is not None and watch.elapsed > 0.9 * self.time_limit
        stopped = End.TIME_LIMIT if late else End.INTERRUPTED
        ends = {solver.OPTIMAL: End.DONE, solver.FEASIBLE: stopped, solver.UNKNOWN: stopped}
        return Outcome(
            ends.get(status, End.FAILED),
            np.array([search.value(c) for c in columns[: model.dim]]) if found else None,
            int(search.response_proto.inner_objective_lower_bound) if found else None,
            int(search.num_branches),
        )


def _cpsat_program(cp: ModuleType, model: Model, start: Int64Array) -> tuple[Any, list[Any]]:
    """The model with its implications stated as such: no constant is needed to switch a row off."""
    program = cp.CpModel()
    columns = [program.new_int_var(*ends, "") for ends in zip(model.low.tolist(), model.high.tolist(), strict=True)]
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


def _cpsat_listener(cp: ModuleType, watch: Watch) -> Any:
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


@dataclass(frozen=True)
class ScipOracle(MipOracle):
    """Minimum within the tolerance by SCIP, trusting its dual bound. SCIP uses one thread."""

    about: ClassVar[Solver] = Solver("scip", "Apache-2.0", TRUSTED, "one thread", "pyscipopt", "PySCIPOpt")

    def _solve(self, solver: ModuleType, model: Model, start: Int64Array, watch: Watch) -> Outcome:
        program, columns = _scip_program(solver, model)
        program.setParam("limits/gap", 0.0)
        program.setParam("limits/absgap", self.tolerance / 2)
        if watch.left is not None:
            program.setParam("limits/time", watch.left)
        first = program.createSol()
        for column, value in zip(columns, start.tolist(), strict=True):
            program.setSolVal(first, column, value)
        program.addSol(first)
        program.includeEventhdlr(_scip_listener(solver, watch), "progress", "reports incumbent and bound")
        program.optimizeNogil()
        best = program.getBestSol() if program.getNSols() else None
        done, limit, stopped = End.DONE, End.TIME_LIMIT, End.INTERRUPTED
        ends = {"optimal": done, "gaplimit": done, "timelimit": limit, "userinterrupt": stopped}
        return Outcome(
            ends.get(program.getStatus(), End.FAILED),
            None if best is None else np.array([program.getSolVal(best, c) for c in columns[: model.dim]]),
            self._lower(program.getDualbound()),
            int(program.getNTotalNodes()),
        )


def _scip_program(scip: ModuleType, model: Model) -> tuple[Any, list[Any]]:
    program = scip.Model()
    program.hideOutput()
    ends = zip(model.low.tolist(), model.high.tolist(), (model.cost / UNIT).tolist(), strict=True)
    columns = [program.addVar(vtype="I", lb=low, ub=high, obj=cost) for low, high, cost in ends]
    matrix, *sides = model.big_m()
    least, most = (np.clip(side, -program.infinity(), program.infinity()).tolist() for side in sides)
    for i in range(model.rows):
        span = slice(matrix.indptr[i], matrix.indptr[i + 1])
        entries = zip(matrix.indices[span], matrix.data[span].tolist(), strict=True)
        row = scip.quicksum(value * columns[c] for c, value in entries)
        program.addCons((row <= most[i]) >= least[i])
    return program, columns


def _scip_listener(scip: ModuleType, watch: Watch) -> Any:
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


@dataclass(frozen=True)
class GurobiOracle(MipOracle):
    """Minimum within the tolerance by Gurobi, the solver of the paper's experiments, trusting its dual bound.

    The package brings a licence for 2,000 columns and 2,000 rows; with a full licence there is no such limit.
    """

    about: ClassVar[Solver] = Solver(
        "gurobi", "commercial", TRUSTED, "2,000 columns and rows without a full licence", "gurobipy", "gurobipy"
    )

    def check(self, problem: Problem) -> None:
        """Raise before any noise is drawn if Gurobi is missing, has no licence or one too small for the problem."""
        super().check(problem)
        solver, domain = self.about.load(), problem.domain
        largest = Perturbation.zero(domain)
        if not domain.equal_norms:  # a table of norms that is not constant needs the largest model
            largest = Perturbation(domain, largest.coordinate, np.arange(len(domain.norms_sq)))
        model = build(problem, largest)
        with gurobi_environment(solver) as env:
            if max(model.columns, model.rows) > BUILT_IN_LIMIT and gurobi_is_limited(solver, env):
                raise SolverUnavailable(
                    f"the problem has {model.columns:,} columns and {model.rows:,} rows, but Gurobi's built-in licence "
                    f"allows {BUILT_IN_LIMIT:,} of each: install a full licence, or use oracle='tree' or 'highs'"
                )

    def _solve(self, solver: ModuleType, model: Model, start: Int64Array, watch: Watch) -> Outcome:
        grb = solver.GRB

        def listen(program: Any, where: int) -> None:
            if where == grb.Callback.MIP:
                of = (grb.Callback.MIP_OBJBST, grb.Callback.MIP_OBJBND, grb.Callback.MIP_NODCNT)
                objective, bound, nodes = map(program.cbGet, of)
                watch.report(objective, bound, int(nodes))

        with gurobi_environment(solver) as env, solver.Model(env=env) as program:
            options = {"MIPGapAbs": self.tolerance / 2, "TimeLimit": watch.left, "Threads": self.threads, "MIPGap": 0.0}
            for option, value in options.items():
                if value is not None:
                    program.setParam(option, value)
            columns = program.addMVar(
                model.columns, lb=model.low, ub=model.high, obj=model.cost / UNIT, vtype=grb.INTEGER
            )
            columns.Start = start
            matrix, low, high = model.big_m()
            for chosen, sense, side in ((np.isfinite(low), ">", low), (np.isfinite(high) & (low < high), "<", high)):
                equal = np.where(low[chosen] == high[chosen], "=", sense)
                program.addMConstr(matrix[chosen], columns, equal, side[chosen])
            program.optimize(listen)
            ends = {grb.OPTIMAL: End.DONE, grb.TIME_LIMIT: End.TIME_LIMIT, grb.INTERRUPTED: End.INTERRUPTED}
            found = columns.X if program.SolCount else None
            end = ends.get(program.Status, End.FAILED)
            return Outcome(end, found, self._lower(program.ObjBound), int(program.NodeCount))


@contextmanager
def gurobi_environment(solver: ModuleType) -> Iterator[Any]:
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


def gurobi_is_limited(solver: ModuleType, env: Any) -> bool:
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
