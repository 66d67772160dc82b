"""Release files of OPSamp in version 0.1.0, which had a format of their own."""

from __future__ import annotations

from typing import Any

from privsolve.models.point import BoxPoint

FORMAT = "privsolve-box-release-1"
POINT = ("point", "steps", "low", "high", "grid")
FIELDS = frozenset({"format", "version", "setting", "guarantee", *POINT})


def upgraded(content: dict[str, Any]) -> dict[str, Any]:
    """The same release in the fields of format 2, but for its `format`."""
    if wrong := FIELDS ^ set(content):
        raise ValueError(f"the release file has missing or unknown fields: {', '.join(sorted(wrong))}")
    return {
        "version": content["version"],
        "model": {"kind": BoxPoint.kind, **{name: content[name] for name in POINT}},
        "guarantee": content["guarantee"],
        "setting": content["setting"],
    }
