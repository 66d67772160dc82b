"""OPDisc: objective perturbation over a discrete domain, lifted to the sphere (theory, section 2)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, gammainccinv

from privsolve.domains import Domain, FiniteSet, check_domain
from privsolve.engines.coordinates.minimise import ProgressCallback
from privsolve.errors import PrivacyWarning
from privsolve.losses import Loss, ZeroOneLoss
from privsolve.mechanisms.running import (
    NEGLIGIBLE,
    NoiseLaw,
    check_budget,
    check_oracle,
    check_penalty,
    check_range,
    perturbed_run,
)
from privsolve.mechanisms.solving import resolve_oracle
from privsolve.models.release import Run
from privsolve.noise import draws as noise
from privsolve.noise.draws import Randomness, as_randomness
from privsolve.oracles.base import Oracle, oracle_tolerance
from privsolve.privacy import calibration
from privsolve.privacy.accounting import Account
from privsolve.problems.perturbation import Perturbation
from privsolve.problems.problem import BaseProblem

NOISE_LAWS = ("gamma", "gaussian", "gaussian-published")
PURE_LAWS = ("gamma",)


@dataclass(frozen=True)
class SphereNoise(NoiseLaw):
    """A calibrated noise law on the lifted space: ℓ2-gamma or Gaussian."""

    def draw(self, rng: Randomness) -> NDArray[np.float64]:
        """One noise vector."""
        if self.law == "l2-gamma":
            return noise.l2_gamma(rng, self.dim, self.scale)
        return noise.gaussian(rng, self.dim, self.scale)

    def utility_bound(self, beta: float = 0.05) -> float:
        """With probability `1 - beta` the release costs at most this much more than the best member (section 2.4)."""
        if self.law == "l2-gamma":
            return calibration.gamma_utility_bound(self.dim, self.scale, beta)
        return calibration.gaussian_utility_bound(self.dim, self.scale, beta)

    @property
    def practically_longest(self) -> float:
        """A length that the noise exceeds with probability `2^-100`."""
        if self.law == "l2-gamma":
            return float(self.scale * gammainccinv(self.dim, NEGLIGIBLE))
        return float(self.scale * np.sqrt(chdtri(self.dim, NEGLIGIBLE)))


def sphere_noise(
    domain: Domain,
    epsilon: float,
    *,
    delta: float | None = None,
    adjacency: str = "replace",
    law: str = "gamma",
    loss: Loss | None = None,
    solver_tolerance: float = 0.0,
) -> SphereNoise:
    """Calibrate OPDisc's noise for a domain: nothing here looks at data, so it may be called to plan ahead."""
    check_domain(domain)
    epsilon, delta = check_budget(epsilon, delta, law, NOISE_LAWS, PURE_LAWS)
    largest = (loss or ZeroOneLoss()).largest
    delta_range = calibration.range_sensitivity(adjacency) * largest
    if isinstance(domain, FiniteSet) and domain.size < 2:
        raise ValueError("the domain has a single member: there is nothing to choose, and no noise to calibrate")
    spread = calibration.effective_range(delta_range, calibration.rounding_error(domain.dim), solver_tolerance)
    shift = calibration.sphere_shift(spread, domain.radius_sq_bound, domain.separation_sq)
    k = domain.lift_dim
    if law == "gamma":
        result = SphereNoise("l2-gamma", k, calibration.gamma_scale(shift, epsilon), epsilon, 0.0, True, "2.1")
    elif delta is None:  # unreachable: checked above, for the type checker
        raise ValueError("delta is missing")
    elif law == "gaussian":
        sigma = calibration.gaussian_sigma(k, shift, epsilon, delta)
        result = SphereNoise(law, k, sigma, epsilon, delta, True, "2.2")
    else:
        result = SphereNoise(
            law, k, _published_sigma(domain, epsilon, delta, adjacency, largest), epsilon, delta, False, "2.3"
        )
    check_range(result.practically_longest, epsilon)
    return result


def _published_sigma(domain: Domain, epsilon: float, delta: float, adjacency: str, largest: int) -> float:
    if adjacency != "replace":
        raise ValueError("noise='gaussian-published' is stated for adjacency='replace' only")
    warnings.warn(
        "noise='gaussian-published' has no valid proof (theory, section 2.3): for reproducing the paper only",
        PrivacyWarning,
        stacklevel=4,
    )
    separation = float(np.sqrt(domain.separation_sq))
    return calibration.gaussian_sigma_published(
        domain.radius_sq_bound, largest / separation, separation, epsilon, delta
    )


def opdisc(
    problem: BaseProblem,
    epsilon: float,
    *,
    delta: float | None = None,
    adjacency: str = "replace",
    noise: str = "gamma",
    oracle: str | Oracle = "tree",
    penalty: Perturbation | None = None,
    random_state: int | np.random.SeedSequence | Randomness | None = None,
    progress: ProgressCallback | None = None,
    budget: Account | None = None,
) -> Run:
    """Choose weights privately by minimising the loss minus `<η, π(w)>` with a certified oracle.

    Args:
        problem: a `Problem` (table, domain and loss), or a `LinearProblem`.
        epsilon: privacy budget of this release.
        delta: for Gaussian noise; `1 / n²` if left out under `adjacency="replace"`, where n is public.
        adjacency: `"replace"` (one record changed, n is public) or `"add-remove"`.
        noise: `"gamma"` (default, no delta), `"gaussian"` (proved) or `"gaussian-published"` (warns, not proved).
        oracle: a name for `privsolve.oracles.get`, or any object with `minimise(problem, perturbation)`. Its additive
            `tolerance` is paid for in noise; an answer that is not certified within it raises and nothing is released.
        penalty: a public separable term added to the objective, such as a price on non-zero weights. It must not
            depend on the data, and is free: it cancels in the proof.
        random_state: None for the operating system's entropy; a seed makes the run repeatable, for testing only.
        progress: called now and then with the state of the search, which is the curator's, not private.
        budget: an `Accountant` or a `Ledger` that pays for the release, or refuses it, before the noise is drawn.

    Guarantee:
        `"gamma"` is `epsilon`-DP (theory, section 2.1) and `"gaussian"` is `(epsilon, delta)`-DP (2.2) under the
        stated adjacency, for the weights alone: by the approximate-oracle lemma (1) with the rounding of section 6 and
        the oracle's tolerance included in the scale. Running time, failures and the diagnostics are not covered (7).
        Retrying after an error draws fresh noise, which voids the guarantee if the error depended on the data.
    """
    the_oracle = resolve_oracle(oracle)
    rng = as_randomness(random_state)
    check_penalty(penalty)
    check_oracle(the_oracle, problem, penalty, with_norm=True)
    if noise != "gamma" and delta is None and adjacency == "replace":
        delta = problem.n**-2.0
    law = sphere_noise(
        problem.domain, epsilon, delta=delta, adjacency=adjacency, law=noise, loss=problem.loss,
        solver_tolerance=oracle_tolerance(the_oracle),
    )  # fmt: skip
    return perturbed_run(
        problem, the_oracle, law, rng, partial(Perturbation.lifted, problem.domain), mechanism="OPDisc",
        adjacency=adjacency, penalty=penalty, progress=progress, budget=budget,
    )  # fmt: skip
