"""What the processes of the signal tests do; kept apart so that starting one imports little."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import ibis.backends.duckdb  # noqa: F401  (it takes long, and the commands import it when they need it)

from privsolve.cli import fit, predict, run
from privsolve.data.private import draft
from privsolve.learn.short_card_recipe import ShortCardRecipe
from privsolve.mechanisms.exponential import ExponentialSampler
from privsolve.privacy.ledger import Ledger
from privsolve.releases import Release
from privsolve.safety import folder as folders
from privsolve.safety import sealed
from small_tables import INDICATORS, patients

MOMENTS: dict[str, tuple[object, str, bool]] = {
    "reading": (fit, "open_table", True),
    "preparing": (ShortCardRecipe, "run", True),
    "before paying": (Ledger, "spend", True),
    "paid": (Ledger, "spend", False),
    "drawing": (ExponentialSampler, "draw", True),
    "drawn": (ExponentialSampler, "draw", False),
    "making the release": (Release, "__init__", False),
    "before writing": (folders.Folder, "write", True),
    "writing": (folders, "_fill", True),
    "written": (folders.Folder, "write", False),
    "before marking": (Ledger, "mark", True),
    "marked": (Ledger, "mark", False),
    "showing": (fit, "_show", True),
}
"""Where the signal is sent: a function, and whether before or after it runs."""

OTHERS: dict[str, dict[str, tuple[object, str, bool]]] = {
    "draft": {
        "paid": (Ledger, "spend", False),
        "drawing": (draft, "_drafted", True),
        "drawn": (draft, "_drafted", False),
        "kept": (Ledger, "bind", False),
        "writing": (folders, "_fill", True),
        "filled": (folders, "_fill", False),
        "written": (folders, "sync_directory", False),
        "before marking": (Ledger, "mark", True),
    },
    "predict": {"scoring": (predict, "unread_values", True)},
    "evaluate": {
        "paid": (Ledger, "spend", False),
        "kept": (Ledger, "bind", False),
        "written": (folders.Folder, "write", False),
    },
}
"""The same for other commands."""

SWALLOWED = "swallowed"
"""In a destructor while the data is read, where Python swallows the interrupt; then perhaps more signals."""

LEAVING = "leaving"
"""After the last word: signals have their old meaning again."""


def prepared(folder: Path) -> Path:
    """The folder with data, schema and ledger in it."""
    patients().to_csv(folder / "data.csv", index=False)
    INDICATORS.save(folder / "s.toml")
    Ledger.create(folder / "ledger", 1.0, 1e-5)
    return folder


def run_fit(folder: str, arguments: list[str], moment: str | None, number: int) -> None:
    """The command line in `folder`, with its output in files there; at `moment` it gets a real signal."""
    os.chdir(folder)
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    if moment is not None and moment.startswith(SWALLOWED):
        fit.open_table = _after_a_destructor(fit.open_table, number, moment.count("+"))
    elif moment == LEAVING:
        fit.stoppable = _then_signal(fit.stoppable, number)
    elif moment is not None:
        command, _, of_command = moment.rpartition(": ")
        owner, name, before = (OTHERS[command] if command else MOMENTS)[of_command]
        setattr(owner, name, _with_signal(getattr(owner, name), number, before))
    original = sealed.SealedRun.spending

    def spending(*args: Any, **options: Any) -> Any:
        Path("paying").touch()
        return original(*args, **options)

    sealed.SealedRun.spending = spending  # type: ignore[method-assign]
    run(arguments)


class _Destroyed:
    """Gets a signal while it is destroyed."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.kill(os.getpid(), self.number)
        sum(range(1000))  # the handler runs


def _after_a_destructor(function: Callable[..., Any], number: int, more: int) -> Callable[..., Any]:
    def wrapped(*args: Any, **options: Any) -> Any:
        destroyed = _Destroyed(number)
        del destroyed
        Path("swallowed").touch()
        for _ in range(more):
            os.kill(os.getpid(), number)
        return function(*args, **options)

    return wrapped


def _with_signal(function: Callable[..., Any], number: int, before: bool) -> Callable[..., Any]:
    @wraps(function)
    def wrapped(*args: Any, **options: Any) -> Any:
        if before:
            os.kill(os.getpid(), number)
        result = function(*args, **options)
        if not before:
            os.kill(os.getpid(), number)
        return result

    return wrapped


def _then_signal(block: Callable[[], AbstractContextManager[Any]], number: int) -> Callable[[], Any]:
    @contextmanager
    def wrapped() -> Iterator[Any]:
        with block() as stop:
            yield stop
        os.kill(os.getpid(), number)

    return wrapped


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
