"""Runs that can be killed and resumed: a secret key and the question are on the disk before anything is paid (theory, 18).

All randomness of the run is expanded from the key, so a resumed run draws exactly what the first would have drawn.
"""

from __future__ import annotations

import inspect
import json
import os
import platform
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from privsolve._version import __version__
from privsolve.data import Schema
from privsolve.data.private import PrivateDraft
from privsolve.errors import LedgerError, OracleNotCertified, PrivsolveError, SealedRunError, SolveInterrupted
from privsolve.evaluation import Evaluation
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy.accounting import Account, Known, charged
from privsolve.privacy.guarantee import Guarantee, Paid
from privsolve.privacy.high_water import read_start, sync_directory
from privsolve.privacy.ledger import Ledger
from privsolve.releases import Diagnostics, Release, Run
from privsolve.safety.fingerprint import SIZE, fingerprint
from privsolve.safety.folder import LockedError, locked
from privsolve.safety.signals import Stop

MAGIC = b"privsolve-sealed-2 "
LARGEST = 1 << 28


class SealedRun:
    """One release that can be resumed if its process is interrupted or killed; run the same program again to resume it.

    Use it as a block around the release and around writing it down:

    ```python
    with ps.SealedRun("run.sealed", budget=ledger) as sealed:
        run = sealed.run(ps.exponential, problem, 0.1)
        Path("release.json").write_text(run.release.to_json())
    ```

    An estimator takes it as its budget: `PrivateScorecard(0.5, schema=schema, budget=sealed).fit(X, y)`. The block pays once,
    however often it is resumed. When it ends without an error, the file is deleted; after an error or a kill it stays if the
    run was paid for.

    **The file is as secret as the data**: with it, whoever sees the release can work out much of what noise was to hide.

    Args:
        path: of the sealed file, made where there is none; keep it with the data.
        budget: an `Accountant` or a `Ledger` that pays for the release. A ledger knows a run that it has paid for; an
            accountant in memory forgets with its process, and pays again in the next.
        random_state: None for the operating system's entropy; a seed makes the run repeatable, for testing only.
        note: words for the history of the ledger.
        stop: holds signals back while a command pays; for the command line.

    Guarantee:
        That of the mechanism, against anybody who cannot tell SHAKE-256 from random (theory, section 18): interruptions cannot
        change which release comes out, and one payment gives one release.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        budget: Account | None = None,
        random_state: int | None = None,
        note: str = "",
        stop: Stop | None = None,
    ) -> None:
        if budget is not None and not callable(getattr(budget, "spending", None)):
            raise TypeError(f"budget must be an Accountant or a Ledger, got {type(budget).__name__}")
        if random_state is not None:
            as_randomness(random_state)
        self.path = Path(path).absolute()
        self._budget, self._seed, self._note, self._stop = budget, random_state, note, stop or Stop()
        self._ledger = budget if isinstance(budget, Ledger) else None
        self._stack = ExitStack()
        self._file: _File | None = None
        self._sealed: dict[str, Any] | None = None
        self._spent = self._answered = False

    def __enter__(self) -> Self:
        self._file = self._stack.enter_context(_opened(self.path))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self._answered:
                self.settle("released")
            elif self._file is not None and not self._file.facts:
                self.path.unlink(missing_ok=True)
        finally:
            self._file = None
            self._stack.close()

    @property
    def _open(self) -> _File:
        if self._file is None:
            raise PrivsolveError("a sealed run is open inside its block only: use `with SealedRun(path) as sealed`")
        return self._file

    @property
    def committed(self) -> bool:
        """Whether the payment was made, or was about to be: from there on the file is kept until the release is written."""
        return self._file is not None and bool(self._file.facts)

    @property
    def paid_by_ledger(self) -> bool:
        """Whether a ledger has paid for the run."""
        return bool(self._ledger) and self._file is not None and "paid" in self._file.facts

    def run(self, mechanism: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        """The answer of `mechanism(*args, **options)`, which is drawn and paid for once; resumed, the same answer.

        Args:
            mechanism: a function of privsolve that returns a `Run`, a `PrivateDraft` or an `Evaluation`.
            args, options: its arguments, but for `random_state` and `budget`, which are those of the sealed run.

        Raises:
            TypeError: if the question cannot be known again, such as a loss that is a function. Nothing is paid.
            SealedRunError: if the file was sealed for another question.
        """
        file, call = self._open, partial(mechanism, *args, **options)
        _check_sealable(call)
        if self._sealed is not None:
            raise PrivsolveError("a sealed run holds one release, and this is the second: use another file for it")
        key = file.facts.get("key", secrets.token_hex(SIZE))
        self._sealed = {
            "key": key,
            "question": fingerprint(bytes.fromhex(key), [_versions(), self._seed, call]).hex(),
            "ledger": self._ledger is not None,
        }
        if file.facts and not file.facts.items() >= self._sealed.items():
            raise SealedRunError(
                f"{self.path} was sealed for another run: give the same data, settings, limits, seed, versions and ledger as "
                "before; or delete the file to give that run up (what it has paid stays paid)"
            )
        if "paid" in file.facts and self._ledger and self._ledger.number_of(file.facts["name"]) != file.facts["paid"]:
            raise SealedRunError(f"{self.path} was not paid from {self._ledger.path}: give the ledger that has paid")
        if "answer" in file.facts and (self._ledger or self._budget is None):
            return self._kept(None)
        rng = as_randomness(self._seed) if self._seed is not None else Randomness.expanded(bytes.fromhex(key))
        try:
            return self._kept(call(random_state=rng, budget=self))
        except (OracleNotCertified, SolveInterrupted) as error:
            if (retry := error.retry) is not None:
                error.retry = lambda oracle: self._kept(retry(oracle))
            raise

    @contextmanager
    def spending(
        self, guarantee: Guarantee, note: str = "", *, names: Sequence[str] = (), draft: Paid | None = None
    ) -> Iterator[None]:
        """Seal the question, pay unless that was done before, then run the block, which draws; for mechanisms in `run`."""
        if self._sealed is None or self._spent:
            raise PrivsolveError(
                "a sealed run runs one mechanism, which pays once: sealed.run(ps.exponential, problem, 0.1)"
            )
        file = self._open
        self._stop.let_go()  # a signal before now: nothing is paid
        self._stop.hold()
        if not file.facts:
            file.add(**self._sealed, name=f"run {secrets.token_hex(8)}")
        known: Known = {"run": file.facts["name"], "names": names, "draft": draft}
        with ExitStack() as stack:
            try:
                if self._ledger is None:
                    stack.enter_context(charged(self._budget, guarantee, self._note or note, **known))
                    paid = None
                else:
                    paid = self._ledger.spend(guarantee, self._note or note, **known)
            except Exception:
                self._withdraw(file)
                raise
            if "paid" not in file.facts:
                file.add(paid=paid)
            self._spent = True
            self._stop.let_go()
            yield

    def _withdraw(self, file: _File) -> None:
        """Begin anew if it is certain that nothing was paid."""
        with suppress(LedgerError):  # a ledger that does not answer may have paid
            if "paid" not in file.facts and not (self._ledger and self._ledger.number_of(file.facts["name"])):
                file.clear()
                self._sealed = None

    def _kept(self, answer: Any) -> Any:
        """The answer, once it is on the disk and the payment is bound to it."""
        if not self.committed:
            raise PrivsolveError("this mechanism did not pay for its answer, so it cannot be sealed: run it without")
        self._stop.check()  # an interrupt that was swallowed: the run can be resumed
        self._stop.hold()
        file = self._open
        if "answer" not in file.facts:
            content = json.dumps(ANSWERS[type(answer).__name__].kept(answer), default=_plain)
            file.add(answer={"kind": type(answer).__name__, "content": json.loads(content)})
        kept = file.facts["answer"]
        kind = ANSWERS[kept["kind"]]
        answer = kind.read(kept["content"])
        if self._ledger:  # to what is published; the curator's diagnostics are not part of it
            self._ledger.bind(file.facts["paid"], sha256(kind.published(answer).encode()).hexdigest())
        self._answered = True
        return answer

    def settle(self, outcome: str) -> None:
        """Note that the answer is `"released"`, or that the run has `"failed"` for good, and delete the file.

        What was paid stays paid. Does nothing the second time.
        """
        if self._file is not None:
            if self._ledger and "paid" in self._file.facts:
                self._ledger.try_to_mark(self._file.facts["paid"], outcome)
            self.path.unlink(missing_ok=True)
        self._file = None


class _File:
    """The file of a sealed run: one line per step, each with a digest of all before it, and on the disk when it is added.

    A last line that was cut short by the end of a process counts as not written.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.facts = path, dict[str, Any]()
        self._digest, self._size = "", 0
        content = read_start(path, LARGEST)
        if not content.startswith(MAGIC[: len(content)]):
            raise SealedRunError(f"{path} is not a sealed run: choose another file")
        if not all(map(self._read, content.split(b"\n")[:-1])):
            raise SealedRunError(f"{path} is damaged, and cannot be resumed: put back a copy, or delete it")

    def _read(self, line: bytes) -> bool:
        """Take a line over if it is whole."""
        magic, digest, text = line[: len(MAGIC)], line[len(MAGIC) : len(MAGIC) + 64], line[len(MAGIC) + 65 :]
        if magic != MAGIC or digest.decode(errors="replace") != self._following(text):
            return False
        self.facts |= json.loads(text)
        self._digest, self._size = digest.decode(), self._size + len(line) + 1
        return True

    def _following(self, text: bytes) -> str:
        return sha256(self._digest.encode() + text).hexdigest()

    def add(self, **facts: Any) -> None:
        """Write one more line, and wait until it is on the disk."""
        text = json.dumps(facts).encode()
        digest = self._following(text)
        try:
            with self.path.open("r+b") as file:
                file.truncate(self._size)
                file.seek(self._size)
                size = file.write(MAGIC + digest.encode() + b" " + text + b"\n")
                file.flush()
                os.fsync(file.fileno())
            sync_directory(self.path.parent)
        except OSError as error:
            raise SealedRunError(
                f"cannot write to {self.path}: {error.strerror}; make room on the disk, then resume the run"
            ) from None
        self.facts |= facts
        self._digest, self._size = digest, self._size + size

    def clear(self) -> None:
        """Begin anew."""
        os.truncate(self.path, 0)
        self.facts, self._digest, self._size = {}, "", 0


