"""Integer-programming oracles: the conformance suite on every backend, certificates, errors and the catalogue."""

from __future__ import annotations

import _thread
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import privsolve as ps
from oracle_conformance import OracleConformance
from privsolve.arrays import Int64Array
from privsolve.errors import IntegerRangeError
from privsolve.noise.entropy import Randomness
from privsolve.oracles import (
    SOLVERS,
    EnumerationOracle,
    GurobiOracle,
    HighsOracle,
    Oracle,
    SolverUnavailable,
    TreeOracle,
    base,
    mip,
)
from privsolve.oracles.mip import MipOracle, Model, Outcome, gurobi_environment, gurobi_is_limited
from random_problems import DOMAIN_KINDS, random_perturbation, random_problem

UNIT = 2**20
BY_COSTS = tuple(kind for kind in DOMAIN_KINDS if kind != "finite-set")


def available(name: str) -> pytest.MarkDecorator:
    """Skip the tests of a solver that cannot be used here, with the reason."""
    reason = None
    try:
        solver = ps.oracles.get(name).about.load()
        if name == "gurobi":
            with gurobi_environment(solver):
                pass
    except SolverUnavailable as error:
        reason = str(error)
    return pytest.mark.skipif(reason is not None, reason=reason or "")


class MipConformance(OracleConformance):
    domains = BY_COSTS
    problems_per_domain = 40
    oracle_class: type[MipOracle]

    def test_agrees_with_the_tree_on_slices_of_adult(self) -> None:
        adult = ps.datasets.adult_paper(seed=0)
        rng = np.random.default_rng(1)
        for _ in range(4):
            columns = [*np.sort(rng.choice(20, size=6, replace=False)).tolist(), int(rng.integers(20, 22))]
            problem = ps.Problem(_columns_of(adult, columns), ps.IntegerBall(7, 5))
            sigma = float(rng.choice([300.0, 3000.0]))
            perturbation = ps.Perturbation.lifted(problem.domain, rng.normal(size=8) * sigma)
            answer = self.oracle_class().minimise(problem, perturbation)
            best = TreeOracle().minimise(problem, perturbation)
            assert answer.lower <= best.value <= answer.value <= best.value + answer.tolerance * UNIT

    def test_guarantee_says_what_is_trusted(self) -> None:
        problem = random_problem(np.random.default_rng(3), "integer-ball", 3)
        run = ps.opdisc(problem, epsilon=1.0, oracle=self.oracle_class.about.name, random_state=1)
        assert run.release.guarantee.oracle == f"{self.oracle_class.about.name} (trusts the solver's bound)"
        assert run.diagnostics.nodes >= 0

    def test_works_in_rspm(self) -> None:
        problem = random_problem(np.random.default_rng(3), "ternary-cube", 3)
        run = ps.rspm(problem, epsilon=1.0, oracle=self.oracle(), random_state=1)
        assert problem.domain.contains(run.release.weights)
        assert run.diagnostics.certified

    def test_a_time_limit_raises(self) -> None:
        adult = ps.datasets.adult_paper(seed=0)
        problem = ps.Problem(_columns_of(adult, [*range(21)]), ps.IntegerBall(21, 21))
        with pytest.raises(ps.WorkLimitReached, match=r"hit its time limit of 1.5 s at (gap|no) .*nothing is released"):
            self.oracle_class(time_limit=1.5).minimise(problem, ps.Perturbation.zero(problem.domain))

    def test_wrong_settings_are_refused(self) -> None:
        for wrong in ({"tolerance": -1.0}, {"tolerance": float("nan")}, {"tolerance": 1e-6}, {"time_limit": 0.0}):
            with pytest.raises(ValueError, match="must be"):
                self.oracle_class(**wrong)


class TestHighs(MipConformance):
    oracle_class = HighsOracle

    def oracle(self) -> Oracle:
        return HighsOracle()

    def test_an_interrupt_is_heard_during_the_search(self) -> None:
        problem = ps.Problem(_columns_of(ps.datasets.adult_paper(seed=0), [*range(21)]), ps.IntegerBall(21, 21))
        oracle = HighsOracle(time_limit=20)
        solve = oracle.prepare(problem, ps.Perturbation.zero(problem.domain))
        began = time.monotonic()
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # an earlier test may have left another one
        timer = threading.Timer(2.0, _thread.interrupt_main)
        timer.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                solve(ps.Perturbation.zero(problem.domain), None)
        finally:
            timer.join()
            signal.signal(signal.SIGINT, before)
        assert time.monotonic() - began < 15

    def test_no_member_is_cut_off(self) -> None:
        """With a feasibility tolerance of 1e-9, HiGHS 1.14 claims an optimum here that is 10.9 mistakes too high."""
        table = _columns_of(ps.datasets.adult_paper(seed=0), [*range(21)])
        problem = ps.Problem(table, ps.IntegerBall(21, 23))
        sigma = 7 * 23 * np.sqrt(2 * np.log(table.n)) / 0.3
        eta = np.random.default_rng(2).normal(size=24)[:22] * sigma
        perturbation = ps.Perturbation.lifted(problem.domain, eta)
        best = TreeOracle().minimise(problem, perturbation)
        assert abs(HighsOracle().minimise(problem, perturbation).value - best.value) <= 0.01 * UNIT


