"""A scorecard or a decision tree, chosen in one exact draw from both (theory, unions)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from privsolve.checks import check_callback, check_count, check_finite
from privsolve.domains.trees import TreePrior
from privsolve.engines.choosing import FrontierChoice, choosing_error
from privsolve.engines.rejection import SamplingProgress
from privsolve.engines.supports.instance import LARGEST_SUPPORT
from privsolve.engines.supports.problems import columns_of, declares_columns, support_sampler
from privsolve.errors import PrivsolveError
from privsolve.mechanisms.exponential import (
    MAX_ATTEMPTS,
    MAX_NODES,
    RELATIVE_ERROR,
    TOO_LARGE,
    inverse_temperature,
)
from privsolve.mechanisms.trees import MAX_MEMORY, MAX_WORK, TreeSampler
from privsolve.mechanisms.trees import setting_of as tree_setting
from privsolve.models.tree import Node
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy import calibration
from privsolve.privacy.accounting import Account, charged
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.profiles import BoundedRange
from privsolve.problems.priors import Prior, check_prior, default_prior, log_mass
from privsolve.problems.problem import draft_of
from privsolve.problems.unions import CardOrTree, UnionProblem
from privsolve.releases import Diagnostics, Release, Run

LEAST_WEIGHT = 1e-9


class ModelClass(StrEnum):
    """The classes to choose from."""

    CARD = "card"
    TREE = "tree"


EQUAL_WEIGHTS: Mapping[str, float] = {ModelClass.CARD: 0.5, ModelClass.TREE: 0.5}


@dataclass(frozen=True)
class UnionProgress:
    """How far a draw is: the share of the sums over trees that is made, a public number, and the work on cards, which is
    not private.
    """

    trees: float
    attempts: int = 0
    frontier: int = 0


UnionCallback = Callable[[UnionProgress], None]


class UnionSampler:
    """Exact draws from `P(x) ∝ p₀(x) · exp(-(ε/Δ) L(x))` over scorecards and trees together.

    `p₀` is the prior of the cards times `weights["card"]` and that of the trees times `weights["tree"]`. The sum over trees
    is exact, so it stands beside the frontier of the cards as one more entry (theory, unions).

    For experiments and audits: *every draw spends epsilon*, and `guarantee` is that of a single one.

    Args:
        problem: records, scorecards, trees and their loss.
        epsilon: privacy budget of each draw.
        weights: how likely each class is before the data is seen, public; they are divided by their sum.
        card_prior: of the scorecards; cards with about two features by default.
        tree_prior: of the trees.
        adjacency: `"replace"` (one record changed, n is public) or `"add-remove"`.
        random_state: None for the operating system's entropy; a seed makes draws repeatable, for testing only.
        simplify: take out questions of a tree whose two sides say the same.
        max_nodes, max_attempts: limits on the cards, as in `ExponentialSampler`.
        max_memory, max_work: limits on the trees, as in `TreeSampler`.
        progress: called with the state of the sampler (`UnionProgress`), the curator's, not private.

    Guarantee:
        Each draw is `epsilon`-DP and `epsilon²/8`-zCDP under the stated adjacency (theory, section 4 and unions). Running
        time, failures and statistics are not covered (section 7).
    """

    def __init__(
        self,
        problem: UnionProblem,
        epsilon: float,
        *,
        weights: Mapping[str, float] = EQUAL_WEIGHTS,
        card_prior: Prior | None = None,
        tree_prior: TreePrior | None = None,
        adjacency: Adjacency | str = Adjacency.REPLACE,
        random_state: int | np.random.SeedSequence | Randomness | None = None,
        simplify: bool = True,
        max_nodes: int = MAX_NODES,
        max_attempts: int = MAX_ATTEMPTS,
        max_memory: int = MAX_MEMORY,
        max_work: int = MAX_WORK,
        progress: UnionCallback | None = None,
    ) -> None:
        if not isinstance(problem, UnionProblem):
            raise ValueError(f"problem must be a UnionProblem, got {type(problem).__name__}")
        check_callback("progress", progress)
        self.problem, self.weights = problem, checked_weights(weights)
        epsilon = calibration.check_epsilon(epsilon)
        rng = as_randomness(random_state)
        self.guarantee = Guarantee(
            BoundedRange(epsilon), Adjacency.of(adjacency), "exponential mechanism", "exact sample", theory="4",
            oracle="exact sampler and exact sums over trees", seeded=rng.is_seeded,
        )  # fmt: skip
        self.card_prior = default_prior(problem.domain) if card_prior is None else card_prior
        check_prior(self.card_prior, problem.domain)
        self._progress, self._done = progress, UnionProgress(0.0)
        self.trees = TreeSampler(
            problem.grown, epsilon, prior=tree_prior, adjacency=adjacency, random_state=rng, simplify=simplify,
            max_memory=max_memory, max_work=max_work, progress=self._summed,
        )  # fmt: skip
        self._kappa = inverse_temperature(epsilon, adjacency, problem.loss)
        if self._kappa != self.trees.kappa:
            raise PrivsolveError("cards and trees have different temperatures, which is a defect: nothing is released")
        if problem.domain.max_features > LARGEST_SUPPORT:
            raise ValueError(f"max_features must be at most {LARGEST_SUPPORT} where trees are offered too")
        if not declares_columns(problem.cards):
            raise ValueError("cards and trees ask yes/no questions: the table must have 0/1 features with scales of 1")
        self.cards = support_sampler(
            problem.cards, columns_of(problem.cards), self._kappa, self.card_prior, rng,
            max_nodes=check_count("max_nodes", max_nodes), max_attempts=check_count("max_attempts", max_attempts),
            progress=self._attempted,
        )  # fmt: skip
        self._log_mass = log_mass(self.card_prior, problem.domain)
        if self.relative_error() > RELATIVE_ERROR:
            raise ValueError(TOO_LARGE)
        self._choice = FrontierChoice(rng)

    def relative_error(self) -> float:
        """Bound on the relative error of any weight, from public numbers and the number of records (theory, unions)."""
        problem, domain = self.problem, self.problem.domain
        largest = problem.n * problem.loss.largest
        columns = sum(float(np.abs(table).max()) for table in self.card_prior.log_tables(domain))
        public = 1000.0 + domain.dim + abs(self._log_mass) + 2 * columns - self.trees.prior.least_log(problem.trees)
        public += sum(-math.log(weight) for weight in self.weights.values())
        choosing = choosing_error(self._kappa * largest + public)
        return choosing + max(self.cards.relative_error(largest), self.trees.relative_error)

    def draw(self) -> CardOrTree:
        """A tree, or the weights of a scorecard; every call spends epsilon."""
        with self._choice.held():
            while True:
                found = self._attempt()
                if found is not None:
                    return found

    def _attempt(self) -> CardOrTree | None:
        """One attempt: a class in proportion to its current bound, then a member of it; None if it is lost."""
        if self._chosen() is ModelClass.TREE:
            return self.trees.attempt()
        return self.cards.drawn()[: self.problem.domain.dim] if self.cards.attempt() else None

    def _chosen(self) -> ModelClass:
        """A class with probability in proportion to its current bound."""
        kinds, logs = zip(*self.log_bounds().items(), strict=True)
        chosen: ModelClass = kinds[self._choice.among(logs)]
        return chosen

    def log_bounds(self) -> dict[ModelClass, float]:
        """The logarithms of the current bounds of the classes, both relative to the cards' reference loss. Not private."""
        gap = self.trees.reference - self.cards.reference
        return {
            ModelClass.CARD: self.cards.log_bound() + (math.log(self.weights[ModelClass.CARD]) - self._log_mass),
            ModelClass.TREE: self.trees.log_partition() + math.log(self.weights[ModelClass.TREE]) - self._kappa * gap,
        }

    @property
    def statistics(self) -> dict[str, Any]:
        """What the draws have cost: the curator's, not private."""
        return {"cards": asdict(self.cards.statistics), "trees": asdict(self.trees.work)}

    def _summed(self, share: float) -> None:
        self._tell(UnionProgress(share, self._done.attempts, self._done.frontier))

    def _attempted(self, state: SamplingProgress) -> None:
        self._tell(UnionProgress(self._done.trees, state.attempts, state.frontier))

    def _tell(self, state: UnionProgress) -> None:
        self._done = state
        if self._progress is not None:
            self._progress(state)


