"""Noise that has been paid for: every error of its solve keeps it, and it has one answer."""

from __future__ import annotations

import copy
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import privsolve as ps
from oracle_conformance import Raises
from privsolve.errors import IntegerRangeError, OracleFailed
from privsolve.oracles import HighsOracle
from privsolve.problems.perturbation import UNIT

PROBLEM = ps.Problem(ps.PatternTable([[1, 0], [0, 1]], [3, 2], [1, 2]), ps.TernaryCube(2))
MECHANISMS = (ps.opdisc, ps.rspm)


def claims(number: int) -> SimpleNamespace:
    """Calls the member of a given number the best, with a certificate that is wrong but cannot be seen to be."""

    def minimise(problem: Any, perturbation: Any) -> Any:
        weights = problem.domain.members()[number]
        return SimpleNamespace(weights=weights, bound=problem.objective(weights, perturbation) / UNIT)

    return SimpleNamespace(minimise=minimise)


def failure(mechanism: Any, error: BaseException, **options: Any) -> Any:
    with pytest.raises((ps.OracleNotCertified, KeyboardInterrupt)) as caught:
        mechanism(PROBLEM, 1.0, oracle=Raises(error), **options)
    return caught.value


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_one_answer_per_noise(mechanism: Any) -> None:
    error = failure(mechanism, ps.WorkLimitReached("out of time"))
    first = error.retry(claims(0))
    assert first.release.weights.tolist() == PROBLEM.domain.members()[0].tolist()
    assert error.retry(claims(1)) is first
    assert error.retry("enumeration") is first
    assert copy.deepcopy(error).retry(claims(2)) is first
    assert copy.copy(error).retry(claims(3)) is first


def test_a_failed_retry_leaves_room_for_another() -> None:
    error = failure(ps.opdisc, ps.WorkLimitReached("out of time"))
    with pytest.raises(ps.WorkLimitReached) as caught:
        error.retry(Raises(ps.WorkLimitReached("again")))
    assert caught.value.retry is not None
    assert caught.value.retry(claims(4)) is error.retry(claims(5))


def test_threads_get_the_same_answer() -> None:
    error = failure(ps.opdisc, ps.WorkLimitReached("out of time"))
    with ThreadPoolExecutor(6) as threads:
        runs = list(threads.map(lambda number: error.retry(claims(number)), range(6)))
    assert len({id(run) for run in runs}) == 1


def test_another_process_has_no_noise_to_answer_from(monkeypatch: pytest.MonkeyPatch) -> None:
    error = failure(ps.opdisc, ps.WorkLimitReached("out of time"))
    process = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: process + 1)  # what a child sees after a fork
    with pytest.raises(ps.PrivsolveError, match="another process"):
        error.retry("tree")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("record 17: Huntington"),
        MemoryError(),
        ZeroDivisionError("division by zero"),
        IntegerRangeError("too large"),
        ValueError("no"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_of_an_oracle_keep_the_noise(mechanism: Any, error: Exception) -> None:
    budget = ps.Accountant(1.0)
    failed = failure(mechanism, error, random_state=5, budget=budget)
    assert isinstance(failed, OracleFailed)
    assert failed.__cause__ is error
    assert type(error).__name__ in str(failed)
    assert "Huntington" not in str(failed)
    assert "error.retry" in str(failed)
    run = failed.retry("enumeration")
    assert len(budget.history) == 1
    same = mechanism(PROBLEM, 1.0, oracle="enumeration", random_state=5)
    assert run.release.weights.tolist() == same.release.weights.tolist()


def test_an_interrupt_keeps_the_noise(tmp_path: Path) -> None:
    ledger = ps.Ledger.create(tmp_path / "l.ledger", 2.0)
    error = failure(ps.opdisc, KeyboardInterrupt(), random_state=5, budget=ledger)
    assert "nothing was released" in str(error)
    run = error.retry("tree")
    assert run is error.retry("enumeration")
    same = ps.opdisc(PROBLEM, 1.0, oracle="enumeration", random_state=5)
    assert run.release.weights.tolist() == same.release.weights.tolist()
    assert [entry.outcome for entry in ledger.history()] == ["spent"]  # and not failed: the retry has released


def test_noise_too_large_for_a_solver_is_kept() -> None:
    """A floating-point solver refuses noise that it cannot resolve, which is seen only after it was drawn."""
    table = ps.PatternTable(np.eye(12, dtype=int), [3] * 12, [1] * 12)
    problem = ps.Problem(table, ps.IntegerBall(12, 4))
    budget = ps.Accountant(1.0)
    epsilon = 1e-4
    with pytest.raises(ps.OracleNotCertified, match=r"too large for highs.*'tree'") as caught:
        ps.opdisc(problem, epsilon, oracle=HighsOracle(tolerance=1e-4), random_state=0, budget=budget)
    assert caught.value.retry is not None
    run = caught.value.retry("tree")
    assert problem.domain.contains(run.release.weights)
    assert run.release.guarantee.epsilon == epsilon
    assert len(budget.history) == 1
