"""What a frontier over supports is, and what its attempts share whatever it looks like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from privsolve.arrays import Int64Array
from privsolve.engines.card_priors import CardPrior
from privsolve.engines.rejection import GREW, KEPT, LOST
from privsolve.engines.supports.chain import EXACT_IN_LOGS, TOO_LIGHT, Current, Law
from privsolve.engines.supports.fold import Fold, Grid
from privsolve.engines.supports.instance import CardInstance
from privsolve.engines.supports.logs import draw_in_logs, log_sum
from privsolve.noise.coins import SumTree, Uniforms, coin


class Frontier(Protocol):
    """All supports of an instance, each under an upper bound on its weight: the bounds of `tree` add up.

    Guarantee: given everything that happened before, an attempt returns a scorecard with probability `f / Σ U`, where f is
    its exact weight and U are the bounds of the frontier when the attempt begins (theory, section 4). So accepted
    scorecards have the law `f / Z` whatever was tightened before.
    """

    @property
    def reference(self) -> int:
        """The loss that is subtracted before exponentials are taken."""
        ...

    @property
    def tree(self) -> SumTree:
        """The current bounds of the entries."""
        ...

    @property
    def nodes(self) -> int:
        """Prefixes that have a bound beside the supports themselves."""
        ...

    def __len__(self) -> int: ...

    def attempt(self, most: int) -> tuple[int, int]:
        """Up to `most` attempts, to the first that is not lost: its outcome, and the size of the support in `Chain.now`."""
        ...

    def compile(self) -> None:
        """Compile everything that `attempt` uses, before the budget is charged."""
        ...


@dataclass(frozen=True)
class Chain:
    """The law, the fold, the support at hand, uniforms, and counts of attempts and of the steps that were reached."""

    inst: CardInstance
    law: Law
    prior: CardPrior
    grid: Grid
    fold: Fold
    now: Current
    uniforms: Uniforms
    reserve: int
    counts: Int64Array

    def finish_in_logs(self, size: int, step: int, log_bound: float) -> tuple[int, float]:
        """The end of an attempt whose weights leave the floats: its outcome and the exact bound."""
        survives = True
        if step == TOO_LIGHT:
            exact = log_sum(self.inst, self.law, self.now, size)
            if exact > log_bound:
                return GREW, exact
            survives = coin(self.uniforms.stream, exact - log_bound)
            log_bound = exact
            self.counts[1 + EXACT_IN_LOGS] += 1
        if survives:
            draw_in_logs(self.inst, self.law, self.now, size, self.uniforms.stream)
        return (KEPT if survives else LOST), log_bound
