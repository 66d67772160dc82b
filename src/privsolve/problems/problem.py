"""What is minimised: the total loss of the records, over a domain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from typing_extensions import override

from privsolve.arrays import Int64Array
from privsolve.checks import check_length
from privsolve.data import INTERCEPT, Schema
from privsolve.data.patterns import SCORE_LIMIT, PatternTable, check_score_range, checked_names
from privsolve.domains import ConstrainedPoints, Domain, check_domain
from privsolve.errors import IntegerRangeError
from privsolve.losses import LinearLoss, Loss, ZeroOneLoss
from privsolve.models.base import Model
from privsolve.models.choices import Member
from privsolve.models.linear import LinearRule
from privsolve.privacy.guarantee import Paid
from privsolve.problems.perturbation import OBJECTIVE_LIMIT, UNIT, Perturbation


class BaseProblem(ABC):
    """A total loss `L(D, w)` in exact integers over a domain, with what is public about it."""

    domain: Domain
    loss: Loss

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of records."""

    @abstractmethod
    def total_loss(self, weights: ArrayLike) -> int:
        """`L(D, w)`, exactly. Data-dependent: not for publication."""

    @abstractmethod
    def losses_of(self, members: Int64Array) -> Int64Array:
        """`L(D, w)` of many members at once."""

    @abstractmethod
    def model(self, weights: ArrayLike) -> Model:
        """The member as a model to publish."""

    @property
    def largest_total(self) -> int:
        """A bound on how far the totals of two members can be apart."""
        return self.n * self.loss.largest

    @property
    def setting(self) -> dict[str, Any]:
        """The public description of the problem, as plain values."""
        return {"domain": self.domain.to_dict(), "loss": self.loss.to_dict()}

    @abstractmethod
    def quality(self, weights: ArrayLike) -> dict[str, Any]:
        """How good the weights are on the data, in the problem's own words: for the curator, not for publication."""

    def check_perturbation(self, perturbation: Perturbation) -> None:
        """Raise if the perturbation belongs to another domain."""
        if perturbation.domain != self.domain:
            raise ValueError("perturbation belongs to another domain than the problem's")

    def objective(self, weights: ArrayLike, perturbation: Perturbation) -> int:
        """`L(D, w) + perturbation(w)` in units of `2^-20`, exactly."""
        self.check_perturbation(perturbation)
        return self.total_loss(weights) * UNIT + perturbation.of(weights)


def draft_of(problem: object) -> Paid | None:
    """The private draft of the schema that a problem rests on, if there was one: it is paid for with the release."""
    schema: Schema | None = getattr(problem, "schema", None)
    return None if schema is None else schema.paid


