"""Release files of version 0.1.0, where weights, features, domain and loss lay side by side."""

from __future__ import annotations

from typing import Any

from privsolve.data import INTERCEPT
from privsolve.losses import ZeroOneLoss
from privsolve.models.linear import LinearRule
from privsolve.models.member import Member

FORMAT = "privsolve-release-1"
FIELDS = frozenset({"format", "version", "weights", "features", "scales", "domain", "loss", "guarantee"})


def upgraded(content: dict[str, Any]) -> dict[str, Any]:
    """The same release in the fields of format 2, but for its `format`."""
    if wrong := FIELDS ^ (set(content) - {"schema"}):
        raise ValueError(f"the release file has missing or unknown fields: {', '.join(sorted(wrong))}")
    return {
        "version": content["version"],
        "model": _model(content),
        "guarantee": content["guarantee"],
        "setting": {"domain": content["domain"], "loss": content["loss"]},
    }


def _model(content: dict[str, Any]) -> dict[str, Any]:
    """A linear rule, or for linear costs a member of the domain."""
    weights, features, loss = content["weights"], content["features"], content["loss"]
    if isinstance(loss, dict) and loss.get("kind") != ZeroOneLoss.kind:
        return {"kind": Member.kind, "weights": weights, "names": features}
    rule = {"kind": LinearRule.kind, "weights": weights, "features": features, "scales": content["scales"]}
    if "schema" not in content:  # in that format an intercept was a last feature of this name
        return rule | {"intercept": isinstance(features, list) and features[-1:] == [INTERCEPT]}
    schema = content["schema"]
    return rule | {"intercept": isinstance(schema, dict) and schema.get("intercept", True), "schema": schema}
