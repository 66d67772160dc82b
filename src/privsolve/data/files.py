"""Which files a name stands for, and small files read whole: only regular files, and each of them once."""

from __future__ import annotations

import glob
import gzip
import hashlib
import os
import stat
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

LARGEST_TEXT = 64 * 2**20
"""Schemas and releases are smaller than this by far."""


def files_of(source: str) -> list[str]:
    """The regular files of a path or a glob, as absolute paths in order; a file that would be read twice is refused."""
    found = sorted(glob.glob(source)) if glob.has_magic(source) and not os.path.lexists(source) else [source]
    if not found or not all(map(os.path.exists, found)):
        raise FileNotFoundError(f"{source}: no such file")
    paths = [os.path.abspath(path) for path in found]
    for path in paths:
        if not os.path.isfile(path):
            raise ValueError(f"{path}: is not a regular file: copy its content to one")
    _check_different(paths)
    return paths


def _check_different(paths: Sequence[str]) -> None:
    """Raise if two names are links to one file, whose records would count twice."""
    seen: dict[tuple[int, int], str] = {}
    for path in paths:
        found = os.stat(path)
        first = seen.setdefault((found.st_dev, found.st_ino), path)
        if first != path:
            raise ValueError(f"{path}: is the same file as {first}, so its records would count twice: leave one out")


def literal(path: str) -> str:
    """The path as a pattern of DuckDB that stands for itself, whatever characters it has."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in path)


def content_digest(source: str) -> str:
    """A digest of the content of the files that a source stands for, by which a run knows its data again."""
    found = hashlib.sha256()
    for path in files_of(source.partition("::")[0]):
        with open(path, "rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


@contextmanager
def bytes_of(path: str) -> Iterator[IO[bytes]]:
    """The bytes of a file, also of a compressed one; a damaged one is refused."""
    opener: Any = gzip.open if path.lower().endswith(".gz") else open
    with opener(path, "rb") as file:
        try:
            yield file
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path}: is damaged: {error}") from None


def read_text(path: str | os.PathLike[str], largest: int = LARGEST_TEXT) -> str:
    """The text of a regular file in UTF-8; a pipe, a device or a file of more than `largest` bytes is refused unread."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe without a writer would wait here
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("is not a regular file: copy its content to one")
        content = file.read(largest + 1)
    if len(content) > largest:
        raise ValueError(f"has more than {largest // 2**20} MB, too many for a file of its kind")
    return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
