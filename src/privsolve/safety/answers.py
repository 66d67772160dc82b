"""The answers of sealed runs as plain values, to be kept in a file and read again."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from privsolve.data import Schema
from privsolve.data.private import PrivateDraft
from privsolve.evaluation import Evaluation
from privsolve.releases import Diagnostics, Release, Run


class _Kind(NamedTuple):
    """How one kind of answer is kept and read again, and the text of what is published of it."""

    kept: Callable[[Any], dict[str, Any]]
    read: Callable[[dict[str, Any]], Any]
    published: Callable[[Any], str]


def _kept_run(run: Run) -> dict[str, Any]:
    return {"release": run.release.to_json(), "diagnostics": vars(run.diagnostics)}


def _read_run(kept: dict[str, Any]) -> Run:
    return Run(Release.from_json(kept["release"]), Diagnostics(**kept["diagnostics"]))


def _kept_draft(draft: PrivateDraft) -> dict[str, Any]:
    return {"schema": draft.schema.to_dict(), "notes": dict(draft.notes), "left_out": dict(draft.left_out)}


def _read_draft(kept: dict[str, Any]) -> PrivateDraft:
    notes = {name: tuple(words) for name, words in kept["notes"].items()}
    return PrivateDraft(Schema.from_dict(kept["schema"]), notes, kept["left_out"])


ANSWERS = {
    "Run": _Kind(_kept_run, _read_run, lambda run: run.release.to_json()),
    "PrivateDraft": _Kind(_kept_draft, _read_draft, PrivateDraft.to_toml),
    "Evaluation": _Kind(Evaluation.to_dict, Evaluation.from_dict, lambda found: json.dumps(found.to_dict())),
}
"""What a mechanism that can be sealed returns, by the name of the class."""


def kept_answer(answer: Any) -> dict[str, Any]:
    """An answer as plain values, with its kind."""
    kind = type(answer).__name__
    content = json.dumps(ANSWERS[kind].kept(answer), default=_plain)
    return {"kind": kind, "content": json.loads(content)}


def read_answer(kept: dict[str, Any]) -> Any:
    """The inverse of `kept_answer`."""
    return ANSWERS[kept["kind"]].read(kept["content"])


def digest_of(answer: Any) -> str:
    """A digest of what is published of an answer. The curator's diagnostics are not part of it."""
    return sha256(ANSWERS[type(answer).__name__].published(answer).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Numbers and arrays of NumPy among the diagnostics."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)
