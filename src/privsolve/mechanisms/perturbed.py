"""Perturbed minimisation: add noise to the objective, ask an oracle once, release (theory, section 1).

OPDisc and RSPM are two geometries of it: two ways in which a noise vector becomes a perturbation of the members.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from privsolve import oracles
from privsolve.arrays import Floats, Int64Array
from privsolve.checks import check_callback
from privsolve.domains import Domain
from privsolve.engines.coordinates.minimise import ProgressCallback
from privsolve.errors import OracleFailed, OracleNotCertified, PrivacyWarning, PrivsolveError, SolveInterrupted
from privsolve.losses import Loss, ZeroOneLoss
from privsolve.noise.accuracy import check_scipy
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.noise.laws import NoiseLaw, Shift
from privsolve.oracles.base import Oracle, Solution, Solve, as_oracle, oracle_tolerance, verified
from privsolve.privacy import calibration
from privsolve.privacy.accounting import Account, charged
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.guarantee import NOISE_BEYOND_RANGE, Guarantee, Proof
from privsolve.privacy.profiles import Profile, profile_of
from privsolve.problems.perturbation import UNIT, Perturbation
from privsolve.problems.problem import BaseProblem, draft_of
from privsolve.releases import Diagnostics, Release, Run

LARGEST_NORM = 2.0**26
"""Noise of this length is off by less than `2^-22` at a relative error of `2^-48`: within the margin (section 6)."""

BLOCK = 4_000_000
"""Numbers held at a time by many draws at once."""


class Public(TypedDict, total=False):
    """What noise is calibrated for, beside epsilon: no data.

    `delta` for Gaussian noise; `adjacency` ("replace" unless given); `loss` (mistakes unless given); `solver_tolerance`, the
    additive error of the oracle in mistakes.
    """

    delta: float | None
    adjacency: Adjacency | str
    loss: Loss | None
    solver_tolerance: float


class Geometry(ABC):
    """How a noise vector perturbs the members of a domain, and how far it must be able to move.

    Class attributes: `title`, the word in guarantees; `laws`, by the word that asks for each, with the section of the theory
    that proves it, the default first; `lengths`, how many lengths of the noise a release costs at most beyond the best member.
    """

    domain: Domain
    title: ClassVar[str]
    laws: ClassVar[dict[str, tuple[type[NoiseLaw], str]]]
    lengths: ClassVar[int]

    @property
    @abstractmethod
    def dim(self) -> int:
        """Dimension of the noise."""

    def effect(self, loss: Loss) -> float:
        """How much one record's loss can differ between two members, of those pairs that set the noise."""
        return loss.largest

    @abstractmethod
    def shift(self, spread: float, adjacency: Adjacency, largest: float) -> Shift:
        """Lengths of the vectors `v_w` for a range of `spread`; `largest` is the effect of one record's loss."""

    @abstractmethod
    def perturbation(self, eta: ArrayLike) -> Perturbation:
        """What noise adds to the objective, in exact integers."""

    def template(self) -> Perturbation:
        """A perturbation with the tables that noise will have, all zero."""
        return self.perturbation(np.zeros(self.dim))

    @abstractmethod
    def features(self, members: Int64Array) -> Floats:
        """Rows `f(w)` such that noise adds `<η, f(w)>`, in floating point: for many draws at once."""

    @abstractmethod
    def length(self, law: NoiseLaw, beta: float) -> float:
        """A bound on the perturbation of any member, exceeded with probability `beta` at most."""


@dataclass(frozen=True)
class Noise:
    """Noise of one law calibrated for one geometry, what it promises, and by which section of the theory."""

    geometry: Geometry
    law_type: type[NoiseLaw]
    scale: float
    profile: Profile
    theory: str

    @property
    def law(self) -> NoiseLaw:
        """The law at this scale."""
        return self.law_type(self.dim, self.scale)

    @property
    def dim(self) -> int:
        """Dimension of the noise."""
        return self.geometry.dim

    @property
    def epsilon(self) -> float:
        """The ε of a release."""
        return self.profile.epsilon

    @property
    def delta(self) -> float:
        """The δ of a release; 0 for pure privacy."""
        return self.profile.delta

    @property
    def proof(self) -> Proof:
        """How far the proof reaches."""
        return self.law_type.proof

    def draw(self, rng: Randomness) -> Floats:
        """One noise vector."""
        return self.law.draw(rng)

    def utility_bound(self, beta: float = 0.05) -> float:
        """With probability `1 - beta` the release costs at most this much more than the best member (section 2.4)."""
        return self.geometry.lengths * self.geometry.length(self.law, calibration.check_beta(beta))


