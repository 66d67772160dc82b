"""The exponential mechanism, sampled exactly (theory, section 4)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.checks import check_callback, check_choice, check_count
from privsolve.compiled import compile_for
from privsolve.domains import Domain, FiniteSet, check_domain
from privsolve.engines.coordinates.instance import lay_out, weights_of
from privsolve.engines.coordinates.sample import TreeSampler
from privsolve.engines.rejection import RejectionSampler, SamplingCallback, SamplingProgress
from privsolve.engines.supports.problems import declares_columns, log_prior_of_zero, support_sampler
from privsolve.engines.supports.sample import SupportSampler
from privsolve.losses import Loss, ZeroOneLoss
from privsolve.noise.coins import Stream, log_total, new_sum_tree, propose
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy import calibration
from privsolve.privacy.accounting import Account, charged
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.profiles import BoundedRange
from privsolve.problems.perturbation import Perturbation
from privsolve.problems.priors import (
    Prior,
    UniformPrior,
    checked_prior,
    log_weights,
    prior_or_uniform,
)
from privsolve.problems.problem import BaseProblem, Problem, draft_of
from privsolve.releases import Diagnostics, Release, Run

RELATIVE_ERROR = 2.5e-7
"""Bound on the relative error of any output's probability. Each method counts its roundings and refuses, before anything
is paid for, what would exceed it. Four times this is taken off epsilon (theory, section 4)."""

TOO_LARGE = "epsilon is too large for exact sampling with this many records: use a smaller one"
SMALLEST_EPSILON = 1e-5
MAX_NODES = 1 << 24
MAX_ATTEMPTS = 100_000_000
SPARE_UNIFORMS = 16


class Method(StrEnum):
    """How the exponential mechanism is sampled; the law is the same."""

    AUTO = "auto"
    """By what is public: the domain and the declared ranges of the table."""

    TREE = "tree"
    SUPPORTS = "supports"
    ENUMERATION = "enumeration"


class _Enumeration:
    """All weights listed; one descent through a tree of sums per draw."""

    def __init__(
        self, problem: BaseProblem, kappa: float, prior: Prior, rng: Randomness, progress: SamplingCallback | None
    ) -> None:
        self._start, self._progress, self._made = time.monotonic(), progress, 0
        self._members = problem.domain.members()
        losses = problem.losses_of(self._members)
        self.reference = int(losses.min())
        logs = log_weights(prior, problem.domain, self._members) - kappa * (losses - self.reference)
        self._tree = new_sum_tree(logs, len(logs))
        self._kappa, self._rng = kappa, rng
        compile_for(propose, Stream(logs, np.zeros(1, dtype=np.int64)), self._tree)
        self._small = 1000.0 + float(sum(np.abs(table).max() for table in prior.log_tables(problem.domain)))

    def relative_error(self, largest_difference: int) -> float:
        """The product with κ, the sum with the prior, and 3 for the weight in the tree; then a coin per level of it."""
        depth = len(self._tree.mantissa).bit_length()
        return 2.0**-53 * 5 * (self._kappa * largest_difference + self._small) + 2.0**-52 * 8 * depth

    def draw(self) -> Int64Array:
        stream = Stream(
            self._rng.uniform(len(self._tree.mantissa).bit_length() + SPARE_UNIFORMS), np.zeros(1, dtype=np.int64)
        )
        self._made += 1
        if self._progress is not None:
            self._progress(SamplingProgress(self._made, len(self._members), time.monotonic() - self._start))
        return np.array(self._members[propose(stream, self._tree)])

    def log_partition(self) -> float:
        return float(log_total(self._tree))

    @property
    def statistics(self) -> dict[str, Any]:
        return {"members": len(self._members)}


class _Engine:
    """A sampler of `engines/`, asked for vectors of weights: `draw` gives one."""

    def __init__(self, sampler: RejectionSampler, draw: Callable[[], Int64Array], log_zero: float = 0.0) -> None:
        self.reference, self.relative_error, self.draw = sampler.reference, sampler.relative_error, draw
        self._sampler, self._log_zero = sampler, log_zero

    def log_partition(self) -> float:
        return self._sampler.log_partition() + self._log_zero

    @property
    def statistics(self) -> dict[str, Any]:
        return asdict(self._sampler.statistics)


def _tree(problem: Problem, kappa: float, prior: Prior, rng: Randomness, **options: Any) -> _Engine:
    """The coordinate tree."""
    inst = lay_out(problem, Perturbation.zero(problem.domain))
    tables = prior.log_tables(problem.domain)
    log_prior = np.zeros(inst.values.shape)
    for row, j in zip(log_prior, inst.order, strict=True):
        row[: len(tables[j])] = tables[j]
    sampler = TreeSampler(inst, kappa, log_prior, rng, **options)
    return _Engine(sampler, partial(_of_tree, sampler))


def _of_tree(sampler: TreeSampler) -> Int64Array:
    return weights_of(sampler.inst, sampler.draw())


def _supports(problem: Problem, kappa: float, prior: Prior, rng: Randomness, **options: Any) -> _Engine:
    """The supports-first tree for scorecards."""
    sampler = support_sampler(problem, kappa, prior, rng, **options)
    return _Engine(sampler, partial(_of_supports, sampler, problem.domain.dim), log_prior_of_zero(problem, prior))


def _of_supports(sampler: SupportSampler, dim: int) -> Int64Array:
    return np.array(sampler.draw(1)[0, :dim])


class ExponentialSampler:
    """Exact draws from `P(w) ∝ prior(w) · exp(-(ε/Δ) L(w))`, with the work of one draw reused by the next.

    Copies and forked processes draw randomness of their own; one sampler must not be used by two threads at a time.

    For experiments and audits: *every draw spends epsilon*. Releasing `k` of them is `k·epsilon`-DP by composition, and
    `guarantee` is that of a single one.

    Args:
        problem: table, domain and loss.
        epsilon: privacy budget of each draw.
        adjacency: `"replace"` (one record changed, n is public) or `"add-remove"`.
        prior: a public separable prior such as `SparsePrior()`; uniform over the domain by default.
        random_state: None for the operating system's entropy; a seed makes draws repeatable, for testing only.
        method: `"auto"` picks by what is public, the domain and the declared `ranges` of the table; `"tree"`,
            `"supports"` (scorecards over 0/1 columns; a table with other values is refused) or `"enumeration"` insist.
        max_nodes: the frontier may hold this many nodes, about `4·dim + 50` bytes each; beyond it nothing is released.
        progress: called now and then with the state of the sampler (`SamplingProgress`), the curator's, not private.
        max_attempts: attempts over all draws; checked between attempts only, so that the limit cannot bias the law.

    Guarantee:
        Each draw is `epsilon`-DP and `epsilon²/8`-zCDP under the stated adjacency (theory, section 4): the target is
        sampled exactly but for a relative error of probabilities of at most 2.5e-7, for which epsilon is reduced by
        1e-6 before it is used. Running time, failures and statistics are not covered (section 7).
    """

    def __init__(
        self,
        problem: BaseProblem,
        epsilon: float,
        *,
        adjacency: Adjacency | str = Adjacency.REPLACE,
        prior: Prior | None = None,
        random_state: int | np.random.SeedSequence | Randomness | None = None,
        method: Method | str = Method.AUTO,
        max_nodes: int = MAX_NODES,
        max_attempts: int = MAX_ATTEMPTS,
        progress: SamplingCallback | None = None,
    ) -> None:
        if not isinstance(problem, BaseProblem):
            raise ValueError(f"problem must be a Problem, got {type(problem).__name__}")
        method = check_choice("method", method, Method)
        max_nodes, max_attempts = check_count("max_nodes", max_nodes), check_count("max_attempts", max_attempts)
        check_callback("progress", progress)
        epsilon = calibration.check_epsilon(epsilon)
        kappa = inverse_temperature(epsilon, adjacency, problem.loss)
        rng = as_randomness(random_state)
        self.problem = problem
        self.prior = checked_prior(prior, problem.domain)
        chosen = _best_method(problem) if method is Method.AUTO else method
        self.guarantee = Guarantee(
            BoundedRange(epsilon),
            Adjacency.of(adjacency),
            "exponential mechanism",
            "exact sample",
            theory="4",
            oracle="exact sampler",
            seeded=rng.is_seeded,
        )
        self._method = chosen
        self._draws: _Enumeration | _Engine
        if chosen is Method.ENUMERATION:
            self._draws = _Enumeration(problem, kappa, self.prior, rng, progress)
        elif not isinstance(problem, Problem):
            raise ValueError(f"method={str(chosen)!r} needs a classification Problem: use method='enumeration'")
        else:
            engine = _supports if chosen is Method.SUPPORTS else _tree
            limits: dict[str, Any] = {"max_nodes": max_nodes, "max_attempts": max_attempts, "progress": progress}
            self._draws = engine(problem, kappa, self.prior, rng, **limits)
        if not self._draws.relative_error(problem.largest_total) <= RELATIVE_ERROR:
            raise ValueError(TOO_LARGE)

    def draw(self, size: int = 1) -> Int64Array:
        """`size` independent draws as rows; each of them spends epsilon."""
        if size < 0:
            raise ValueError(f"size must not be negative, got {size}")
        rows = np.empty((size, self.problem.domain.dim), dtype=np.int64)
        for row in rows:
            row[:] = self._draws.draw()
        return rows

    def log_partition(self) -> float:
        """`log Σ_w prior(w) exp(-(ε/Δ)(L(w) - reference))` by visiting everything: for small domains. Not private."""
        return self._draws.log_partition()

    @property
    def reference(self) -> int:
        """The loss that is subtracted before exponentials are taken. Not private."""
        return self._draws.reference

    @property
    def statistics(self) -> dict[str, Any]:
        """Method, frontier size, attempts and the like: the curator's, not private."""
        return {"method": str(self._method), **self._draws.statistics}


