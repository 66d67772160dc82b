"""One data set and one split, as every competitor gets it: an `.npz` file without pickles, read with numpy alone.

The records are there in three forms, which all come from the same public schema:

* `binary`: 0/1 columns (thresholds and indicators), for everybody who takes yes/no features;
* `numeric`: numbers within public `bounds`, categories as 0/1 indicators, for everybody who takes numbers;
* `codes`: one small integer per column, below the public `sizes`, for everybody who takes categories. `expand` turns codes into
  the binary form.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np


@dataclass(frozen=True, eq=False)
class Part:
    """Training or test records in all forms; `raw` are the columns before any preprocessing."""

    binary: np.ndarray
    numeric: np.ndarray
    codes: np.ndarray
    labels: np.ndarray
    raw: dict[str, np.ndarray]


@dataclass(frozen=True)
class Public:
    """What is public: names, bounds, sizes, the schema as TOML, and the binary columns of every code of every column."""

    dataset: str
    split: int
    binary_names: list[str]
    numeric_names: list[str]
    bounds: list[list[float]]
    indicators: list[bool]
    columns: list[str]
    sizes: list[int]
    tables: list[list[list[int]]]
    schema: str


@dataclass(frozen=True, eq=False)
class Exchange:
    """One data set, one split."""

    public: Public
    train: Part
    test: Part

    def expand(self, codes: np.ndarray) -> np.ndarray:
        """The binary form of codes."""
        tables = [np.array(table, dtype=np.int8) for table in self.public.tables]
        return np.hstack([table[column] for table, column in zip(tables, codes.T, strict=True)])

    def unit_numeric(self, part: Part) -> np.ndarray:
        """The numbers moved into [0, 1] by their public bounds."""
        low, high = np.array(self.public.bounds).T
        return (part.numeric - low) / (high - low)

    def mixed(self, part: Part) -> np.ndarray:
        """One column per column of the schema: the number, or the code of its category."""
        return np.column_stack(
            [part.numeric[:, place] if place is not None else part.codes[:, j] for j, place in enumerate(self.places)]
        )

    @property
    def places(self) -> list[int | None]:
        """Where each column of the schema stands among the numbers; None for categories."""
        names = self.public.numeric_names
        return [names.index(column) if column in names else None for column in self.public.columns]

    def save(self, path: Path) -> None:
        """Write the file; it is whole or not there."""
        arrays: dict[str, np.ndarray] = {"public": np.array(json.dumps(asdict(self.public)))}
        for side, part in (("train", self.train), ("test", self.test)):
            arrays |= {f"{side}.{f.name}": getattr(part, f.name) for f in fields(Part) if f.name != "raw"}
            arrays |= {f"{side}.raw.{name}": values for name, values in part.raw.items()}
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".tmp.npz")
        np.savez_compressed(unfinished, **arrays)
        unfinished.replace(path)

    @classmethod
    def load(cls, path: Path | str) -> Exchange:
        """Read the file."""
        with np.load(path, allow_pickle=False) as stored:
            arrays = dict(stored)
        public = Public(**json.loads(str(arrays.pop("public"))))
        return cls(public, *(_part(arrays, side) for side in ("train", "test")))


def _part(arrays: dict[str, np.ndarray], side: str) -> Part:
    own = {name.removeprefix(f"{side}."): values for name, values in arrays.items() if name.startswith(f"{side}.")}
    raw = {name.removeprefix("raw."): own.pop(name) for name in list(own) if name.startswith("raw.")}
    return Part(**own, raw=raw)
