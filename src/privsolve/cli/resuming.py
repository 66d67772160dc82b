"""`--resume`: a run that was interrupted goes on with the noise that it has drawn and paid for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from privsolve.noise.sealed import SealedRun, was_committed
from privsolve.privacy.ledger import Ledger


@contextmanager
def sealed_run(path: Path, resume: bool, ledger: Ledger | None, seed: int | None) -> Iterator[SealedRun]:
    """The sealed run in that file: the one to resume, or a new one in place of one that had not come to pay."""
    if resume and not path.exists():
        raise ValueError(
            f"--resume: there is no {path}, so nothing was interrupted after it was paid for: leave it out"
        )
    if not resume and path.exists() and was_committed(path):
        raise ValueError(
            f"{path} holds a run that was paid for and then interrupted: pass --resume, with the same command, to finish it; "
            "or delete the file to give it up (what it has paid stays paid)"
        )
    with SealedRun(path, budget=ledger, random_state=seed) as run:
        yield run
