"""OPSamp: the average of many perturbed optima, with Laplace noise, over a box of real numbers (theory, section 5)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from math import fsum
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from privsolve.arrays import Floats, Int64Array
from privsolve.checks import check_between
from privsolve.continuous.oracles import ContinuousOracle, PiecewiseLinearOracle, as_oracle
from privsolve.continuous.problem import BoxProblem, PiecewiseLinear
from privsolve.continuous.stability import SamplingNoise, SamplingPlan, plan_opsamp
from privsolve.errors import OracleNotCertified, PrivacyWarning
from privsolve.mechanisms.perturbed import PaidNoise
from privsolve.models.choices import SETTING, Box, BoxPoint, top_steps
from privsolve.noise.discrete import DiscreteLaplace
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy.accounting import Account, charged
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.guarantee import Guarantee, Proof
from privsolve.privacy.profiles import profile_of
from privsolve.releases import Diagnostics, Release, Run

LARGEST_NOISE = 2**28
"""Numbers of noise that one run may draw, `draws` times the dimension: 2 GB of them."""

NOT_PROVED = "the published calibration has no valid proof (theory, section 5): for reproducing the paper only"

MOST_JOBS = 4096

BATCHES = 64
"""Oracle calls are sent out in this many batches at most, whatever the number of workers."""


def opsamp(
    problem: BoxProblem,
    epsilon: float,
    delta: float,
    draws: int | None,
    *,
    oracle: ContinuousOracle | None = None,
    noise: SamplingNoise | None = None,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    random_state: int | np.random.SeedSequence | Randomness | None = None,
    n_jobs: int | None = None,
    budget: Account | None = None,
) -> Run:
    """Minimise a Lipschitz loss over a box privately: average `draws` perturbed optima and add Laplace noise.

    Args:
        problem: the total loss, the box, and what is public about them.
        epsilon: privacy budget of this release.
        delta: probability with which the privacy may fail; choose it far below `1/n`.
        draws: number of oracle calls. `draws_needed` says how many suffice, `plan_opsamp` what to expect of them.
            None takes the published number with the published calibration.
        oracle: any object with `minimise(objective, box, eta)` and a stated additive `tolerance` in the total loss; see
            `privsolve.continuous.oracles`. Its answer must depend on the data and `eta` alone. None takes the exact one
            for a `PiecewiseLinear` objective.
        noise: how the noise is calibrated, if not by default.
        adjacency: `"replace"` (one record changed, n is public) or `"add-remove"`.
        random_state: None for the operating system's entropy; a seed makes the run repeatable, for testing only.
        n_jobs: for joblib; None is one job, or what `joblib.parallel_config` says. The result does not depend on it.
        budget: an `Accountant` or a `Ledger` that pays for the release, or refuses it, before the noise is drawn.

    Guarantee:
        The point is `(epsilon, delta)`-DP under the stated adjacency (theory, section 5), convex or not, provided that
        the losses are `lipschitz` in ℓ1 and that every answer of the oracle is within its stated error: the stability
        lemma bounds the expected distance of answers on neighbouring data, a Chernoff bound that of their averages but
        for probability `delta`, and discrete Laplace noise on the grid covers it. Rounding of the noise, of the mean and
        to the grid is included. Running time, failures, worker traffic and the diagnostics are not covered (section 7).
        After an error use its `retry`: calling again draws fresh noise, which voids the guarantee if the error depended
        on the data. `SamplingNoise("published")` is not proved.
    """
    start = time.perf_counter()
    if not isinstance(problem, BoxProblem):
        raise ValueError(f"problem must be a BoxProblem, got {type(problem).__name__}")
    solver, rng = _oracle_for(problem, oracle), as_randomness(random_state)
    plan = _plan(problem, epsilon, delta, draws, solver, noise, Adjacency.of(adjacency))
    _check_jobs(n_jobs)
    if not plan.proved:
        warnings.warn(NOT_PROVED, PrivacyWarning, stacklevel=2)
    prepared = solver.prepare(problem.objective, problem.box)  # what the oracle cannot take is refused before paying
    guarantee = _guarantee(plan, solver, Adjacency.of(adjacency), seeded=rng.is_seeded)
    with charged(budget, guarantee):
        # all objective noise is drawn here, so that the result does not depend on who solves what
        etas = exponential_noise(rng, plan.sigma, (plan.draws, problem.box.dim), centred=plan.centred)

        def run(with_oracle: ContinuousOracle) -> Run:
            objective = prepared if with_oracle is solver else with_oracle.prepare(problem.objective, problem.box)
            points, gap = _solved(with_oracle, objective, problem.box, etas, n_jobs)
            promise = replace(guarantee, oracle=_oracle_name(with_oracle))
            return _released(problem.box, plan, points, gap, promise, rng, start)

        return PaidNoise(_exact_enough(problem, plan), run).solve_with(solver)


def _guarantee(plan: SamplingPlan, solver: ContinuousOracle, adjacency: Adjacency, *, seeded: bool) -> Guarantee:
    return Guarantee(
        profile_of(plan.epsilon, plan.delta),
        adjacency,
        "OPSamp",
        "discrete Laplace noise on the average of perturbed optima",
        theory="5",
        oracle=_oracle_name(solver),
        proof=Proof.COMPLETE if plan.proved else Proof.NONE,
        seeded=seeded,
    )


def _released(
    box: Box, plan: SamplingPlan, points: Floats, gap: float, promise: Guarantee, rng: Randomness, start: float
) -> Run:
    """The average of the answers, if every one of them is as exact as was promised, with its noise."""
    _check_answers(points, gap, box, plan.draws, plan.error)
    model = BoxPoint(tuple(int(k) for k in noisy_steps(points, box, plan, rng)), box, plan.grid)
    mean, spread = points.mean(axis=0).tolist(), points.std(axis=0).tolist()
    # the plan is public, and stands there for the curator's convenience
    answered = {"largest_gap": gap, "mean": mean, "spread": spread, "plan": plan, "points": points}
    return Run(Release(model, promise, _setting(plan)), Diagnostics(time.perf_counter() - start, {}, answered))


def _exact_enough(problem: BoxProblem, plan: SamplingPlan) -> Callable[[ContinuousOracle], ContinuousOracle]:
    """Admits oracles whose stated error is at most what the noise was calibrated for."""

    def admit(given: object) -> ContinuousOracle:
        oracle = as_oracle(given)
        if _stated_error(oracle, problem.box, problem.lipschitz, plan.n) > plan.error:
            raise ValueError(
                f"the noise was calibrated for an error of {plan.error:g}: retry with an oracle at least as exact"
            )
        return oracle

    return admit


def _oracle_for(problem: BoxProblem, oracle: object) -> ContinuousOracle:
    """The given oracle, or the exact one where the form of the objective has one."""
    if oracle is None and isinstance(problem.objective, PiecewiseLinear):
        return PiecewiseLinearOracle()
    if oracle is None:
        raise ValueError("oracle must be given for this objective: LipschitzOracle or one of your own")
    return as_oracle(oracle)


def _plan(
    problem: BoxProblem,
    epsilon: float,
    delta: float,
    draws: int | None,
    oracle: ContinuousOracle,
    noise: SamplingNoise | None,
    adjacency: Adjacency,
) -> SamplingPlan:
    n, box = problem.public_n(adjacency), problem.box
    error = _stated_error(oracle, box, problem.lipschitz, n)
    if noise is not None and not isinstance(noise, SamplingNoise):
        raise ValueError(f"noise must be a SamplingNoise, got {type(noise).__name__}")
    plan = plan_opsamp(
        n, box.widths, problem.lipschitz, epsilon, delta, draws, error=error, adjacency=adjacency, noise=noise
    )
    if plan.draws * box.dim > LARGEST_NOISE:
        raise ValueError(f"draws must be at most {LARGEST_NOISE // box.dim:,} on this box, got {plan.draws:,}")
    return plan


def _solved(
    oracle: ContinuousOracle, prepared: Any, box: Box, etas: Floats, n_jobs: int | None
) -> tuple[Floats, float]:
    """The oracle's points (rows) for all noise vectors, and the largest gap."""
    batches = np.array_split(etas, min(len(etas), BATCHES))
    answers = Parallel(n_jobs=n_jobs)(delayed(oracle.minimise_many)(prepared, box, part) for part in batches)
    points = np.concatenate([np.asarray(found, dtype=np.float64) for found, _ in answers])
    return points, float(np.max([gap for _, gap in answers]))  # of all, so that a nan is seen


