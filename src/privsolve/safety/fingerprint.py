"""Keyed fingerprints of values: equal values have equal ones, whatever order records came in and whatever process asks.

Every value is written as a stream of bytes in which nothing can be mistaken for anything else (each part has its kind and its
length), and that stream is hashed with a secret key. A call of a mechanism is the mechanism's name and all of its arguments.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import partial
from hashlib import blake2b
from pathlib import PurePath
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import pandas as pd

SIZE = 32
"""Bytes of a fingerprint."""

NOT_ASKED = frozenset({"random_state", "budget", "progress"})
"""Arguments of a mechanism that are no part of its question."""

_Write = Callable[[bytes], object]


def fingerprint(key: bytes, value: Any) -> bytes:
    """The keyed fingerprint of plain values, arrays, frames, frozen values, calls, and whatever is made of them.

    Raises:
        TypeError: for a value that cannot be known again, such as a function of the user's own.
    """
    found = blake2b(key=key, digest_size=SIZE)
    _write(found.update, value)
    return found.digest()


def _write(write: _Write, value: Any) -> None:
    if value is None or isinstance(value, bool | int | float | str | bytes | Fraction):
        _piece(write, "plain", _plain(value))
    elif isinstance(value, PurePath):
        _piece(write, "path", os.fsencode(value))
    elif isinstance(value, np.generic):
        _write(write, value.item())
    elif isinstance(value, np.ndarray):
        _array(write, value)
    elif isinstance(value, Mapping):
        _many(write, "mapping", sorted(value.items(), key=lambda item: str(item[0])))
    elif isinstance(value, AbstractSet):
        _many(write, "set", sorted(value, key=repr))
    elif isinstance(value, Sequence):
        _many(write, "sequence", value)
    elif isinstance(value, type):
        _piece(write, "name", _full_name(value))
    elif isinstance(value, partial | MethodType | FunctionType):
        _call(write, value)
    elif is_dataclass(value):
        _piece(write, "value", _full_name(type(value)))
        _many(write, "fields", [(one.name, getattr(value, one.name)) for one in fields(value)])
    elif isinstance(value, pd.DataFrame) or hasattr(value, "to_pandas"):
        _frame(write, value if isinstance(value, pd.DataFrame) else value.to_pandas())
    elif type(value).__module__.startswith("privsolve."):
        _piece(write, "object", _full_name(type(value)))
        _write(write, vars(value))
    else:
        raise TypeError(
            f"a sealed run must know its question again, and {type(value).__name__} has no fingerprint: use plain values, "
            "arrays, frames or frozen dataclasses, or run it without a sealed file"
        )


def _call(write: _Write, value: Any) -> None:
    """A function of this package by its name, a method with its object, a partial call with its arguments by name."""
    if isinstance(value, partial):
        asked = {name: given for name, given in value.keywords.items() if name not in NOT_ASKED}
        bound = inspect.signature(value.func).bind_partial(*value.args, **asked)
        bound.apply_defaults()
        _call(write, value.func)
        _write(write, {name: given for name, given in bound.arguments.items() if name not in NOT_ASKED})
        return
    if not value.__module__.startswith("privsolve.") or "<" in value.__qualname__:
        raise TypeError(
            "a sealed run must know its question again, and nobody can tell whether a function is still the same: state the "
            "losses as a table (DiscreteProblem), or run it without a sealed file"
        )
    _piece(write, "function", f"{value.__module__}.{value.__qualname__}".encode())
    if isinstance(value, MethodType):
        _write(write, value.__self__)


def _frame(write: _Write, frame: pd.DataFrame) -> None:
    _write(write, [(str(name), str(kind)) for name, kind in frame.dtypes.items()])
    _write(write, pd.util.hash_pandas_object(frame, index=False, categorize=False).to_numpy())


def _full_name(value: type) -> bytes:
    return f"{value.__module__}.{value.__qualname__}".encode()


def _plain(value: Any) -> bytes:
    """A number by its value: 1 and 1.0 are the same setting, and so are a word and the member of an enumeration."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return f"text {value!s}".encode("utf-8", "surrogatepass")
    if value is None or isinstance(value, bool):
        return repr(value).encode()
    if isinstance(value, float) and not np.isfinite(value):
        return repr(value).encode()
    return f"number {Fraction(value)}".encode()


def _array(write: _Write, value: np.ndarray[Any, Any]) -> None:
    if value.dtype.hasobject:
        _piece(write, "kind", f"objects {value.shape}".encode())
        _many(write, "objects", value.ravel().tolist())
        return
    _piece(write, "kind", f"{value.dtype.str} {value.shape}".encode())
    _piece(write, "array", np.ascontiguousarray(value).tobytes())


def _many(write: _Write, kind: str, values: Sequence[Any]) -> None:
    _piece(write, kind, str(len(values)).encode())
    for value in values:
        _write(write, value)


def _piece(write: _Write, kind: str, content: bytes) -> None:
    write(f"{kind} {len(content)} ".encode())
    write(content)