def private_union(
    problem: UnionProblem,
    epsilon: float,
    *,
    weights: Mapping[str, float] = EQUAL_WEIGHTS,
    card_prior: Prior | None = None,
    tree_prior: TreePrior | None = None,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    random_state: int | np.random.SeedSequence | Randomness | None = None,
    simplify: bool = True,
    max_nodes: int = MAX_NODES,
    max_attempts: int = MAX_ATTEMPTS,
    max_memory: int = MAX_MEMORY,
    max_work: int = MAX_WORK,
    progress: UnionCallback | None = None,
    budget: Account | None = None,
) -> Run:
    """Choose a scorecard or a decision tree privately, whichever fits better, by one exact draw; see `UnionSampler`.

    `budget` is an `Accountant` or a `Ledger` that pays for the release, or refuses it, after everything has been checked and
    compiled and before anything is drawn.

    Guarantee:
        The model is `epsilon`-DP and `epsilon²/8`-zCDP under the stated adjacency (theory, section 4 and unions), which of
        the two it is included. Running time, failures and the diagnostics are not covered (section 7). An interrupted or
        failed run releases nothing.
    """
    start = time.perf_counter()
    rng = as_randomness(random_state)
    sampler = UnionSampler(
        problem, epsilon, weights=weights, card_prior=card_prior, tree_prior=tree_prior, adjacency=adjacency,
        random_state=rng, simplify=simplify, max_nodes=max_nodes, max_attempts=max_attempts,
        max_memory=max_memory, max_work=max_work, progress=progress,
    )  # fmt: skip
    with charged(budget, sampler.guarantee, draft=draft_of(problem)):
        try:
            chosen = sampler.draw()
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted while sampling: nothing was released") from None
    diagnostics = Diagnostics(time.perf_counter() - start, problem.quality(chosen), sampler.statistics)
    return Run(Release(problem.model(chosen), sampler.guarantee, _setting(sampler, chosen)), diagnostics)


