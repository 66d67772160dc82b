"""The package as somebody else would have it: a copy of its sources in a folder of their own, used by real processes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import privsolve

SOURCES = Path(privsolve.__file__).parent


def copy_package(folder: Path) -> Path:
    """A copy without caches under `folder`; returns its package folder."""
    return Path(shutil.copytree(SOURCES, folder / "privsolve", ignore=shutil.ignore_patterns("__pycache__")))


def run_python(package: Path, code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own that imports this copy."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "PYTHON", "PYTEST_"))}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=variables | {"PYTHONPATH": str(package.parent)} | environment,
        cwd=package.parent,
        capture_output=True,
        text=True,
        timeout=300,
    )
