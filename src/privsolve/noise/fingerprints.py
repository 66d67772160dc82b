"""Keyed fingerprints of values: equal values have equal ones, whatever order records came in and whatever process asks.

Every value is written as a stream of bytes in which nothing can be mistaken for anything else (each part has its kind and its
length), and that stream is hashed with a secret key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from fractions import Fraction
from hashlib import blake2b
from typing import Any

import numpy as np

SIZE = 32
"""Bytes of a fingerprint."""

_Write = Callable[[bytes], object]


def fingerprint(key: bytes, value: Any) -> bytes:
    """The keyed fingerprint of plain values, arrays, frozen values and whatever is made of them."""
    found = blake2b(key=key, digest_size=SIZE)
    _write(found.update, value)
    return found.digest()


def _write(write: _Write, value: Any) -> None:
    if value is None or isinstance(value, bool | int | float | str | bytes | Fraction):
        _piece(write, "plain", _plain(value))
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
    elif callable(value) and not is_dataclass(value):
        raise TypeError(
            "a sealed run must know its question again, and nobody can tell whether a function is still the same: state the "
            "losses as a table (DiscreteProblem), or run it without a sealed file"
        )
    elif is_dataclass(value):
        _piece(write, "value", _full_name(type(value)))
        _many(write, "fields", [(one.name, getattr(value, one.name)) for one in fields(value)])
    else:
        raise TypeError(
            f"a sealed run must know its question again, and {type(value).__name__} has no fingerprint: use plain values, "
            "arrays or frozen dataclasses"
        )


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
