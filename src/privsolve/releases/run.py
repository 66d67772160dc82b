"""One use of a mechanism."""

from __future__ import annotations

from dataclasses import dataclass

from privsolve.releases.diagnostics import Diagnostics
from privsolve.releases.release import Release


@dataclass(frozen=True)
class Run:
    """One use of a mechanism: `release` may be published, `diagnostics` may not."""

    release: Release
    diagnostics: Diagnostics
