"""Private decision trees: one exact draw from all trees of a depth (theory, trees)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import cached_property

import numpy as np

from privsolve.checks import check_callback, check_count, check_integer
from privsolve.domains.trees import SPLIT, DecisionTrees
from privsolve.engines.trees.sampler import TreeSums, Work, relative_error, work_of
from privsolve.mechanisms.exponential import RELATIVE_ERROR, temperature_of
from privsolve.models.tree import DecisionTree, Node, simplified
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy import calibration
from privsolve.privacy.accounting import Account, charged
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.profiles import BoundedRange
from privsolve.problems.problem import draft_of
from privsolve.problems.trees import TreeProblem
from privsolve.releases import Diagnostics, Release, Run

MAX_MEMORY = 4 * 2**30
MAX_WORK = 10**12
"""Leaf values that a sum may look at: about half an hour."""

ProgressCallback = Callable[[float], None]


class TreeSampler:
    """Exact draws from `P(T) ∝ p₀(T) · exp(-(ε/Δ) L(T))` over all trees of a depth; the sum is made once.

    For experiments and audits: *every draw spends epsilon*, and `guarantee` is that of a single one.

    Args:
        problem: records, questions, depth and leaves.
        epsilon: privacy budget of each draw.
        adjacency: `"replace"` (one record changed, n is public) or `"add-remove"`.
        random_state: None for the operating system's entropy; a seed makes draws repeatable, for testing only.
        max_memory: in bytes; a sum that needs more is refused, before anything is paid.
        max_work: so many leaf values are looked at, at most; `work` has the number, which is public.
        progress: is told the share of the work that is done.

    Guarantee:
        Each draw is `epsilon`-DP and `epsilon²/8`-zCDP under the stated adjacency (theory, section 4 and trees). Running
        time, failures and statistics are not covered (section 7).
    """

    def __init__(
        self,
        problem: TreeProblem,
        epsilon: float,
        *,
        adjacency: Adjacency | str = Adjacency.REPLACE,
        random_state: int | np.random.SeedSequence | Randomness | None = None,
        max_memory: int = MAX_MEMORY,
        max_work: int = MAX_WORK,
        progress: ProgressCallback | None = None,
    ) -> None:
        check_callback("progress", progress)
        self.problem = problem
        self.work = _check_work(problem, max_memory, max_work, adjacency)
        kappa = tree_temperature(problem.trees, epsilon, adjacency)
        self._rng, self._progress = as_randomness(random_state), progress
        self.guarantee = Guarantee(
            BoundedRange(calibration.check_epsilon(epsilon)),
            Adjacency.of(adjacency),
            "exponential mechanism",
            "exact sample",
            theory="4",
            oracle="exact sums over trees",
            seeded=self._rng.is_seeded,
        )
        self._sums = TreeSums(problem, kappa)
        if relative_error(problem, kappa) > RELATIVE_ERROR:
            raise ValueError("epsilon is too large for exact draws with this many records: use a smaller one")
        self._sums.compile()

    @cached_property
    def sums(self) -> TreeSums:
        """All sums: made at first use. Not private."""
        return self._sums.solve(self._progress)

    def draw(self) -> Node:
        """One tree, without questions whose two sides say the same; every call spends epsilon."""
        return simplified(self.sums.draw(self._rng))


def private_tree(
    problem: TreeProblem,
    epsilon: float,
    *,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    random_state: int | np.random.SeedSequence | Randomness | None = None,
    max_memory: int = MAX_MEMORY,
    max_work: int = MAX_WORK,
    progress: ProgressCallback | None = None,
    budget: Account | None = None,
) -> Run:
    """Choose a decision tree privately by one exact draw from all trees of a depth.

    Args:
        problem, epsilon, adjacency, random_state, max_memory, max_work, progress: as in `TreeSampler`.
        budget: an `Accountant` or a `Ledger` that pays for the release, or refuses it, after everything has been checked and
            compiled and before anything is drawn.

    Guarantee:
        The tree is `epsilon`-DP and `epsilon²/8`-zCDP under the stated adjacency (theory, section 4 and trees). Running
        time, failures and the diagnostics are not covered (section 7). An interrupted or failed run releases nothing.
    """
    start = time.perf_counter()
    sampler = TreeSampler(
        problem,
        epsilon,
        adjacency=adjacency,
        random_state=random_state,
        max_memory=max_memory,
        max_work=max_work,
        progress=progress,
    )
    with charged(budget, sampler.guarantee, draft=draft_of(problem)):
        try:
            tree = sampler.draw()
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted while summing: nothing was released") from None
    values = asdict(sampler.work) | {"least_loss": sampler.sums.least_loss}
    diagnostics = Diagnostics(time.perf_counter() - start, problem.quality(tree), values)
    setting = {"trees": problem.trees.to_dict(), "prior": {"split": SPLIT}}
    return Run(Release(problem.model(tree), sampler.guarantee, setting), diagnostics)


def best_tree(
    problem: TreeProblem,
    *,
    price: int = 0,
    max_memory: int = MAX_MEMORY,
    max_work: int = MAX_WORK,
) -> tuple[DecisionTree, int]:
    """The certified best tree *without privacy*: the least `L(T) + price·leaves(T)` over all trees, and that number.

    `price` is in the whole units of the loss. Not for publication.
    """
    price = check_integer("price", price, 0, 2**40)
    _check_work(problem, max_memory, max_work)
    sums = TreeSums(problem, 1.0, price=price, sums=False).solve()
    return problem.model(simplified(sums.best())), sums.least_loss


def tree_temperature(trees: DecisionTrees, epsilon: float, adjacency: Adjacency | str) -> float:
    """`κ = ε/Δ` with the slack for rounding taken off epsilon first (theory, trees)."""
    return temperature_of(epsilon, Adjacency.of(adjacency).range_factor * trees.leaves.range)


def _check_work(
    problem: TreeProblem, max_memory: int, max_work: int, adjacency: Adjacency | str = Adjacency.REPLACE
) -> Work:
    """The work of a sum, or an error that says how to make it smaller.

    By public facts: under add-remove the number of records is none, and the memory of their table is not counted.
    """
    if not isinstance(problem, TreeProblem):
        raise ValueError(f"problem must be a TreeProblem, got {type(problem).__name__}")
    max_memory, max_work = check_count("max_memory", max_memory), check_count("max_work", max_work)
    work = public_work(problem.trees, problem.records if Adjacency.of(adjacency) is Adjacency.REPLACE else 0)
    if work.memory > max_memory:
        raise ValueError(
            f"trees of depth {problem.trees.depth} over {problem.trees.questions.size} features need about "
            f"{work.memory / 2**20:,.0f} MiB, more than max_memory={max_memory}: use a smaller depth or fewer features"
        )
    if work.leaf_values > max_work:
        raise ValueError(
            f"trees of depth {problem.trees.depth} over {problem.trees.questions.size} features take about "
            f"{work.seconds:,.0f} s ({work.leaf_values:.2g} leaf values), more than max_work={max_work}: use a smaller "
            "depth, fewer features or fewer leaf values"
        )
    return work


def public_work(trees: DecisionTrees, records: int) -> Work:
    """The work of a sum for so many records, before the data is seen."""
    return work_of(trees, min(records, math.prod(trees.questions.radices)))