def calibrate(
    geometry: Geometry,
    epsilon: float,
    *,
    noise: str,
    delta: float | None = None,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    loss: Loss | None = None,
    solver_tolerance: float = 0.0,
) -> Noise:
    """The noise that a release needs: looks at no data (theory, sections 1 and 6)."""
    epsilon = calibration.check_epsilon(epsilon)
    law, theory = _law_of(geometry, noise)
    delta = _checked_delta(law, delta)
    the_loss, the_adjacency = loss or ZeroOneLoss(), Adjacency.of(adjacency)
    largest = geometry.effect(the_loss)
    spread = calibration.effective_range(
        the_loss.range_factor(the_adjacency) * largest,
        calibration.rounding_error(geometry.domain.dim),
        solver_tolerance,
    )
    scale = law.scale_for(geometry.shift(spread, the_adjacency, largest), epsilon, delta)
    if law.proof is Proof.NONE:
        warnings.warn(
            f"noise={law.option!r} has no valid proof (theory, section {theory}): for reproducing the paper only",
            PrivacyWarning,
            stacklevel=4,
        )
    found = Noise(geometry, law, scale, profile_of(epsilon, delta), theory)
    longest = geometry.length(found.law, NOISE_BEYOND_RANGE)
    if not longest <= LARGEST_NORM:
        raise ValueError(
            f"epsilon={epsilon:g} needs noise beyond the exact integer range: use "
            f"epsilon >= {epsilon * longest / LARGEST_NORM:.2g} or a domain with a smaller radius"
        )
    return found


def minimise_perturbed(
    geometry_of: Callable[[Domain], Geometry],
    problem: BaseProblem,
    epsilon: float,
    *,
    noise: str,
    delta: float | None,
    adjacency: Adjacency | str,
    oracle: str | Oracle,
    random_state: int | np.random.SeedSequence | Randomness | None,
    progress: ProgressCallback | None,
    budget: Account | None,
) -> Run:
    """Check everything, calibrate, pay, draw the noise, solve once, release."""
    if not isinstance(problem, BaseProblem):
        raise ValueError(f"problem must be a Problem, got {type(problem).__name__}")
    check_callback("progress", progress)
    geometry = geometry_of(problem.domain)
    rng, the_oracle, the_adjacency = as_randomness(random_state), resolve_oracle(oracle), Adjacency.of(adjacency)
    prepared = the_oracle.prepare(problem, geometry.template())
    if delta is None and _law_of(geometry, noise)[0].needs_delta and the_adjacency is Adjacency.REPLACE:
        delta = max(problem.n, 1) ** -2.0  # n is public
    tolerance = oracle_tolerance(the_oracle)
    public = Public(delta=delta, adjacency=the_adjacency, loss=problem.loss, solver_tolerance=tolerance)
    found = calibrate(geometry, epsilon, noise=noise, **public)
    check_scipy()

    def promise(with_oracle: Oracle) -> Guarantee:
        return Guarantee(
            found.profile,
            the_adjacency,
            geometry.title,
            f"{found.law_type.name} noise",
            theory=found.theory,
            oracle=with_oracle.name,
            proof=found.proof,
            seeded=rng.is_seeded,
            negligible=NOISE_BEYOND_RANGE,
        )

    def answer(with_oracle: Oracle) -> Run:
        ready = prepared if with_oracle is the_oracle else with_oracle.prepare(problem, perturbation)
        solution, diagnostics = solve(with_oracle, ready, problem, perturbation, progress)
        return Run(Release(problem.model(solution.weights), promise(with_oracle), problem.setting), diagnostics)

    with charged(budget, promise(the_oracle), draft=draft_of(problem)):
        perturbation = geometry.perturbation(found.draw(rng))
        return PaidNoise(exact_enough(tolerance), answer).solve_with(the_oracle)


