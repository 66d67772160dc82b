"""Print pip constraints that pin every dependency to the oldest version that `pyproject.toml` allows."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
for requirement in project["dependencies"]:
    name, version = re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", requirement).groups()
    print(f"{name}=={version}.*")