def _best_method(problem: BaseProblem) -> Method:
    """By what is public alone: the problem, the domain, the scales and the declared ranges of the features."""
    if isinstance(problem.domain, FiniteSet) or not isinstance(problem, Problem):
        return Method.ENUMERATION
    return Method.SUPPORTS if declares_columns(problem) else Method.TREE


def inverse_temperature(epsilon: float, adjacency: Adjacency | str, loss: Loss) -> float:
    """`κ = ε/Δ` with the slack for rounding taken off epsilon first (theory, section 4)."""
    return temperature_of(epsilon, loss.range_factor(Adjacency.of(adjacency)) * loss.largest)


def temperature_of(epsilon: float, sensitivity: int) -> float:
    """`κ = ε/Δ` for a sensitivity Δ, with the slack for rounding taken off epsilon first (theory, section 4)."""
    epsilon = calibration.check_epsilon(epsilon)
    if epsilon < SMALLEST_EPSILON:
        raise ValueError(f"epsilon must be at least {SMALLEST_EPSILON:g} for the exact sampler, got {epsilon:g}")
    return (epsilon - 4 * RELATIVE_ERROR) / sensitivity


def exponential_utility_bound(
    domain: Domain,
    epsilon: float,
    *,
    weights: NDArray[np.int64] | None = None,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    prior: Prior | None = None,
    loss: Loss | None = None,
    beta: float = 0.05,
) -> float:
    """With probability `1 - beta` the release costs at most this much more than `weights` does (theory, section 4).

    Nothing here looks at data. `weights` may be left out for the uniform prior, where it does not matter.
    """
    check_domain(domain)
    beta = calibration.check_beta(beta)
    the_loss = loss or ZeroOneLoss()
    the_prior = prior_or_uniform(prior)
    if weights is None and not isinstance(the_prior, UniformPrior):
        raise ValueError("weights must be given with this prior: the bound depends on how likely the target is")
    if weights is not None and not domain.contains(weights):
        raise ValueError("weights must be a member of the domain, as an array of integers")
    log_p = the_prior.log_probability(domain, np.zeros(domain.dim) if weights is None else weights)
    return (-log_p - math.log(beta)) / inverse_temperature(epsilon, adjacency, the_loss)


