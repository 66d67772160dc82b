"""What a fit leaves on disk: files to publish, and a folder that stays with the curator."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from privsolve.data.files import read_text
from privsolve.releases import Release, Run

RELEASE = "release.json"
SCORECARD = "scorecard.html"
DIAGNOSTICS = "curator/diagnostics.json"
FILES = (RELEASE, SCORECARD, DIAGNOSTICS)


@dataclass(frozen=True)
class Folder:
    """An output folder that can take a release."""

    path: Path

    @classmethod
    def prepare(cls, path: str | os.PathLike[str], *, overwrite: bool = False) -> Folder:
        """Make the folder, or say what is wrong with it: before any budget is spent. An earlier release is kept for now."""
        folder = Path(path)
        for name in FILES:
            if (folder / name).exists() and not overwrite:
                raise ValueError(f"{folder / name} exists already: choose another --out, or pass --overwrite")
        try:
            (folder / DIAGNOSTICS).parent.mkdir(parents=True, exist_ok=True)
            for name in FILES:
                _try_to_write(folder / name)
        except OSError as error:
            raise ValueError(f"--out {folder} cannot be written to: {error.strerror}; choose another folder") from None
        return cls(folder)

    def write(self, run: Run, outside: Mapping[str, Mapping[str, int]]) -> list[Path]:
        """The release and its scorecard, and the curator's diagnostics apart from them; their paths in this order.

        `outside` are the counts of an `EncodedTable`, for the diagnostics.
        """
        values = run.diagnostics.values | {"outside_the_schema": {k: dict(v) for k, v in outside.items()}}
        texts = {
            DIAGNOSTICS: replace(run.diagnostics, values=values).to_json(),
            SCORECARD: run.release.scorecard().to_html(),
            RELEASE: run.release.to_json(),  # last: where it is, everything is
        }
        _write_together({self.path / name: text for name, text in texts.items()})
        return [self.path / name for name in FILES]


@contextmanager
def output_folder(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Folder]:
    """`Folder.prepare` for the release that the block makes; if it makes none, new folders are removed again."""
    innermost = Path(path) / Path(DIAGNOSTICS).parent
    made = [place for place in (innermost, *innermost.parents) if not place.exists()]
    try:
        yield Folder.prepare(path, overwrite=overwrite)
    finally:
        for place in made:
            with suppress(OSError):  # not empty: it holds the release
                place.rmdir()


def load_release(path: str | os.PathLike[str]) -> Release:
    """The release in a file, with the file named if it is something else."""
    try:
        return Release.from_json(read_text(path))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}; give the release.json of a fit") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def as_json(value: object) -> str:
    """For `--json`."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def _write_together(texts: Mapping[Path, str]) -> None:
    """Every file is whole or not there, and they appear in one go."""
    try:
        for path, text in texts.items():
            with _temporary(path).open("w", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        for path in texts:
            os.replace(_temporary(path), path)
    finally:
        for path in texts:
            _temporary(path).unlink(missing_ok=True)


def _try_to_write(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(0, f"{path.name} is a folder")
    temporary = _temporary(path)
    temporary.touch()
    temporary.unlink()


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")
