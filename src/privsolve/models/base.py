"""What every model offers, and the kinds there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privsolve import registry
from privsolve.models.outcomes import Outcomes


class Model(ABC):
    """What a release carries and a person uses: a frozen value that describes itself and goes to and from JSON.

    A class with a `kind` of its own is registered under it, so that a release that names the kind can be read back where
    the class has been imported. Nothing in a model depends on the data but through the mechanism that chose it.
    """

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[Model]]] = {}
    setting_fields: ClassVar[frozenset[str]] = frozenset({"domain", "loss"})
    """What a release of such a model says about how it was chosen."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Register the class under its kind."""
        super().__init_subclass__(**options)
        if "kind" in vars(cls):
            registry.enter(Model.kinds, cls, "model")

    @abstractmethod
    def describe(self) -> str:
        """The model in a few words."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, with the `kind`."""

    @classmethod
    @abstractmethod
    def from_dict(cls, values: dict[str, Any]) -> Model:
        """The inverse of `to_dict`; errors say what is wrong."""

    def outcomes(self) -> Outcomes:
        """What the model can say of a record, in order: enough to evaluate it (`privsolve.evaluation`)."""
        raise TypeError(f"a {self.kind} has no list of outcomes, so it cannot be evaluated: it is {self.describe()}")

    def predict(self, table: Any) -> NDArray[Any]:
        """What the model says of every row of a pandas, Polars or Arrow table; only the columns it uses are looked at."""
        raise TypeError(f"a {self.kind} does not predict: it is {self.describe()}")


def model_from_dict(values: object) -> Model:
    """The inverse of a model's `to_dict`."""
    if isinstance(values, dict) and values.get("kind") == "risk-score":
        raise ValueError(
            "the release file holds a short card with risks, which this version does not read: full scorecards state risks; "
            "fit one, or read the file with the version that wrote it"
        )
    cls: type[Model] = registry.look_up(Model.kinds, values, "the release file's model")
    assert isinstance(values, dict)
    return cls.from_dict(values)


def check_fields(values: dict[str, Any], wanted: set[str], optional: frozenset[str] = frozenset()) -> None:
    """Raise unless a model's description has these fields, beside its kind."""
    if wrong := wanted ^ (set(values) - {"kind"} - optional):
        raise ValueError(f"the release file's model has missing or unknown fields: {', '.join(sorted(wrong))}")


def whole_numbers(values: object, name: str) -> NDArray[np.int64]:
    """A list of 64-bit integers that nobody can change afterwards."""
    array: NDArray[Any] = np.empty(0)
    if isinstance(values, (list, np.ndarray)) and (not isinstance(values, list) or all(type(v) is int for v in values)):
        array = np.array(values)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu":
        raise ValueError(f"the release's {name} must be a list of whole numbers of at most 64 bits")
    whole = array.astype(np.int64)
    whole.setflags(write=False)
    return whole


def texts(values: object, name: str) -> list[str]:
    """A list of texts."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"the release file's {name} must be a list of names")
    return values
