"""The published result and its file, and what the curator may look at and must not publish."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from numpy.typing import NDArray

from privsolve._version import __version__
from privsolve.arrays import Int64Array
from privsolve.cards.scorecard import ModelCard, card_of, has_card
from privsolve.cards.scoring import scored_frame
from privsolve.data import Schema
from privsolve.domains import Domain, domain_from_dict
from privsolve.evaluation import Evaluation, MeasuredOn
from privsolve.losses import Loss, loss_from_dict
from privsolve.models import full_card  # noqa: F401  (so that files that hold one can be read)
from privsolve.models.bands import Bands
from privsolve.models.base import Model, model_from_dict
from privsolve.models.choices import NoAnswer
from privsolve.models.linear import LinearRule
from privsolve.notebooks import panel
from privsolve.privacy.accounting import one_after_another, side_by_side
from privsolve.privacy.guarantee import Guarantee, Paid

if TYPE_CHECKING:
    import pandas as pd

NOT_PRIVATE = "Curator only: these numbers depend on the data and are NOT covered by the guarantee. Do not publish."
FORMAT = "privsolve-release-2"
FIELDS = frozenset({"format", "version", "model", "guarantee", "setting"})
PARTS = "parts"
"""A field of the setting of what was chosen on one of several parts of the records: how many, and what may fail."""


@dataclass(frozen=True, eq=False)
class Release:
    """The published result: a model and its guarantee, with the public setting in which it was chosen. Nothing else.

    `setting` holds plain values that were fixed before the data was looked at: the domain and the loss, or the numbers
    that the noise was computed from. `guarantee` is that of the model; an `evaluation` has one of its own, a drafted
    schema too, and `total` is what holds for all of them together.
    """

    model: Model
    guarantee: Guarantee
    setting: Mapping[str, Any] = field(default_factory=dict)
    version: str = __version__
    evaluation: Evaluation | None = None

    def __post_init__(self) -> None:
        if wrong := self.model.setting_fields ^ (set(self.setting) - {PARTS}):
            raise ValueError(f"the release's setting has missing or unknown fields: {', '.join(sorted(wrong))}")
        if PARTS in self.setting and not _says_of_parts(self.setting[PARTS]):
            raise ValueError(
                "the release's setting must say of its parts what count, threshold, withheld and part_epsilon were"
            )
        answered = not isinstance(self.model, NoAnswer)
        if answered and self.domain is not None and not self.domain.contains(self.weights):
            raise ValueError("the release's weights are not a member of its domain")
        _ = self.loss  # read, so that a damaged one is refused

    @classmethod
    def from_json(cls, text: str) -> Release:
        """The inverse of `to_json`; refuses other files with what is wrong."""
        content = _content(text)
        if wrong := FIELDS ^ (set(content) - {"evaluation"}):
            raise ValueError(f"the release file has missing or unknown fields: {', '.join(sorted(wrong))}")
        if not isinstance(content["version"], str):
            raise ValueError(f"the release file's version must be a text, got {content['version']!r}")
        if not isinstance(content["setting"], dict):
            raise ValueError("the release file's setting must be an object")
        return cls(
            model_from_dict(content["model"]),
            Guarantee.from_dict(content["guarantee"]),
            content["setting"],
            content["version"],
            Evaluation.from_dict(content["evaluation"]) if "evaluation" in content else None,
        )

    def to_json(self) -> str:
        """The release as JSON text; equal releases give equal bytes."""
        content = {
            "format": FORMAT,
            "version": self.version,
            "model": self.model.to_dict(),
            "guarantee": self.guarantee.to_dict(),
            "setting": dict(self.setting),
        }
        if self.evaluation is not None:
            content["evaluation"] = self.evaluation.to_dict()
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"

    def with_evaluation(self, evaluation: Evaluation) -> Release:
        """The release with how good its model is, in place of an earlier evaluation."""
        return replace(self, evaluation=evaluation)

    @property
    def total(self) -> Guarantee:
        """What holds for everything in the release: the drafting of its schema, the model, and its evaluation."""
        return self.own if self.drafted is None else one_after_another([self.drafted.guarantee, self.own])

    @property
    def own(self) -> Guarantee:
        """What holds for the model and its evaluation."""
        if self.evaluation is None:
            return self.guarantee
        if self.evaluation.tested is MeasuredOn.SAME:
            return one_after_another([self.guarantee, self.evaluation.guarantee])
        return side_by_side(self.guarantee, self.evaluation.guarantee)

    @property
    def drafted(self) -> Paid | None:
        """What was paid for a draft of the schema, which other releases may share."""
        return None if self.schema is None else self.schema.paid

    @property
    def domain(self) -> Domain | None:
        """The set of models that it was chosen from, if that is a domain."""
        return domain_from_dict(self.setting["domain"]) if "domain" in self.setting else None

    @property
    def loss(self) -> Loss | None:
        """What it was chosen by, if that is a loss of records."""
        return loss_from_dict(self.setting["loss"]) if "loss" in self.setting else None

    @property
    def weights(self) -> Int64Array:
        """The whole numbers of the model, for models that are such."""
        found: Int64Array | None = getattr(self.model, "weights", None)
        if found is None:
            raise AttributeError(f"a {self.model.kind} has no weights: see release.model")
        return found

    @property
    def schema(self) -> Schema | None:
        """How the model's features are made from the columns of a table, if it knows."""
        return getattr(self.model, "schema", None)

    def predict(self, table: Any) -> NDArray[Any]:
        """What the model says of every row of a table, which needs only the columns that the model uses."""
        return self.model.predict(table)

    def with_bands(self, bands: str | Bands | None) -> Release:
        """The release of a card with names for ranges of its totals. It looks at no data, so it may be done at any time.

        Args:
            bands: cut risks `"5%,20%"` (a band begins above its risk), totals `"12,20"` (a band begins at its total), or names
                and cuts in turn, `"low,5%,medium,20%,high"`; None takes them away.

        Returns:
            The release whose card, predictions, programs and file have these bands.

        Raises:
            ValueError: if that cannot be read, or the model is no card with such totals.
        """
        if not isinstance(self.model, LinearRule):
            raise ValueError(f"bands are for scorecards: a {self.model.kind} has no totals")
        return replace(self, model=self.model.with_bands(bands))

    def scored(self, table: Any, reasons: int = 0) -> pd.DataFrame:
        """What the card says of every row of a table in memory: the columns that `privsolve predict` adds.

        Args:
            table: pandas, Polars or Arrow; only the columns that the card asks for are needed.
            reasons: how many columns `reason_1`, ... to add, with the answers that raised the total most above the lowest one.

        Returns:
            One row for each row: score (the total), risk, prediction, band and reasons, as far as the card has them.

        Raises:
            ValueError: if the model is no scorecard, or a column is missing.
        """
        if not isinstance(self.model, LinearRule):
            raise ValueError(f"scored is for scorecards: use predict with a {self.model.kind}")
        return scored_frame(table, self.model, reasons)

    def _repr_html_(self) -> str:
        if has_card(self.model) and self.schema is not None:
            return self.card()._repr_html_()
        return panel(self.model.describe(), notes=[f"Privacy: {self.total.sentence()}"])

    def card(self) -> ModelCard:
        """The release in the form that people use, with one question per column of the schema."""
        return card_of(self.model, self.total, self.evaluation, self.version)


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

        listed = [("seconds", self.seconds), *self.quality.items(), *self.values.items()]
        return pd.DataFrame(listed, columns=["not private", "value"])

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


def _says_of_parts(parts: object) -> bool:
    return isinstance(parts, dict) and set(parts) == {"count", "threshold", "withheld", "part_epsilon"}


def _content(text: str) -> dict[str, Any]:
    """What is in a release file."""
    try:
        content = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"not a release file: it is not JSON ({error})") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"not a release file of this version: expected a JSON object with format {FORMAT!r}")
    return cast(dict[str, Any], content)
