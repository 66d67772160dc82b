"""Results on disk, one line a run: an interrupted experiment goes on where it was."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One run of one method."""

    method: str
    epsilon: float
    run: int
    train_accuracy: float
    test_accuracy: float
    seconds: float

    @property
    def task(self) -> tuple[str, float, int]:
        """Which run it was."""
        return self.method, self.epsilon, self.run


COLUMNS = tuple(f.name for f in fields(Row))
HEADER = ",".join(COLUMNS) + "\n"


def read_rows(path: Path) -> list[Row]:
    """The runs in the file; a last line cut short by a crash is left out."""
    if not path.exists():
        return []
    text = path.read_bytes().decode("utf-8", errors="replace")
    whole = text[: text.rfind("\n") + 1]
    if not whole:
        return []
    if not whole.startswith(HEADER):
        raise ValueError(f"{path} is not a results file of this experiment: choose another folder")
    try:
        return [_row(line) for line in csv.reader(io.StringIO(whole[len(HEADER) :]))]
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} has a line that is not a result ({error}): choose another folder") from None


def _row(line: list[str]) -> Row:
    method, epsilon, run, train, test, seconds = line
    return Row(method, float(epsilon), int(run), float(train), float(test), float(seconds))


class ResultsFile:
    """Appends rows, each on disk before the next run is counted as done."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = read_rows(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = HEADER + "".join(_line(row) for row in self.rows)
        if not path.exists() or path.read_text(encoding="utf-8", errors="replace") != text:
            replacement = path.with_suffix(".tmp")  # drops a line cut short, in one step
            replacement.write_text(text, encoding="utf-8")
            os.replace(replacement, path)

    def append(self, row: Row) -> None:
        """Write one row and wait until it is on disk."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line(row))
            file.flush()
            os.fsync(file.fileno())
        self.rows.append(row)


def _line(row: Row) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow([repr(v) if isinstance(v, float) else v for v in _values(row)])
    return buffer.getvalue()


def _values(row: Row) -> Iterable[object]:
    return (getattr(row, name) for name in COLUMNS)