@contextmanager
def _opened(path: Path) -> Iterator[_File]:
    """The file, locked and made where there is none, for its owner only."""
    with ExitStack() as stack:
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o600))
            stack.enter_context(locked(path))
            file = _File(path)
        except LockedError:
            raise SealedRunError(f"{path} is in use by another process: wait for it to end") from None
        except OSError as error:
            raise SealedRunError(
                f"cannot use {path}: {error.strerror}; choose another file for the sealed run"
            ) from None
        yield file


def is_begun(path: Path) -> bool:
    """Whether the file holds a run that was paid for, or was about to be."""
    if not path.exists():
        return False
    with _opened(path) as file:
        return bool(file.facts)


def run_paid(mechanism: Callable[..., Any], *args: Any, random_state: Any, budget: Any, **options: Any) -> Any:
    """Run a mechanism, sealed if its budget is a `SealedRun`; for estimators."""
    if isinstance(budget, SealedRun):
        if random_state is not None:
            raise ValueError("random_state is that of the sealed run: pass it to SealedRun, and leave it out here")
        return budget.run(mechanism, *args, **options)
    return mechanism(*args, random_state=random_state, budget=budget, **options)


def _check_sealable(call: partial[Any]) -> None:
    """Raise unless it is a mechanism whose answer can be kept."""
    returned = inspect.signature(call.func).return_annotation
    if getattr(returned, "__name__", returned) not in ANSWERS:
        raise TypeError(
            f"{getattr(call.func, '__qualname__', call.func)} cannot be sealed: use a mechanism of privsolve that returns one "
            f"of {', '.join(ANSWERS)}, or run it without a sealed file"
        )
    for name in {"random_state", "budget"} & call.keywords.keys():
        raise ValueError(f"{name} is that of the sealed run: pass it to SealedRun, and leave it out here")


