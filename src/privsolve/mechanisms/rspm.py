"""RSPM: report the minimiser of the loss plus noise on a separator set (theory, section 3)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, gammainccinv

from privsolve.checks import check_count
from privsolve.domains import Domain, check_domain
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
from privsolve.oracles.enumeration import EnumerationOracle
from privsolve.privacy import calibration
from privsolve.privacy.accounting import Account
from privsolve.problems.perturbation import Perturbation
from privsolve.problems.problem import BaseProblem
from privsolve.problems.separators import Indicator, Indicators, Thresholds

NOISE_LAWS = ("linf-gamma", "laplace", "gaussian", "gaussian-published")
PURE_LAWS = ("linf-gamma", "laplace")


@dataclass(frozen=True)
class SeparatorNoise(NoiseLaw):
    """A calibrated noise law on `dim` separators."""

    def draw(self, rng: Randomness) -> NDArray[np.float64]:
        """One noise vector."""
        if self.law == "linf-gamma":
            return noise.linf_gamma(rng, self.dim, self.scale)
        if self.law == "laplace":
            return noise.laplace(rng, self.scale, self.dim)
        return noise.gaussian(rng, self.dim, self.scale)

    def utility_bound(self, beta: float = 0.05) -> float:
        """With probability `1 - beta` the release costs at most this much more than the best member.

        `L(ŵ) - OPT <= Σ_i η_i (e_i(w*) - e_i(ŵ)) <= ‖η‖₁`, whose quantile is exact for Laplace noise and bounded by
        `m ‖η‖_∞` or `√m ‖η‖₂` for the others.
        """
        return self._length_quantile(calibration.check_beta(beta))

    def _length_quantile(self, beta: float) -> float:
        if self.law == "linf-gamma":
            return float(self.dim * self.scale * gammainccinv(self.dim + 1, beta))
        if self.law == "laplace":
            return float(self.scale * gammainccinv(self.dim, beta))
        return float(math.sqrt(self.dim) * self.scale * math.sqrt(chdtri(self.dim, beta)))

    @property
    def practically_longest(self) -> float:
        """A bound on `‖η‖₁` that is exceeded with probability `2^-100`."""
        return self._length_quantile(NEGLIGIBLE)


def separator_noise(
    domain: Domain,
    epsilon: float,
    *,
    count: int | None = None,
    delta: float | None = None,
    adjacency: str = "replace",
    law: str = "linf-gamma",
    loss: Loss | None = None,
    solver_tolerance: float = 0.0,
) -> SeparatorNoise:
    """Calibrate RSPM's noise for `count` separators (the domain's thresholds if left out); looks at no data."""
    check_domain(domain)
    epsilon, delta = check_budget(epsilon, delta, law, NOISE_LAWS, PURE_LAWS)
    m = Thresholds(domain).count if count is None else check_count("count", count)
    delta_range = calibration.range_sensitivity(adjacency) * (loss or ZeroOneLoss()).largest
    spread = calibration.effective_range(delta_range, calibration.rounding_error(domain.dim), solver_tolerance)
    proved = law != "gaussian-published"
    if law == "linf-gamma":
        scale = calibration.separator_gamma_scale(spread, epsilon)
    elif law == "laplace":
        scale = calibration.separator_laplace_scale(spread, m, epsilon)
    elif law == "gaussian":
        scale = calibration.gaussian_sigma(m, calibration.separator_shift_l2(spread, m), epsilon, delta or 0.0)
    else:
        scale = _published_sigma(m, epsilon, delta or 0.0, adjacency, delta_range)
    result = SeparatorNoise(law, m, scale, epsilon, delta or 0.0, proved, "3")
    check_range(result.practically_longest, epsilon)
    return result


def _published_sigma(m: int, epsilon: float, delta: float, adjacency: str, delta_range: float) -> float:
    if adjacency != "replace" or delta_range != 2:
        raise ValueError("noise='gaussian-published' is stated for adjacency='replace' and losses in [0, 1] only")
    warnings.warn(
        "noise='gaussian-published' has no valid proof (theory, section 3): for reproducing the paper only",
        PrivacyWarning,
        stacklevel=4,
    )
    return calibration.separator_sigma_published(m, epsilon, delta)


def rspm(
    problem: BaseProblem,
    epsilon: float,
    *,
    noise: str = "linf-gamma",
    delta: float | None = None,
    adjacency: str = "replace",
    indicators: Sequence[Indicator] | None = None,
    oracle: str | Oracle = "tree",
    penalty: Perturbation | None = None,
    random_state: int | np.random.SeedSequence | Randomness | None = None,
    progress: ProgressCallback | None = None,
    budget: Account | None = None,
) -> Run:
    """Choose weights privately by minimising the loss plus noise on indicators that separate the domain.

    Args:
        problem: table, domain and loss.
        epsilon: privacy budget of this release.
        noise: `"linf-gamma"` (default) or `"laplace"` (both without delta), `"gaussian"` (proved) or
            `"gaussian-published"` (warns, not proved).
        delta: for Gaussian noise; `1 / n²` if left out under `adjacency="replace"`, where n is public.
        adjacency: `"replace"` (one record changed, n is public) or `"add-remove"`.
        indicators: functions from a member to True or False, for a domain that can be listed (use
            `oracle="enumeration"`); refused unless any two members differ on one. The domain's thresholds if left out.
        oracle, penalty, random_state, progress, budget: as in `opdisc`.

    Guarantee:
        `"linf-gamma"` and `"laplace"` are `epsilon`-DP and `"gaussian"` is `(epsilon, delta)`-DP under the stated
        adjacency (theory, sections 1 and 3), for the weights alone, with rounding and the oracle's tolerance included in
        the scale. Running time, failures and the diagnostics are not covered (section 7). After an error use its `retry`:
        calling again draws fresh noise, which voids the guarantee if the error depended on the data.
    """
    the_oracle = resolve_oracle(oracle)
    rng = as_randomness(random_state)
    check_penalty(penalty)
    check_oracle(the_oracle, problem, penalty, with_norm=False)
    if indicators is not None and (not isinstance(the_oracle, EnumerationOracle) or penalty is not None):
        raise ValueError("indicators are not separable: use oracle='enumeration', and no penalty")
    separators = Thresholds(problem.domain) if indicators is None else Indicators(problem.domain, indicators)
    if noise not in PURE_LAWS and delta is None and adjacency == "replace":
        delta = problem.n**-2.0
    law = separator_noise(
        problem.domain, epsilon, count=separators.count, delta=delta, adjacency=adjacency, law=noise,
        loss=problem.loss, solver_tolerance=oracle_tolerance(the_oracle),
    )  # fmt: skip
    return perturbed_run(
        problem, the_oracle, law, rng, separators.perturbation, mechanism="RSPM", adjacency=adjacency, penalty=penalty,
        progress=progress, budget=budget,
    )  # fmt: skip