@available("gurobi")
class TestGurobi(MipConformance):
    oracle_class = GurobiOracle

    def oracle(self) -> Oracle:
        return GurobiOracle(threads=1)

    def test_the_number_of_threads_is_checked(self) -> None:
        with pytest.raises(ValueError, match="threads must be positive"):
            GurobiOracle(threads=0)

    def test_problems_beyond_the_built_in_licence_are_refused_before_noise_is_drawn(self) -> None:
        problem = ps.Problem(ps.datasets.adult_paper(seed=0), ps.IntegerBall(23, 23))
        solver = GurobiOracle.about.load()
        with gurobi_environment(solver) as env:
            if not gurobi_is_limited(solver, env):
                pytest.skip("this Gurobi has a full licence")
        with pytest.raises(SolverUnavailable, match=r"columns and .* rows, but Gurobi's built-in licence allows 2,000"):
            GurobiOracle().check(problem)


def _columns_of(table: ps.PatternTable, columns: list[int]) -> ps.PatternTable:
    scales = [table.scales[j] for j in columns]
    return ps.PatternTable(table.features[:, columns], table.positives, table.negatives, scales=scales)


# --- the model --------------------------------------------------------------------------------------------------------


def _encoded(model: Model, problem: ps.Problem, w: Int64Array) -> Int64Array:
    """All columns of one member: the signs follow from its scores, the choices from the rows of `model.choices`."""
    positive = model.patterns.features @ w >= model.patterns.positive
    matrix, dim = model.choices.matrix.toarray(), model.dim
    choices = np.zeros(matrix.shape[1] - dim, dtype=np.int64)
    end = 0
    for j in range(dim):  # a row that picks one binary, and one that says which value it stands for
        pick, link = matrix[j, dim:], matrix[dim + j]
        end = int(np.flatnonzero(pick)[-1]) + 1
        choices[np.flatnonzero(pick)[np.flatnonzero(-link[dim:][pick == 1] == w[j])[0]]] = 1
    if end < len(choices):  # one per total cost: the last row says that what is spent is the total
        spent = matrix[-1, dim : dim + end] @ choices[:end]
        choices[end + int(np.flatnonzero(-matrix[-1, dim + end :] == spent)[0])] = 1
    return np.concatenate([w, choices, positive.astype(np.int64)])


@pytest.mark.parametrize("kind", BY_COSTS)
def test_the_model_holds_exactly_the_members(kind: str) -> None:
    for seed in range(40):
        rng = np.random.default_rng([seed, 7])
        problem = random_problem(rng, kind)
        perturbation = random_perturbation(rng, problem)
        model = mip.build(problem, perturbation)
        matrix, low, high = model.big_m()
        assert matrix.shape == (model.rows, model.columns)
        members = problem.domain.members()
        for w in members[rng.choice(len(members), size=min(30, len(members)), replace=False)]:
            x = _encoded(model, problem, w)
            assert ((model.low <= x) & (x <= model.high)).all()
            assert (low - 1e-9 <= matrix @ x).all()
            assert (matrix @ x <= high + 1e-9).all()
            assert model.constant + int(model.cost @ x) == problem.objective(w, perturbation)
            for i in range(
                model.columns - len(model.patterns.cost), model.columns
            ):  # any other sign breaks a row by at least its margin
                flipped = x.copy()
                flipped[i] = 1 - flipped[i]
                rows = matrix @ flipped
                assert max((low - rows).max(), (rows - high).max()) >= 1 - 1e-9


def test_margins_are_the_scores_nearest_to_zero_and_constants_the_tightest() -> None:
    for seed in range(60):
        rng = np.random.default_rng([seed, 8])
        problem = random_problem(rng, str(rng.choice(["integer-ball", "sparse-signs", "sparse-points"])))
        p = mip.build(problem, ps.Perturbation.zero(problem.domain)).patterns
        scores = p.features @ problem.domain.members().T
        assert (p.low == scores.min(axis=1)).all()
        assert (p.high == scores.max(axis=1)).all()
        nearest = np.where(scores > 0, scores, 2**62).min(axis=1)
        assert (p.positive <= nearest).all()
        assert (p.nonpositive >= np.where(scores <= 0, scores, -(2**62)).max(axis=1)).all()
        if not isinstance(problem.domain, ps.SparseSigns):  # there the margin ignores that the total is exact
            assert (p.positive == nearest).all()


