"""Compiling ahead: a function is made ready for arguments like the given ones, without running it.

The first use of a compiled function can take half a minute, and an interrupt meanwhile can crash the interpreter. So whatever
a release needs is compiled before it is paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from privsolve.compiled import keep

_DONE: set[Hashable] = set()


def compile_once(key: Hashable, compile_all: Callable[[], None]) -> None:
    """Run `compile_all` the first time it is asked for under this key, which decides the types of all that it compiles.

    Finding that everything is ready already takes milliseconds, as long as a small draw.
    """
    if key not in _DONE:
        compile_all()
        keep()
        _DONE.add(key)


def compile_for(function: Any, *arguments: Any) -> None:
    """Compile `function`, or load it from the cache, for the types of these arguments. Does nothing the second time."""
    if hasattr(function, "compile"):  # without NUMBA_DISABLE_JIT
        import numba

        function.compile(tuple(numba.typeof(argument) for argument in arguments))