@dataclass(frozen=True, eq=False)
class Problem(BaseProblem):
    """Choose `w` in `domain` such that "positive iff `<x, w> > 0`" makes the fewest or cheapest mistakes on `table`."""

    table: PatternTable
    domain: Domain
    loss: ZeroOneLoss = field(default_factory=ZeroOneLoss)
    schema: Schema | None = None

    def __post_init__(self) -> None:
        if self.schema is not None and (self.schema.features, self.schema.scales) != (self.names, self.scales):
            raise ValueError("schema has other features than the table: pass the schema that made the table")
        if not isinstance(self.table, PatternTable):
            raise ValueError(f"table must be a PatternTable, got {type(self.table).__name__}")
        check_domain(self.domain)
        if not isinstance(self.loss, ZeroOneLoss):
            raise ValueError(
                f"loss must be a ZeroOneLoss, got {type(self.loss).__name__}; others take a DiscreteProblem"
            )
        if self.schema is not None and self.schema.constraints and not isinstance(self.domain, ConstrainedPoints):
            raise ValueError(
                f"the schema states constraints on cards ({self.schema.constraints.words}), which {type(self.domain).__name__} "
                "does not keep: use cards by the exponential mechanism, or take them out of the schema"
            )
        if self.domain.dim != self.table.dim:
            raise ValueError(
                f"domain has dimension {self.domain.dim} but the table has {self.table.dim} features: make them equal"
            )
        check_score_range(self.table, np.array([np.abs(self.domain.values(j)).max() for j in range(self.domain.dim)]))
        if self.n * self.loss.largest * UNIT >= OBJECTIVE_LIMIT // 2:
            raise IntegerRangeError("records times largest cost leave the exact integer range: use smaller costs")

    @property
    @override
    def n(self) -> int:
        return self.table.n

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.table.names

    @property
    def scales(self) -> tuple[int, ...]:
        """Scales of the features."""
        return self.table.scales

    def model(self, weights: ArrayLike) -> LinearRule:
        """The linear rule with these weights.

        Without a schema a last feature called "intercept" is the constant 1.
        """
        schema = self.schema
        if schema is not None and isinstance(self.domain, ConstrainedPoints):
            schema = schema.requiring(self.domain.required)  # the card that is printed keeps these questions
        constant = self.names[-1] == INTERCEPT if schema is None else schema.intercept
        return LinearRule(np.asarray(weights), self.names, self.scales, constant, schema)

    def quality(self, weights: ArrayLike) -> dict[str, Any]:
        """Training accuracy and mistakes."""
        mistakes = self.table.mistakes(weights)
        return {"training_accuracy": 1.0 - mistakes / max(self.n, 1), "mistakes": mistakes}

    @cached_property
    def costs(self) -> Int64Array:
        """What the records of each row lose together: `costs[i, 0]` if predicted negative, `costs[i, 1]` if positive."""
        loss, table = self.loss, self.table
        return np.stack([table.positives * loss.false_negative, table.negatives * loss.false_positive], axis=1)

    def total_loss(self, weights: ArrayLike) -> int:
        """`L(D, w)`, exactly. Data-dependent: not for publication."""
        return int(self._losses(self.table.scores(weights)[None, :])[0])

    def losses_of(self, members: Int64Array) -> Int64Array:
        """`L(D, w)` of many members at once, in blocks that fit the cache."""
        losses = np.empty(len(members), dtype=np.int64)
        block = max(1, 2_000_000 // len(self.table.features))
        for start in range(0, len(members), block):
            losses[start : start + block] = self._losses(members[start : start + block] @ self.table.score_features.T)
        return losses

    def _losses(self, scores: Int64Array) -> Int64Array:
        """The total loss of each row of scores."""
        return np.asarray(self.costs[:, 0].sum() + (scores > 0) @ (self.costs[:, 1] - self.costs[:, 0]))


class MemberProblem(BaseProblem):
    """A problem whose release is the member of the domain itself: `labels` name its coordinates."""

    records: int
    labels: tuple[str, ...]

    @property
    @override
    def n(self) -> int:
        return self.records

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        return self.labels

    def model(self, weights: ArrayLike) -> Member:
        """The member with these coordinates."""
        return Member(np.asarray(weights), self.names)


@dataclass(frozen=True, eq=False)
class LinearProblem(MemberProblem):
    """Choose `w` in `domain` with the least total of linear costs: assignments, subsets, spanning trees.

    `costs[i]` is what record i pays per unit of each coordinate, in whole numbers of either sign; record i loses
    `<costs[i], w>`. Over the domain no record's loss may vary by more than `largest`, which is public and sets the noise:
    records that could are refused, not clipped. Costs that are mostly zero may come as a SciPy sparse matrix.
    """

    total: Int64Array
    domain: Domain
    loss: LinearLoss
    records: int
    labels: tuple[str, ...]

    def __init__(self, costs: Any, domain: Domain, largest: int, names: Sequence[str] | None = None) -> None:
        check_domain(domain)
        check_length("costs", costs)
        array = costs.tocsr() if issparse(costs) else np.asarray(costs)
        records = array.shape[0] if array.ndim else 0
        if array.ndim != 2 or array.shape[1] != domain.dim or records == 0:
            raise ValueError(f"costs must have one row per record and {domain.dim} columns, got shape {array.shape}")
        if array.dtype.kind not in "iu":
            raise ValueError(f"costs must be integers, got dtype {array.dtype}: round them by a public rule first")
        loss = LinearLoss(largest)
        if max(abs(int(array.min())), abs(int(array.max()))) * records * domain.dim >= SCORE_LIMIT:
            raise IntegerRangeError("costs add up beyond the exact integer range: use smaller costs")
        total = np.zeros(domain.dim, dtype=np.int64)
        for some in _dense_blocks(array):
            total += some.sum(axis=0)
            if int((domain.largest_linear(some) + domain.largest_linear(-some)).max()) > loss.largest:
                raise ValueError(
                    f"a record's costs can make a difference of more than largest={loss.largest}: clip each record's costs "
                    "by a public rule first, or state a larger one"
                )
        labels = checked_names(names, domain.dim)
        vars(self).update(total=total, domain=domain, loss=loss, records=records, labels=labels)
        reach = max(abs(int(domain.largest_linear(sign * self.total[None, :])[0])) for sign in (1, -1))
        if max(reach, self.n * loss.largest) * UNIT >= OBJECTIVE_LIMIT // 2:
            raise IntegerRangeError("costs add up beyond the exact integer range: use smaller costs")

    def total_loss(self, weights: ArrayLike) -> int:
        """`L(D, w)`, exactly. Data-dependent: not for publication."""
        return int(self.total @ np.asarray(weights, dtype=np.int64))

    @override
    def losses_of(self, members: Int64Array) -> Int64Array:
        return np.asarray(members @ self.total)

    def quality(self, weights: ArrayLike) -> dict[str, Any]:
        """Total cost and cost per record."""
        cost = self.total_loss(weights)
        return {"total_cost": cost, "cost_per_record": cost / self.n}


def _dense_blocks(costs: Any) -> Iterator[Int64Array]:
    """Some records at a time."""
    records, dim = costs.shape
    block = max(1, 4_000_000 // dim)
    for start in range(0, records, block):
        some = costs[start : start + block]
        yield np.asarray(some.toarray() if issparse(some) else some).astype(np.int64)