def _setting(plan: SamplingPlan) -> dict[str, Any]:
    """The public numbers that the noise was computed from."""
    values = (plan.n, plan.lipschitz, plan.draws, plan.sigma, plan.sensitivity, plan.error, plan.centred)
    return dict(zip(SETTING, values, strict=True))


def exponential_noise(rng: Randomness, sigma: float, shape: tuple[int, int], *, centred: bool = True) -> Floats:
    """Independent exponential noise of *rate* `sigma`, minus its mean `1/sigma` if centred.

    `-ln(u)` of a uniform with full relative precision: its absolute error is below `2^-41/sigma` everywhere, which the
    calibration includes (`stability.NOISE_ERROR`).
    """
    standard = -np.log(rng.uniform(shape[0] * shape[1])).reshape(shape)
    return np.asarray((standard - 1.0 if centred else standard) / sigma)


def noisy_steps(points: Floats, box: Box, plan: SamplingPlan, rng: Randomness) -> Int64Array:
    """The mean of the points, rounded to the grid, with discrete Laplace noise, clipped to the grid's ends.

    Rounding moves two means that are λ apart to at most `λ/g + d` steps from each other; clipping is post-processing.
    """
    offsets = points - box.corner
    mean = np.array([fsum(column) / len(points) for column in offsets.T])
    noise = DiscreteLaplace(plan.scale_steps).draws(rng, box.dim)
    rounded = np.rint(mean / plan.grid).astype(np.int64)
    return np.asarray(np.clip(rounded + noise, 0, top_steps(box, plan.grid)), dtype=np.int64)


def _stated_error(oracle: ContinuousOracle, box: Box, lipschitz: float, n: int) -> float:
    return check_between("oracle's tolerance", oracle.stated_error(box, lipschitz, n), 0)


def _check_jobs(n_jobs: int | None) -> None:
    """What joblib would refuse only after the budget is spent."""
    whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and not (whole and 0 < abs(n_jobs) <= MOST_JOBS):
        raise ValueError(f"n_jobs must be None or a whole number up to {MOST_JOBS} (-1: all cores), got {n_jobs!r}")


def _oracle_name(oracle: ContinuousOracle) -> str:
    return oracle.name or type(oracle).__name__


def _check_answers(points: Floats, gap: float, box: Box, draws: int, error: float) -> None:
    if points.shape != (draws, box.dim) or not box.contains(points):
        raise OracleNotCertified("the oracle returned points outside the box: nothing is released")
    if not gap <= error:
        raise OracleNotCertified(
            f"the oracle left a gap of {gap:.3g}, more than the error of {error:.3g} that it stated: nothing is released; "
            "give it more work on the same noise"
        )
