"""Machine code is kept, and never stale: real processes on a copy of the package."""

import ast
import os
import re
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from copied_package import SOURCES, copy_package, run_python
from privsolve.compiled import read_sources

CALLER = '''
"""A compiled function that calls one of another file."""
from privsolve.compiled import compiled
from privsolve.noise.coins import take

@compiled
def twice(stream):
    return take(stream) + take(stream)

@compiled
def once(stream):
    return take(stream)
'''

CALL = """
import numpy as np
from privsolve.noise.caller import twice
from privsolve.noise.coins import Stream
print(twice(Stream(np.array([0.25, 0.5]), np.zeros(1, dtype=np.int64))), sum(twice.stats.cache_misses.values()))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    copied = copy_package(tmp_path)
    (copied / "noise" / "caller.py").write_text(CALLER)
    return copied


def archives(package: Path) -> set[Path]:
    return set((package / "__pycache__").glob("compiled-*.zip"))


def call(package: Path) -> tuple[float, bool]:
    """What the function returns, and whether it had to be compiled."""
    result = run_python(package, CALL)
    assert result.returncode == 0, result.stderr
    value, misses = result.stdout.split()
    return float(value), misses != "0"


def edit(path: Path, old: str, new: str) -> None:
    """An edit that leaves date and size as they were, as restored files may."""
    text, before = path.read_text(), path.stat()
    assert text.count(old) == 1
    assert len(old) == len(new)
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_an_edit_of_a_called_function_in_another_file_is_compiled(package: Path) -> None:
    assert call(package) == (0.75, True)
    assert call(package) == (0.75, False)
    coins = package / "noise" / "coins.py"
    edit(coins, "return stream.uniforms[at]", "return 2.0            # at")
    for bytecode in coins.parent.glob("__pycache__/*.pyc"):
        bytecode.unlink()  # Python itself goes by date and size
    assert call(package) == (4.0, True)
    edit(coins, "return 2.0            # at", "return stream.uniforms[at]")
    for bytecode in coins.parent.glob("__pycache__/*.pyc"):
        bytecode.unlink()
    assert call(package) == (0.75, True)


def test_what_others_keep_in_the_folder_stays(package: Path, tmp_path: Path) -> None:
    """Folders, files, and archives of other installations."""
    place = tmp_path / "asked" / "privsolve"
    (place / "folder").mkdir(parents=True)
    for name in ("folder/precious", f"compiled-{0:016x}.zip", f"compiled-{1:016x}.zip"):
        (place / name).write_text("mine")
    before = set(place.rglob("*"))
    for _ in range(2):
        assert run_python(package, CALL, NUMBA_CACHE_DIR=str(tmp_path / "asked")).returncode == 0
    assert before < set(place.rglob("*"))
    assert {path.read_text() for path in before if path.is_file()} == {"mine"}
    assert not archives(package)


def test_a_damaged_or_foreign_archive_is_compiled_again(package: Path) -> None:
    call(package)
    (kept,) = archives(package)
    whole = kept.read_bytes()
    middle = bytearray(whole)
    middle[len(whole) // 2] ^= 255
    for content in (b"not an archive", whole[: len(whole) // 2], bytes(middle)):
        kept.write_bytes(content)
        assert call(package) == (0.75, True)
        assert call(package) == (0.75, False)
    with zipfile.ZipFile(kept, "a") as file:
        file.comment = b"of other sources"
    assert call(package) == (0.75, True)


def test_the_first_use_says_that_it_compiles_and_an_edit_elsewhere_compiles_nothing(
    package: Path, tmp_path: Path
) -> None:
    place = tmp_path / "temporary"
    (place / "privsolve-other").mkdir(parents=True)
    first = run_python(package, CALL, TMPDIR=str(place))
    assert [path.name for path in place.iterdir()] == ["privsolve-other"]
    assert first.stderr.count("compiling for this machine") == len(first.stderr.splitlines()) == 1
    words = package / "cards" / "words.py"
    words.write_text(words.read_text() + "\n# a comment\n")
    second = run_python(package, CALL)
    assert (second.stdout.split(), second.stderr) == (["0.75", "0"], "")


def test_processes_at_once_do_not_disturb_each_other(package: Path) -> None:
    """Each asks for other types of argument: in a folder that all write, numba's index could name the other's code."""
    code = CALL.replace("np.zeros(1, dtype=np.int64)", "np.zeros(1, dtype=np.{})")
    kinds = ["int16", "int64"]
    for _ in range(2):
        with ThreadPoolExecutor(len(kinds)) as pool:
            results = list(pool.map(lambda kind: run_python(package, code.format(kind)), kinds))
        assert [result.stdout.split()[:1] for result in results] == [["0.75"]] * len(kinds)
    for kind in kinds:
        run_python(package, code.format(kind))
        assert run_python(package, code.format(kind)).stdout.split() == ["0.75", "0"]


def test_what_two_processes_compile_at_the_same_time_is_kept_of_both(package: Path) -> None:
    """The slower one began before the faster one had kept anything."""
    slow = CALL + "import subprocess, sys\nsubprocess.run([sys.executable, '-c', sys.argv[1]], check=True)\n"
    fast = CALL.replace("twice", "once")
    done = run_python(package, slow, fast)
    assert done.returncode == 0, done.stderr
    for code, value in ((CALL, "0.75"), (fast, "0.25")):
        assert run_python(package, code).stdout.split() == [value, "0"]


def test_what_compiled_code_depends_on_is_complete() -> None:
    """By the parser, and for every import that runs: the digest finds the same files by a plain search."""
    found = set(read_sources(SOURCES))
    assert {"noise/coins.py", "engines/supports/fold.py"} <= {p.relative_to(SOURCES).as_posix() for p in found}
    for path in found:
        assert needs(path) <= found, path
    numba = re.compile(r"^\s*(import|from) numba", re.MULTILINE)
    uses = {path for path in SOURCES.rglob("*.py") if numba.search(path.read_text())}
    assert uses <= found | {SOURCES / "compiled.py"}


def needs(path: Path) -> set[Path]:
    modules = set()
    for node in (n for statement in ast.parse(path.read_text()).body for n in executed(statement)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports are not followed"
            modules |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    places = [SOURCES.joinpath(*m.split(".")[1:]) for m in modules if m.split(".")[0] == "privsolve"]
    found = {p for place in places for p in (place.with_suffix(".py"), place / "__init__.py") if p.exists()}
    return found - {SOURCES / "__init__.py"}


def executed(statement: ast.stmt) -> list[ast.AST]:
    """The statement and what is inside, unless it runs later or never."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return []
    if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
        return []
    return list(ast.walk(statement))


# --- an installation that cannot be written, for a user without a home: it works, with one line of warning ---

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
