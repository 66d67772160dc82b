"""Cards in as many stages as a noisy count of the records says: for where their number is not public (theory, 13.2)."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from privsolve.checks import check_callback
from privsolve.domains import SparsePoints
from privsolve.engines.rejection import SamplingCallback
from privsolve.engines.supports.problems import columns_of
from privsolve.mechanisms.stages import ENOUGH_RECORDS, StageDraws, Stages, check_plan, number_of_stages
from privsolve.noise.discrete import DiscreteLaplace
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy import calibration
from privsolve.privacy.accounting import Account, charged
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.decimals import at_least, at_most, exact
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.profiles import Pure
from privsolve.problems.problem import Problem
from privsolve.problems.questions import question_of
from privsolve.releases import Run

SHARE = Fraction(1, 100)
"""Of epsilon, for the count: its deviation is about 140 records over epsilon, where the first step of the rule is 700."""


@dataclass(frozen=True)
class CountedStages:
    """Public plans of one, two, three stages; a noisy count of the records chooses one of them by `number_of_stages`."""

    plans: tuple[Stages, ...]

    def __post_init__(self) -> None:
        if [plan.count for plan in self.plans] != list(range(1, len(ENOUGH_RECORDS) + 2)):
            raise ValueError(f"plans must be of 1 to {len(ENOUGH_RECORDS) + 1} stages, in this order")

    @classmethod
    def of(cls, dim: int, **options: Any) -> CountedStages:
        """The plans that `Stages.of` makes with the same options."""
        return cls(tuple(Stages.of(dim, count, **options) for count in range(1, len(ENOUGH_RECORDS) + 2)))

    @property
    def domain(self) -> SparsePoints:
        """That of the plan with most stages."""
        return self.plans[-1].domain

    def chosen(self, epsilon: float, count: int) -> Stages:
        """The plan for about so many records."""
        return self.plans[number_of_stages(epsilon, count, Adjacency.ADD_REMOVE) - 1]


def count_and_stages(epsilon: float) -> tuple[float, float]:
    """The epsilon of the count and that of all stages; they add up to no more than `epsilon`, exactly."""
    count = at_most(SHARE * exact(calibration.check_epsilon(epsilon)))
    return count, at_most(exact(epsilon) - exact(count))


def staged_by_count(
    problem: Problem,
    epsilon: float,
    plan: CountedStages,
    *,
    random_state: int | np.random.SeedSequence | Randomness | None = None,
    progress: SamplingCallback | None = None,
    budget: Account | None = None,
) -> Run:
    """Count the records with exact discrete Laplace noise, then choose a card in as many stages as that says; see `staged`.

    `problem.domain` must be `plan.domain`. The release names the plan that was chosen and the noisy count.

    Guarantee:
        Card, count and number of stages together are `epsilon`-DP under `"add-remove"`, and zero-concentrated with the sum of
        the two parts (theory, 13.2). Running time, failures and the diagnostics are not covered (section 7).
    """
    start = time.perf_counter()
    check_plan(problem, plan, CountedStages)
    check_callback("progress", progress)
    rng = as_randomness(random_state)
    own, left = count_and_stages(epsilon)
    problems = [replace(problem, domain=one.domain) for one in plan.plans]
    columns = columns_of(replace(problem, domain=plan.plans[0].domains[0]))
    draws = [
        StageDraws(narrow, one, columns, Adjacency.ADD_REMOVE, rng, progress)
        for narrow, one in zip(problems, plan.plans, strict=True)
    ]
    for one in draws:
        one.check(one.plan.epsilons(left))
    draws[0].first((left,))  # compiles, and takes at least the memory that any other stage takes
    guarantee, noise = _guarantee(problem, epsilon, plan, rng), DiscreteLaplace(1 / exact(own))
    rng.ask(question_of(problem, epsilon=epsilon, adjacency=Adjacency.ADD_REMOVE, plan=plan))
    with charged(budget, guarantee):
        count = problem.n + int(noise.draws(rng, 1)[0])
        chosen = draws[plan.chosen(epsilon, count).count - 1]
        shares = chosen.plan.epsilons(left)
        try:
            found = chosen.all_drawn(shares, [])
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted while sampling: nothing was released") from None
    return found.run(start, guarantee, chosen.plan.setting(shares) | {"count": {"records": count, "epsilon": own}})


def _guarantee(problem: Problem, epsilon: float, plan: CountedStages, rng: Randomness) -> Guarantee:
    """What holds whichever plan is chosen: that of one stage has the largest ρ (theory, 13.2)."""
    own, left = (exact(part) for part in count_and_stages(epsilon))
    return Guarantee(
        Pure(calibration.check_epsilon(epsilon), at_least(own**2 / 2 + left**2 / 8)), Adjacency.ADD_REMOVE,
        f"noisy count, then exponential mechanism in up to {len(plan.plans)} stages",
        "exact sample and discrete Laplace noise", theory="13", oracle="exact sampler", seeded=rng.is_seeded,
        schema_guessed=problem.schema_guessed,
    )  # fmt: skip
