"""What OPSamp minimises, as a value: a total loss over a box, and what is public about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privsolve.checks import check_count, check_positive
from privsolve.continuous.objectives import as_box
from privsolve.models.point import Box
from privsolve.privacy.adjacency import Adjacency


@dataclass(frozen=True, eq=False, init=False)
class BoxProblem:
    """Minimise a total loss `L(D, ·)` over a public box of real numbers.

    Args:
        objective: the total loss, in the form that the oracle takes: `PiecewiseLinear`, `Objective`, ...
        box: public bounds, `[(low, high), ...]`, one pair per coordinate.
        lipschitz: G; the loss of every record that could ever occur changes by at most `G·‖x-y‖₁` between x and y. That
            of the objective if None.
        n: number of records. The objective's if None, for `adjacency="replace"`, where it is public. Under
            `adjacency="add-remove"` it is private, and a public stand-in must be given: it sets the noise rate and the
            accuracy, not the privacy.
    """

    objective: Any
    box: Box
    lipschitz: float
    n: int | None

    def __init__(
        self,
        objective: Any,
        box: Box | Sequence[Sequence[float]],
        lipschitz: float | None = None,
        n: int | None = None,
    ) -> None:
        the_box = as_box(box)
        if (dim := getattr(objective, "dim", the_box.dim)) != the_box.dim:
            raise ValueError(f"box has {the_box.dim} coordinates but the objective has {dim}")
        if n is None and getattr(objective, "n", None) is None:
            raise ValueError("n must be given: the objective does not say how many records it is the loss of")
        object.__setattr__(self, "objective", objective)
        object.__setattr__(self, "box", the_box)
        object.__setattr__(self, "lipschitz", _lipschitz(objective, lipschitz))
        object.__setattr__(self, "n", None if n is None else check_count("n", n))

    def public_n(self, adjacency: Adjacency | str) -> int:
        """The number of records that may be used and published under this adjacency."""
        records = getattr(self.objective, "n", None)
        if Adjacency.of(adjacency) is Adjacency.ADD_REMOVE:
            if self.n is None:
                raise ValueError("n must be given for adjacency='add-remove', where the number of records is private")
            return self.n
        if self.n is not None and records is not None and records != self.n:
            raise ValueError(
                f"n must be the objective's number of records, {records}, for adjacency='replace', got {self.n}"
            )
        return check_count("n", records if self.n is None else self.n)


def _lipschitz(objective: Any, given: float | None) -> float:
    """What is given, if it is at least what the objective states; or that."""
    stated = getattr(objective, "lipschitz", None)
    if given is None and stated is None:
        raise ValueError("lipschitz must be given: the objective does not say what it is")
    lipschitz = check_positive("lipschitz", stated if given is None else given)
    if stated is not None and stated > lipschitz:
        raise ValueError(f"lipschitz must be at least {stated:g}, which is that of the objective, got {lipschitz:g}")
    return lipschitz