def test_margins_fall_back_to_the_divisor_when_sums_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(np.random.default_rng(3), "integer-ball", 5)
    perturbation = random_perturbation(np.random.default_rng(3), problem)
    monkeypatch.setattr(mip, "LARGEST_SUMSET", 1)
    monkeypatch.setattr(mip, "LARGEST_REACH", 1)
    patterns = mip.build(problem, perturbation).patterns
    assert set(patterns.nonpositive.tolist()) <= {0}
    assert set(patterns.positive.tolist()) <= {1}
    best = EnumerationOracle().minimise(problem, perturbation)
    assert abs(HighsOracle().minimise(problem, perturbation).value - best.value) <= 0.01 * UNIT


def test_multiples_of_a_row_are_one_pattern() -> None:
    table = ps.PatternTable([[1, 2], [2, 4], [-1, -2], [0, 0]], [1, 1, 1, 1], [0, 0, 0, 3])
    model = mip.build(ps.Problem(table, ps.IntegerBall(2, 2)), ps.Perturbation.zero(ps.IntegerBall(2, 2)))
    assert model.patterns.cost.tolist() == [-UNIT, -2 * UNIT]
    assert model.patterns.constant == 4 * UNIT


# --- certificates -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scripted(MipOracle):
    """A backend that claims what it is told to: the bound is the true optimum plus `error` mistakes."""

    error: float = 0.0
    weights_off_by: int = 0
    failed: bool = False
    about = HighsOracle.about

    def _solve(self, model: Model, time_limit: float | None) -> Outcome:
        true = HighsOracle()._solve(model, time_limit)
        assert true.columns is not None
        assert true.bound is not None
        if self.failed:
            return Outcome(None, None, 0)
        return Outcome(true.columns + self.weights_off_by, true.bound + self.error, true.nodes)


def test_bounds_are_held_to_the_tolerance() -> None:
    problem = random_problem(np.random.default_rng(8), "integer-ball", 4)
    perturbation = random_perturbation(np.random.default_rng(8), problem)
    assert _Scripted().minimise(problem, perturbation).certified
    with pytest.raises(ps.OracleNotCertified, match=r"stopped at gap 0\.5.*more than its tolerance of 0.01"):
        _Scripted(error=-0.5).minimise(problem, perturbation)
    with pytest.raises(ps.OracleNotCertified, match="its arithmetic failed"):
        _Scripted(error=0.5).minimise(problem, perturbation)


@pytest.mark.parametrize("oracle", [_Scripted(failed=True), _Scripted(weights_off_by=100), _Scripted(error=np.nan)])
def test_failures_and_answers_outside_the_domain_release_nothing(oracle: MipOracle) -> None:
    problem = random_problem(np.random.default_rng(8), "integer-ball", 4)
    with pytest.raises(ps.OracleNotCertified, match="stopped at no answer"):
        oracle.minimise(problem, random_perturbation(np.random.default_rng(8), problem))


def test_floating_point_range_is_checked() -> None:
    problem = random_problem(np.random.default_rng(8), "integer-ball", 4)
    perturbation = ps.Perturbation.lifted(problem.domain, np.full(5, 1e9))
    with pytest.raises(IntegerRangeError, match=r"too large for highs to resolve 0\.01 mistakes"):
        HighsOracle().minimise(problem, perturbation)


# --- missing solvers --------------------------------------------------------------------------------------------------


def test_a_missing_solver_names_its_extra_before_noise_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base.importlib.util, "find_spec", lambda module: None)
    no_noise = Randomness(lambda size: pytest.fail("noise was drawn"), seeded=False)
    problem = random_problem(np.random.default_rng(3), "integer-ball", 3)
    with pytest.raises(SolverUnavailable, match=r"pip install 'privsolve\[gurobi\]', or use oracle='tree'"):
        ps.opdisc(problem, epsilon=1.0, oracle="gurobi", random_state=no_noise)
    assert GurobiOracle.about.status == "missing: pip install 'privsolve[gurobi]'"


def test_a_broken_installation_is_an_error_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_solver.py").write_text("raise ImportError('no library')")
    monkeypatch.syspath_prepend(tmp_path)
    broken = replace(GurobiOracle.about, module="broken_solver")
    with pytest.raises(SolverUnavailable, match="is installed but cannot be loaded here"):
        broken.load()
    with pytest.raises(ValueError, match="'cpsat' is unknown: choose one of tree"):
        ps.oracles.get("cpsat")


def test_the_catalogue_imports_no_native_code() -> None:
    names = [s.name for s in SOLVERS]
    assert names == ["tree", "enumeration", "assignment", "subset", "spanning-tree", "highs", "gurobi"]
    assert names == [oracle.about.name for oracle in ps.oracles.ORACLES if oracle.about]
    code = (
        "import sys\n"
        "from privsolve.oracles import SOLVERS\n"
        "for s in SOLVERS: print(s.name, s.installed, s.status, s.licence, s.note)\n"
        "assert 'gurobipy' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120)
    assert [line.split()[0] for line in done.stdout.splitlines()] == names, done.stderr
    assert done.returncode == 0, done.stderr