def _versions() -> dict[str, str]:
    """What the same words could come out differently with."""
    libraries = {name: version(name) for name in ("numpy", "scipy", "numba")}
    return libraries | {"privsolve": __version__, "python": platform.python_version(), "machine": platform.machine()}


class _Kind(NamedTuple):
    """How one kind of answer is kept and read again, and the text of what is published of it."""

    kept: Callable[[Any], dict[str, Any]]
    read: Callable[[dict[str, Any]], Any]
    published: Callable[[Any], str]


ANSWERS = {
    "Run": _Kind(
        lambda run: {"release": run.release.to_json(), "diagnostics": vars(run.diagnostics)},
        lambda kept: Run(Release.from_json(kept["release"]), Diagnostics(**kept["diagnostics"])),
        lambda run: run.release.to_json(),
    ),
    "PrivateDraft": _Kind(
        lambda draft: {"schema": draft.schema.to_dict(), "notes": dict(draft.notes), "left_out": dict(draft.left_out)},
        lambda kept: PrivateDraft(
            Schema.from_dict(kept["schema"]), {n: tuple(words) for n, words in kept["notes"].items()}, kept["left_out"]
        ),
        PrivateDraft.to_toml,
    ),
    "Evaluation": _Kind(Evaluation.to_dict, Evaluation.from_dict, lambda found: json.dumps(found.to_dict())),
}
"""What a mechanism that can be sealed returns, by the name of the class."""


def _plain(value: Any) -> Any:
    """Numbers and arrays of NumPy among the diagnostics."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)
