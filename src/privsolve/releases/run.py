"""One use of a mechanism, and what the curator may look at and must not publish."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privsolve.notebooks import panel
from privsolve.releases.release import Release

if TYPE_CHECKING:
    import pandas as pd

NOT_PRIVATE = "Curator only: these numbers depend on the data and are NOT covered by the guarantee. Do not publish."


@dataclass(frozen=True)
class Diagnostics:
    """What the curator may look at and must not publish: all of it depends on the data without protection.

    `quality` says how good the weights are on the data (accuracy, mistakes, cost), `values` what the mechanism reports of
    its work (objective, bound, nodes, ...); each entry can also be read as an attribute.
    """

    seconds: float
    quality: dict[str, Any]
    values: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__.get("values", {}) | self.__dict__.get("quality", {})
        if name in values:
            return values[name]
        raise AttributeError(f"diagnostics have no {name!r}; they hold {', '.join(sorted(values))}")

    def to_frame(self) -> pd.DataFrame:
        """Name and value of everything: NOT private, like all of it."""
        import pandas as pd

        return pd.DataFrame(self._listed(), columns=["not private", "value"])

    def _repr_html_(self) -> str:
        return panel("Curator's diagnostics", ("Not private", "Value"), self._listed(), warnings=[NOT_PRIVATE])

    def _listed(self) -> list[tuple[str, Any]]:
        return [("seconds", self.seconds), *self.quality.items(), *self.values.items()]

    def to_json(self) -> str:
        """JSON text that says at the top that it is not for publication."""
        first = {"warning": NOT_PRIVATE, "seconds": self.seconds, **self.quality}
        content = first | self.values | first  # in this order, and no value takes the place of the warning
        return json.dumps(content, indent=2, default=str) + "\n"


@dataclass(frozen=True)
class Run:
    """One use of a mechanism: `release` may be published, `diagnostics` may not."""

    release: Release
    diagnostics: Diagnostics
