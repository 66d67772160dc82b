"""Print pip constraints that pin every dependency, and every test tool, to the oldest version that `pyproject.toml` allows."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
for requirement in project["dependencies"] + project["optional-dependencies"]["test"]:
    if found := re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", requirement):
        print(f"{found[1]}=={found[2]}.*")
