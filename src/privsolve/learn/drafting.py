"""An estimator without a schema drafts one privately, and a part of its epsilon pays for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privsolve.data import Schema
from privsolve.data.private import DRAFT_SHARE, default_delta, private_draft
from privsolve.noise.entropy import Randomness
from privsolve.privacy.accounting import Account, Accountant, check_adjacency
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.calibration import check_epsilon
from privsolve.privacy.decimals import at_most, exact
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.ledger import Ledger
from privsolve.privacy.profiles import Profile, profile_of

RandomState = int | np.random.SeedSequence | Randomness | None


def split(epsilon: float) -> tuple[float, float]:
    """The parts of an estimator's epsilon for the draft and for the fit; they sum to at most epsilon."""
    total = exact(check_epsilon(epsilon))
    draft = at_most(exact(DRAFT_SHARE) * total)
    return draft, at_most(total - exact(draft))


def drafted_schema(
    frame: Any,
    numbers: Sequence[str],
    epsilon: float,
    adjacency: Adjacency | str,
    budget: Account | None,
    random_state: RandomState,
    fit_delta: float = 0.0,
) -> Schema:
    """A private draft for a table of features, paid from the budget, which must be able to pay for the fit as well."""
    draft, fit = split(epsilon)
    records = len(frame) if Adjacency.of(adjacency) is Adjacency.REPLACE else None
    pure = isinstance(budget, Accountant | Ledger) and not budget.budget.release_delta
    if isinstance(random_state, int | np.integer):
        random_state = np.random.SeedSequence([int(random_state), 12])  # not the words that the fit will draw
    return private_draft(
        frame,
        None,
        draft,
        0.0 if pure else default_delta(records),
        numbers=numbers,
        adjacency=adjacency,
        random_state=random_state,
        budget=None if budget is None else _Both(budget, profile_of(fit, fit_delta)),
    ).schema


class _Both:
    """Pays for the draft, and refuses where nothing would be left for the fit."""

    def __init__(self, budget: Account, fit: Profile) -> None:
        self._budget, self._fit = budget, fit

    def spending(self, guarantee: Guarantee, note: str = "", **how: Any) -> Any:
        """Pay for the draft."""
        budget = self._budget
        if isinstance(budget, Accountant | Ledger) and getattr(budget, "plan", None) is None:
            check_adjacency(guarantee, budget.budget.adjacency)
            totals = budget.totals if isinstance(budget, Accountant) else budget.totals()
            fit = Guarantee(self._fit, guarantee.adjacency, "fit", "none yet", theory="12", oracle="none")
            budget.budget.check(budget.budget.check(totals, guarantee), fit)
        return budget.spending(guarantee, note, **how)