def exponential(
    problem: BaseProblem,
    epsilon: float,
    *,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    prior: Prior | None = None,
    random_state: int | np.random.SeedSequence | Randomness | None = None,
    method: Method | str = Method.AUTO,
    max_nodes: int = MAX_NODES,
    max_attempts: int = MAX_ATTEMPTS,
    progress: SamplingCallback | None = None,
    budget: Account | None = None,
) -> Run:
    """Choose weights privately by one exact draw from the exponential mechanism; see `ExponentialSampler`.

    `budget` is an `Accountant` or a `Ledger` that pays for the release, or refuses it, before anything is drawn.

    Guarantee:
        The weights are `epsilon`-DP and `epsilon²/8`-zCDP under the stated adjacency (theory, section 4). Running time,
        failures and the diagnostics are not covered (section 7). An interrupted or failed run releases nothing.
    """
    start = time.perf_counter()
    rng = as_randomness(random_state)
    sampler = ExponentialSampler(
        problem,
        epsilon,
        adjacency=adjacency,
        prior=prior,
        random_state=rng,
        method=method,
        max_nodes=max_nodes,
        max_attempts=max_attempts,
        progress=progress,
    )
    with charged(budget, sampler.guarantee, draft=draft_of(problem)):
        try:
            weights = sampler.draw()[0]
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted while sampling: nothing was released") from None
    # outside the block: whoever holds signals back after the draw does so from here on
    diagnostics = Diagnostics(time.perf_counter() - start, problem.quality(weights), sampler.statistics)
    return Run(Release(problem.model(weights), sampler.guarantee, problem.setting), diagnostics)


def exponential_law(
    problem: BaseProblem, epsilon: float, *, adjacency: Adjacency | str = Adjacency.REPLACE, prior: Prior | None = None
) -> NDArray[np.float64]:
    """Log probability of every member under the exponential mechanism, in the order of `problem.domain.members()`."""
    the_prior = checked_prior(prior, problem.domain)
    members = problem.domain.members()
    losses = problem.losses_of(members)
    kappa = inverse_temperature(epsilon, adjacency, problem.loss)
    logs = log_weights(the_prior, problem.domain, members) - kappa * (losses - losses.min())
    return np.asarray(logs - np.logaddexp.reduce(logs))


SHORT = 3
"""The sparsity prior helps cards with about so many features; the bound is for them."""