def perturbed_draws(problem: BaseProblem, noise: Noise, runs: int, rng: Randomness) -> Int64Array:
    """Numbers of the members that minimise loss and noise in `runs` independent draws of the noise, for audits.

    The perturbation is rounded to the unit of the exact oracles after it is summed rather than per table entry.
    """
    members = problem.domain.members()
    features, loss = noise.geometry.features(members), problem.losses_of(members).astype(np.float64)
    chosen = np.empty(runs, dtype=np.int64)
    block = max(1, BLOCK // (len(loss) + noise.dim))
    for start in range(0, runs, block):
        objective = loss + noise.law.draws(rng, min(block, runs - start)) @ features.T
        chosen[start : start + block] = np.argmin(np.rint(objective * UNIT), axis=1)
    return chosen


def _law_of(geometry: Geometry, noise: object) -> tuple[type[NoiseLaw], str]:
    if not isinstance(noise, str) or noise not in geometry.laws:
        raise ValueError(f"noise must be one of {', '.join(geometry.laws)}, got {noise!r}")
    return geometry.laws[noise]


def _checked_delta(law: type[NoiseLaw], delta: float | None) -> float:
    """The δ of a law as a float, 0 for none: pure laws take none, the others need one."""
    if delta is not None:
        delta = calibration.check_delta(delta)
    if law.needs_delta == (delta is None):
        need = "needs delta, for instance 1e-6" if law.needs_delta else "is pure epsilon-DP: leave delta=None"
        raise ValueError(f"noise={law.option!r} {need}")
    return delta or 0.0


def resolve_oracle(oracle: str | Oracle) -> Oracle:
    """The named oracle, or the object itself if it can minimise."""
    return oracles.get(oracle) if isinstance(oracle, str) else as_oracle(oracle)


def solve(
    oracle: Oracle,
    prepared: Solve,
    problem: BaseProblem,
    perturbation: Perturbation,
    progress: ProgressCallback | None,
) -> tuple[Solution, Diagnostics]:
    """One call of the oracle on the problem as it has `prepared` it, held to its certificate."""
    start = time.perf_counter()
    solution = verified(prepared(perturbation, progress), problem, perturbation, oracle)
    return solution, Diagnostics(
        seconds=time.perf_counter() - start,
        quality=problem.quality(solution.weights),
        values={
            **solution.work,
            "oracle": oracle.name,
            "objective": solution.objective,
            "bound": solution.bound,
            "certified": solution.certified,
        },
    )


class PaidNoise:
    """Noise that has been drawn and paid for, and its one answer.

    Whatever goes wrong in a solve, the error that comes out has `retry`, which solves again with the same noise. A second
    answer from the same noise, by another oracle among several optimal members, would be a second release that nobody has
    paid for: once there is an answer, `retry` gives that run again.

    Args:
        admit: turns what a user passes into an oracle; refuses one that is less exact than the noise was calibrated for.
        release: solves with an oracle and makes the run.
    """

    def __init__(self, admit: Callable[[Any], Any], release: Callable[[Any], Run]) -> None:
        self._admit, self._release = admit, release
        self._lock, self._process = threading.RLock(), os.getpid()
        self._answer: Run | None = None

    def solve_with(self, oracle: Any) -> Run:
        """The one run of this noise, by this oracle if there is none yet."""
        if os.getpid() != self._process:
            raise PrivsolveError("the noise belongs to another process: retry there, a copy could answer differently")
        the_oracle = self._admit(oracle)
        with self._lock:
            if self._answer is None:
                run = self._attempt(the_oracle)
                self._answer = self._answer or run  # an oracle may itself have asked for a retry
            return self._answer

    def _attempt(self, oracle: Any) -> Run:
        def retry(another: Any) -> Run:  # a function: copies of the error share the noise and its answer
            return self.solve_with(another)

        try:
            return self._release(oracle)
        except OracleNotCertified as error:
            error.retry = retry
            raise
        except KeyboardInterrupt:
            interrupted = SolveInterrupted("interrupted while solving: nothing was released")
            interrupted.retry = retry
            raise interrupted from None
        except Exception as error:
            failed = OracleFailed(_words(oracle, error))
            failed.retry = retry
            raise failed from error


def exact_enough(tolerance: float) -> Callable[[str | Oracle], Oracle]:
    """Admits oracles, by name or as objects, that are as exact as noise for this `tolerance` needs."""

    def admit(oracle: str | Oracle) -> Oracle:
        the_oracle = resolve_oracle(oracle)
        if oracle_tolerance(the_oracle) > tolerance:
            raise ValueError(
                f"the noise was calibrated for a tolerance of {tolerance:g}: retry with an oracle at least as exact"
            )
        return the_oracle

    return admit


def _words(oracle: Any, error: Exception) -> str:
    """What failed; the message of a foreign error stays in the cause, since it may show anything."""
    why: Any = f"{type(error).__name__}: {error}" if isinstance(error, PrivsolveError) else type(error).__name__
    return (
        f"oracle {oracle.name!r} failed ({why}): nothing is released, and the noise is kept; solve again with the "
        "same noise by error.retry(oracle)"
    )
