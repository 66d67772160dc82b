"""An installation that cannot be written, for a user without a home: everything works, with one line of warning."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from copied_package import copy_package, run_python

USE = """
import numpy as np
import privsolve
from privsolve.noise.coins import Stream, coin
print(coin(Stream(np.array([0.5]), np.zeros(1, dtype=np.int64)), -0.1))
"""
NO_HOME = {"HOME": "/dev/null/home", "XDG_CACHE_HOME": "/dev/null/cache"}
"""These cannot be created, not even by root."""


def check_warned(result: "subprocess.CompletedProcess[str]") -> None:
    assert (result.returncode, result.stdout) == (0, "True\n"), result.stderr
    (line,) = result.stderr.splitlines()
    assert line.startswith("privsolve: no folder to keep compiled code in, so every process compiles anew")


def test_works_where_no_folder_can_be_made(tmp_path: Path) -> None:
    package = copy_package(tmp_path)
    (package / "__pycache__").write_text("a file where the folder would be")
    check_warned(run_python(package, USE, PYTHONDONTWRITEBYTECODE="1", **NO_HOME))


def test_works_on_a_read_only_mount(tmp_path: Path) -> None:
    package = copy_package(tmp_path)
    mount = f"mount --bind {tmp_path} {tmp_path} && mount -o remount,bind,ro {tmp_path} && "
    inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if not shutil.which("unshare") or subprocess.run([*inside, f"{mount} true"], capture_output=True).returncode:
        pytest.skip("mounting needs user namespaces")
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "PYTHON"))}
    result = subprocess.run(
        [*inside, f'{mount} ! touch {package}/new 2>/dev/null && exec "$0" -c "$1"', sys.executable, USE],
        env=variables | {"PYTHONPATH": str(package.parent)} | NO_HOME,
        capture_output=True,
        text=True,
        timeout=300,
    )
    check_warned(result)
    assert not list(package.rglob("compiled-*.zip"))


def test_the_users_folder_is_next(tmp_path: Path) -> None:
    package = copy_package(tmp_path)
    (package / "__pycache__").write_text("a file where the folder would be")
    cache = tmp_path / "cache"
    environment = {"HOME": "/dev/null/home", "XDG_CACHE_HOME": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    first, second = run_python(package, USE, **environment), run_python(package, USE, **environment)
    assert (first.stdout, first.stderr.count("\n")) == ("True\n", 1)
    assert (second.stdout, second.stderr) == ("True\n", "")
    assert list(cache.rglob("compiled-*.zip"))


def test_a_folder_that_is_asked_for_comes_first(tmp_path: Path) -> None:
    package = copy_package(tmp_path)
    run_python(package, USE, NUMBA_CACHE_DIR=str(tmp_path / "asked"))
    assert list((tmp_path / "asked").rglob("compiled-*.zip"))
    assert not list(package.rglob("compiled-*.zip"))
