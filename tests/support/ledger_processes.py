"""What the processes of the ledger tests do; kept apart so that starting one imports little."""

from __future__ import annotations

import os
import sqlite3
from multiprocessing.synchronize import Barrier, Event

from privsolve.errors import BudgetExceeded
from privsolve.privacy.ledger import Ledger
from promises import promise


def attempts(path: str, count: int, start: Event, acknowledged: str) -> None:
    """Try to spend `count` times 0.02, and write down the number of every success."""
    ledger = Ledger.open(path)
    start.wait(60)
    for _ in range(count):
        try:
            number = ledger.spend(promise(0.02))
        except BudgetExceeded:
            number = 0
        write_line(acknowledged, str(number))


def spend_for_ever(path: str, acknowledged: str) -> None:
    """Spend until killed; a number is written down only after its payment was reported as made."""
    ledger = Ledger.open(path)
    while True:
        with ledger.spending(promise(1e-6)) as number:
            write_line(acknowledged, str(number))


def hold(path: str, held: Event, done: Event) -> None:
    """Keep the file locked for writing."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    held.set()
    done.wait(60)
    db.close()


def write_line(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{text}\n".encode())
    os.close(descriptor)


def fit_when_told(path: str, schema: str, ready: Barrier) -> None:
    """Fit a scorecard with a schema that was drafted privately, together with other processes."""
    import privsolve as ps
    from small_tables import patients

    data = patients()
    model = ps.PrivateShortCard(0.1, schema=schema, max_features=1, budget=Ledger.open(path))
    ready.wait(60)
    model.fit(data.drop(columns="ill"), data["ill"])
