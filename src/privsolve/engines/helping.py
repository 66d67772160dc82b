"""A second process that compiles ahead, for the first use in a fresh installation.

numba compiles one function at a time, whatever the number of cores, and the first card waits for all of them. Here another
process makes the *parts* that the sampler will link (`privsolve.linking`) while this one compiles and runs what comes
before it. Both keep what they have made in the same store, and each looks there before it compiles: nothing has to be agreed
on, and nothing is lost if the helper is killed or cannot be started. It is given names and types of functions, and no data.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from numba import typeof
from numba.core.serialize import dumps

from privsolve.compiled import is_missing

Call = tuple[Any, ...]
"""A compiled function, and arguments of the types that it is to be compiled for."""

_STARTED: list[subprocess.Popen[bytes]] = []


def helped_with(parts: Sequence[Call]) -> None:
    """Let another process compile these parts meanwhile, where none of them is kept and there is a core for it.

    The parts should come in the reverse order of their use here, so that the two processes meet in the middle.
    """
    if _STARTED or _cores() < 2 or not _is_interpreter() or not all(is_missing(function) for function, *_ in parts):
        return
    wanted = [(f.py_func.__module__, f.py_func.__name__, tuple(map(typeof, arguments))) for f, *arguments in parts]
    package = str(Path(__file__).parents[2])
    with contextlib.suppress(OSError):
        helper = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import help_others; help_others()"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([package, *sys.path])},
        )  # fmt: skip
        _STARTED.append(helper)
        atexit.register(_end, helper)
        assert helper.stdin is not None
        helper.stdin.write(dumps(wanted))
        helper.stdin.close()


def help_others() -> None:
    """What the helper does: read which parts are wanted, and compile one after the other."""
    for module, name, types in pickle.load(sys.stdin.buffer):
        getattr(import_module(module), name).part.compile(types)


def _end(helper: subprocess.Popen[bytes]) -> None:
    helper.kill()
    helper.wait()


def _is_interpreter() -> bool:
    """Whether a program can be started that is Python, and not what Python is embedded in."""
    return not getattr(sys, "frozen", False) and Path(sys.executable or "").name.lower().startswith("python")


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
