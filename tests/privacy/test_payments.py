"""One payment, one release: drafts are paid for with the first fit, names are paid for once, and odd files are refused."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import privsolve as ps
from forks import processes
from ledger_processes import fit_when_told
from privsolve.errors import BudgetExceeded, LedgerError
from privsolve.privacy.ledger import Ledger
from promises import promise
from small_tables import patients

DATA = patients()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger", 1.0)


def drafted(**options: Any) -> ps.Schema:
    """A schema that was drafted privately at epsilon 0.5."""
    return ps.private_draft(DATA, ps.Label("ill", "yes", "no"), 0.5, bounds={"age": (0, 100)}, **options).schema


def fit(schema: ps.Schema, epsilon: float, budget: Any) -> ps.PrivateShortCard:
    model = ps.PrivateShortCard(epsilon, schema=schema, max_features=1, budget=budget)
    return model.fit(DATA.drop(columns="ill"), DATA["ill"])


BUDGETS: dict[str, Callable[[Path], Any]] = {
    "ledger": lambda folder: Ledger.create(folder / "ledger", 1.0),
    "accountant": lambda folder: ps.Accountant(1.0),
}


def paid(budget: Any) -> list[float]:
    history = budget.history() if isinstance(budget, Ledger) else budget.history
    return [getattr(entry, "guarantee", entry).epsilon for entry in history]


@pytest.mark.parametrize("kind", BUDGETS)
def test_a_budget_pays_for_the_draft_with_the_first_fit(tmp_path: Path, kind: str) -> None:
    schema, budget = drafted(), BUDGETS[kind](tmp_path)
    with pytest.raises(BudgetExceeded, match=r"the private draft of the schema \(epsilon=0.5\) is paid for"):
        fit(schema, 1.0, budget)
    assert paid(budget) == []
    model = fit(schema, 0.3, budget)
    assert paid(budget) == [0.5, 0.3]
    assert model.release_.total.epsilon == pytest.approx(0.8)
    fit(schema, 0.2, budget)
    assert paid(budget) == [0.5, 0.3, 0.2]


@pytest.mark.parametrize("kind", BUDGETS)
def test_a_budget_does_not_pay_again_for_its_own_draft(tmp_path: Path, kind: str) -> None:
    budget = BUDGETS[kind](tmp_path)
    fit(drafted(budget=budget), 0.3, budget)
    assert paid(budget) == [0.5, 0.3]


@pytest.mark.parametrize("kind", BUDGETS)
def test_a_seed_is_no_payment(tmp_path: Path, kind: str) -> None:
    """A seeded draft has the name of every other with its seed: each is paid for, and none vouches for another."""
    budget = BUDGETS[kind](tmp_path)
    one = drafted(budget=budget, random_state=1)
    other = ps.private_draft(patients(2000)[["age"]], None, 0.3, bounds={"age": (0, 100)}, random_state=1).schema
    with pytest.raises(BudgetExceeded):
        ps.private_draft(DATA, None, 9.0, bounds={"age": (0, 100)}, random_state=1, budget=budget)
    fit(replace(other, label=one.label), 0.2, budget)
    assert paid(budget) == [0.5, 0.3, 0.2]


def test_mechanisms_below_the_estimators_pay_for_the_draft_too(ledger: Ledger) -> None:
    schema = drafted()
    problem = ps.Problem(schema.table(DATA).table, ps.SparsePoints(schema.dim, 1, 1, (-1, 1)), schema=schema)
    ps.exponential(problem, 0.1, budget=ledger)
    ps.opdisc(problem, 0.1, budget=ledger)
    assert paid(ledger) == [0.5, 0.1, 0.1]


def test_eight_processes_pay_for_one_draft_once(tmp_path: Path) -> None:
    schema = tmp_path / "schema.toml"
    drafted().save(schema)
    for trial in range(2):
        ledger, ready = Ledger.create(tmp_path / f"ledger{trial}", 9.0), processes.Barrier(8)
        workers = [
            processes.Process(target=fit_when_told, args=(str(ledger.path), str(schema), ready)) for _ in range(8)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(240)
        assert [worker.exitcode for worker in workers] == [0] * 8
        assert sorted(paid(ledger)) == [0.1] * 8 + [0.5]


def test_a_name_is_paid_for_once_and_bound_to_one_answer(ledger: Ledger) -> None:
    assert [ledger.spend(promise(0.4), run="run 1") for _ in range(3)] == [1, 1, 1]
    ledger.bind(1, "aa")
    ledger.bind(1, "aa")
    with pytest.raises(LedgerError, match="has paid for another release"):
        ledger.bind(1, "bb")
    assert ledger.spend(promise(0.1)) == 2
    assert paid(ledger) == [0.4, 0.1]


@pytest.mark.parametrize("number", [10**30, -1, 0, 2, 1.5, "1", None, True])
def test_a_mark_of_no_entry_is_refused(ledger: Ledger, number: Any) -> None:
    ledger.spend(promise(0.1))
    with pytest.raises(ValueError, match="number must be"):
        ledger.mark(number, "released")
    with pytest.raises(ValueError, match="outcome must be"):
        ledger.mark(1, [10**9])  # type: ignore[arg-type]


@pytest.mark.parametrize("timeout", [float("nan"), float("inf"), -1, 1e30, 10**400, "soon", None, True])
def test_a_timeout_that_is_no_time_is_refused(ledger: Ledger, timeout: Any) -> None:
    with pytest.raises(ValueError, match="timeout must be"):
        Ledger.open(ledger.path, timeout=timeout)


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
@pytest.mark.parametrize("name", ["ledger", "ledger.mark"])
def test_a_pipe_is_no_ledger_and_nobody_waits_for_it(ledger: Ledger, name: str) -> None:
    path = ledger.path.with_name(name)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(LedgerError, match="not a regular file"):
        Ledger.open(ledger.path)


STRANGE = {
    "trigger": "CREATE TRIGGER t AFTER INSERT ON releases BEGIN DELETE FROM releases WHERE number = new.number; END",
    "index": "CREATE UNIQUE INDEX i ON releases (note)",
    "view": "CREATE VIEW v AS SELECT * FROM releases",
    "another table": "CREATE TABLE t (x)",
}


@pytest.mark.parametrize("kind", STRANGE)
def test_a_database_that_could_interfere_with_payments_is_refused(ledger: Ledger, kind: str) -> None:
    with sqlite3.connect(ledger.path) as db:
        db.execute(STRANGE[kind])
    db.close()
    for _ in range(2):
        with pytest.raises(LedgerError, match="something else than the tables"):
            ledger.spend(promise(0.9))


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_a_link_in_the_place_of_the_new_mark_is_not_followed(ledger: Ledger, tmp_path: Path) -> None:
    letter = tmp_path / "letter"
    letter.write_text("dear all")
    (tmp_path / "ledger.mark.new").symlink_to(letter)
    ledger.spend(promise(0.1))
    assert letter.read_text() == "dear all"
    assert Ledger.open(ledger.path).history()
