"""Release files of version 0.1.0, which had one format for weights and one for the points of OPSamp."""

from __future__ import annotations

from typing import Any

from privsolve.data import INTERCEPT
from privsolve.losses import ZeroOneLoss
from privsolve.models.choices import BoxPoint, Member
from privsolve.models.linear import LinearRule

WEIGHTS = frozenset({"weights", "features", "scales", "domain", "loss"})
POINT = frozenset({"point", "steps", "low", "high", "grid", "setting"})
FIELDS = {"privsolve-release-1": WEIGHTS, "privsolve-box-release-1": POINT}


def upgraded(content: dict[str, Any]) -> dict[str, Any]:
    """The same release in the fields of format 2, but for its `format`."""
    own = FIELDS[content["format"]]
    if wrong := ({"format", "version", "guarantee"} | own) ^ (set(content) - ({"schema"} if own is WEIGHTS else set())):
        raise ValueError(f"the release file has missing or unknown fields: {', '.join(sorted(wrong))}")
    if own is POINT:
        model = {"kind": BoxPoint.kind, **{name: content[name] for name in POINT - {"setting"}}}
        setting = content["setting"]
    else:
        model, setting = _linear(content), {"domain": content["domain"], "loss": content["loss"]}
    return {"version": content["version"], "model": model, "guarantee": content["guarantee"], "setting": setting}


def _linear(content: dict[str, Any]) -> dict[str, Any]:
    """A linear rule, or for linear costs a member of the domain."""
    weights, features, loss, schema = (content.get(name) for name in ("weights", "features", "loss", "schema"))
    if isinstance(loss, dict) and loss.get("kind") != ZeroOneLoss.kind:
        return {"kind": Member.kind, "weights": weights, "names": features}
    rule = {"kind": LinearRule.kind, "weights": weights, "features": features, "scales": content["scales"]}
    if "schema" not in content:  # in that format an intercept was a last feature of this name
        return rule | {"intercept": isinstance(features, list) and features[-1:] == [INTERCEPT]}
    return rule | {"intercept": isinstance(schema, dict) and schema.get("intercept", True), "schema": schema}