def checked_weights(weights: Mapping[str, float]) -> dict[ModelClass, float]:
    """The weights of the two classes, divided by their sum; raise for anything else."""
    if not isinstance(weights, Mapping) or set(weights) != set(ModelClass):
        raise ValueError(f"weights must say how likely card and tree are, such as {dict(EQUAL_WEIGHTS)}")
    found = {kind: check_finite("weights", weights[kind], "be positive numbers") for kind in ModelClass}
    total = sum(found.values())
    if not all(weight > 0 and weight >= LEAST_WEIGHT * total for weight in found.values()):
        raise ValueError(
            f"weights must be positive, and at least {LEAST_WEIGHT:g} of their sum: leave out a class that is not wanted"
        )
    return {kind: weight / total for kind, weight in found.items()}


def _setting(sampler: UnionSampler, chosen: CardOrTree) -> dict[str, Any]:
    """How the model was chosen, the class that it is not of included."""
    cards, trees = sampler.problem.cards.setting, tree_setting(sampler.problem.trees, sampler.trees.prior)
    both = {
        "weights": {str(kind): weight for kind, weight in sampler.weights.items()},
        "cards": cards | {"prior": sampler.card_prior.to_dict()},
        "trees": trees,
    }
    own = trees if isinstance(chosen, Node) else cards
    return own | {"union": both}
