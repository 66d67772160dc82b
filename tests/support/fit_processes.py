"""What the processes of the signal tests do; kept apart so that starting one imports little."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import ibis.backends.duckdb  # noqa: F401  (it takes long, and the commands import it when they need it)

from privsolve.cli import fit, paying, run
from privsolve.learn import publishing
from privsolve.learn.fitting import Recipe
from privsolve.mechanisms.exponential import ExponentialSampler
from privsolve.privacy.ledger import Ledger
from privsolve.releases import Release
from small_tables import INDICATORS, patients

MOMENTS: dict[str, tuple[object, str, bool]] = {
    "reading": (fit, "open_table", True),
    "preparing": (Recipe, "run", True),
    "before paying": (Ledger, "spend", True),
    "paid": (Ledger, "spend", False),
    "drawing": (ExponentialSampler, "draw", True),
    "drawn": (ExponentialSampler, "draw", False),
    "making the release": (Release, "__init__", False),
    "before writing": (publishing.Folder, "write", True),
    "writing": (publishing, "_fill", True),
    "written": (publishing.Folder, "write", False),
    "before marking": (Ledger, "mark", True),
    "marked": (Ledger, "mark", False),
    "showing": (fit, "_show", True),
}
"""Where the signal is sent: a function, and whether before or after it runs."""

LEAVING = "leaving"
"""After the last word: signals have their old meaning again."""


def prepared(folder: Path) -> Path:
    """The folder with data, schema and ledger in it."""
    patients().to_csv(folder / "data.csv", index=False)
    INDICATORS.save(folder / "s.toml")
    Ledger.create(folder / "ledger", 1.0)
    return folder


def run_fit(folder: str, arguments: list[str], moment: str | None, number: int) -> None:
    """The command line in `folder`, with its output in files there; at `moment` it gets a real signal."""
    os.chdir(folder)
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    if moment == LEAVING:
        fit.stoppable = _then_signal(fit.stoppable, number)
    elif moment is not None:
        owner, name, before = MOMENTS[moment]
        setattr(owner, name, _with_signal(getattr(owner, name), number, before))
    original = paying.Payment.spending

    def spending(*args: Any) -> Any:
        Path("paying").touch()
        return original(*args)

    paying.Payment.spending = spending  # type: ignore[method-assign]
    run(arguments)


def _with_signal(function: Callable[..., Any], number: int, before: bool) -> Callable[..., Any]:
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
