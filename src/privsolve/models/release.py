"""What a mechanism gives back: a release to publish, and diagnostics that stay with the data's curator."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from privsolve._version import __version__
from privsolve.data import Label, Schema
from privsolve.data.columns import value_text
from privsolve.data.patterns import Int64Array, checked_names, checked_scales
from privsolve.domains import Domain, domain_from_dict
from privsolve.losses import Loss, loss_from_dict
from privsolve.privacy.guarantee import Guarantee
from privsolve.problems.problem import BaseProblem

if TYPE_CHECKING:
    from privsolve.cards.scorecard import Scorecard

FORMAT = "privsolve-release-1"
FIELDS = frozenset({"format", "version", "weights", "features", "scales", "domain", "loss", "guarantee"})


@dataclass(frozen=True, eq=False)
class Release:
    """The published result: weights and guarantee, with the public description of the problem. Nothing else.

    A record scores `Σ_j w_j x_j / scales[j]` and is predicted positive iff the score is positive. The `schema` says how the
    features are made from the columns of a table, if there is one.
    """

    weights: Int64Array
    features: tuple[str, ...]
    scales: tuple[int, ...]
    domain: Domain
    loss: Loss
    guarantee: Guarantee
    version: str = __version__
    schema: Schema | None = None

    def __post_init__(self) -> None:
        if self.schema is not None and (self.schema.features, self.schema.scales) != (self.features, self.scales):
            raise ValueError("the release's schema has other features than its weights")

    @classmethod
    def of(cls, problem: BaseProblem, weights: Int64Array, guarantee: Guarantee) -> Release:
        """The release of `weights` for the problem's public schema."""
        w = _weights(weights, problem.domain)
        return cls(w, problem.names, problem.scales, problem.domain, problem.loss, guarantee)

    @classmethod
    def from_json(cls, text: str) -> Release:
        """The inverse of `to_json`; a file of another kind or version is refused with what is wrong."""
        content = release_fields(text, FORMAT, FIELDS, optional=frozenset({"schema"}))
        domain = domain_from_dict(content["domain"])
        weights = _weights(content["weights"], domain)
        if not isinstance(content["features"], list) or not all(isinstance(name, str) for name in content["features"]):
            raise ValueError("the release file's features must be a list of names")
        if not isinstance(content["scales"], list):
            raise ValueError("the release file's scales must be a list of integers")
        return cls(
            weights,
            checked_names(content["features"], domain.dim),
            checked_scales(content["scales"], domain.dim),
            domain,
            loss_from_dict(content["loss"]),
            Guarantee.from_dict(content["guarantee"]),
            content["version"],
            Schema.from_dict(content["schema"]) if "schema" in content else None,
        )

    def to_json(self) -> str:
        """The release as JSON text; equal releases give equal bytes."""
        content = {
            "format": FORMAT,
            "version": self.version,
            "weights": self.weights.tolist(),
            "features": list(self.features),
            "scales": list(self.scales),
            "domain": self.domain.to_dict(),
            "loss": self.loss.to_dict(),
            "guarantee": self.guarantee.to_dict(),
        }
        if self.schema is not None:
            content["schema"] = self.schema.to_dict()
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"

    def scorecard(self) -> Scorecard:
        """The release as a scorecard that people can use, with one question per column of the schema."""
        from privsolve.cards.scorecard import Scorecard

        if self.schema is None:
            return Scorecard.of(self)
        return Scorecard.of(self, self.schema.questions(), *_decisions(self.schema))


def _decisions(schema: Schema) -> tuple[str, str]:
    """What the two decisions are called: by the label and its values."""
    if schema.label is None:
        return "positive", "negative"
    yes, no = label_words(schema.label)
    return f"{schema.label.column} {yes}", f"{schema.label.column} {no}"


def label_words(label: Label) -> tuple[str, str]:
    """The positive and the negative values of a label, in words."""
    yes, no = (
        " or ".join(value_text(value, "label") for value in values) for values in (label.positive, label.negative or ())
    )
    return yes, no or f"not {yes}"


def release_fields(
    text: str, file_format: str, fields: frozenset[str], optional: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """The fields of a release file of the given format, or what is wrong with it."""
    try:
        content = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"not a release file: it is not JSON ({error})") from None
    if not isinstance(content, dict) or content.get("format") != file_format:
        raise ValueError(f"not a release file: expected a JSON object with format {file_format!r}")
    if wrong := fields ^ (set(content) - optional):
        raise ValueError(f"the release file has missing or unknown fields: {', '.join(sorted(wrong))}")
    if not isinstance(content["version"], str):
        raise ValueError(f"the release file's version must be a text, got {content['version']!r}")
    return content


def _weights(weights: ArrayLike, domain: Domain) -> Int64Array:
    """Weights of a release: a member of the domain that nobody can change afterwards."""
    try:
        array = np.array(weights)
    except ValueError:
        array = np.empty(0)
    if not domain.contains(array):
        raise ValueError("the release's weights are not a member of its domain")
    array = array.astype(np.int64)
    array.setflags(write=False)
    return array


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
