"""How a command makes its release: sealed, paid for once, written, and knowing at every moment what an interrupt has to say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from privsolve.cli.common import errors, warn
from privsolve.cli.options import Releasing, Running
from privsolve.learn.progress import ShowProgress, progress_words
from privsolve.safety.sealed import SealedRun
from privsolve.safety.signals import Stop

Answer = TypeVar("Answer")

PAID = "the release was paid for already, and the ledger keeps the payment: see `privsolve budget history`"


@contextmanager
def sealed_run(path: Path, stop: Stop, running: Running) -> Iterator[SealedRun]:
    """The sealed run in that file: the one to resume, or a new one, replacing a file whose run was never paid for."""
    note, resume = running.note if isinstance(running, Releasing) else None, running.resume
    with SealedRun(path, budget=running.budget, random_state=running.seed, note=note or "", stop=stop) as sealed:
        if resume and not sealed.committed:
            raise ValueError(
                f"--resume: there is no {path}, so nothing was interrupted after it was paid for: leave it out"
            )
        if not resume and sealed.committed:
            raise ValueError(
                f"{path} holds a run that was paid for and then interrupted: pass --resume, with the same command, to finish "
                "it; or delete the file to give it up (what it has paid stays paid)"
            )
        yield sealed


def release_from(
    sealed: SealedRun,
    stop: Stop,
    mechanism: Callable[..., Answer],
    write: Callable[[Answer], Path | None],
    *,
    resumable: bool = True,
    **options: Any,
) -> Answer:
    """Check, seal, pay, draw, keep, write and settle one release.

    Args:
        sealed: from `sealed_run`; its ledger pays for everything that the mechanism asks for, a draft included.
        stop: from `stoppable`.
        mechanism: a call of privsolve, `partial(recipe.run, table)`, whose arguments are the question.
        write: writes the answer to its place, which it returns.
        resumable: whether the same command can be given with `--resume`.
        options: for the mechanism, such as `progress`.

    Returns:
        The answer. Signals are held back from the moment it is drawn until the ledger says that it is released.
    """
    try:
        stop.hold(may_die=True)  # the compiler does not survive exceptions, and nothing is paid yet
        answer: Answer = sealed.run(mechanism, **options)
        place = write(answer)
    except BaseException:
        stop.hold()
        _say_what_is_left(sealed, resumable)
        raise
    stop.outcome = "the release is complete" if place is None else f"the release is complete, see {place}"
    sealed.settle("released")
    stop.let_go()
    return answer


def _say_what_is_left(sealed: SealedRun, resumable: bool) -> None:
    """A run that failed keeps its payment, and its sealed file if it can be resumed."""
    if not sealed.committed:
        return
    words = [f"{PAID}."] if sealed.paid_by_ledger else []
    if resumable:
        words.append(
            f"{sealed.path} keeps its noise, as secret as the data: the same command with --resume goes on from there and "
            "pays nothing more"
        )
    else:
        sealed.settle("failed")
    if words:
        warn(" ".join(words).rstrip("."))


@contextmanager
def progress_line(hint: str = "") -> Iterator[Callable[[Any], None]]:
    """A callback for samplers: one line that keeps up with the work on a terminal, a line now and then in a log file."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as line:
        task = line.add_task(f"preparing ({hint}the first run compiles)", total=None)

        def update(state: object) -> None:
            line.update(task, description=progress_words(state))

        yield update if errors.is_terminal else ShowProgress(errors.file)
