"""RSPM: report the minimiser of the loss plus noise on a separator set (theory, section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from math import sqrt
from typing import ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from privsolve.arrays import Floats, Int64Array
from privsolve.domains import Domain, check_domain
from privsolve.engines.coordinates.minimise import ProgressCallback
from privsolve.mechanisms.perturbed import Geometry, Noise, Public, calibrate, minimise_perturbed
from privsolve.noise.entropy import Randomness
from privsolve.noise.laws import Gaussian, Laplace, LinfGamma, NoiseLaw, PublishedGaussian, Shift
from privsolve.oracles.base import Oracle
from privsolve.privacy import calibration
from privsolve.privacy.accounting import Account
from privsolve.privacy.adjacency import Adjacency
from privsolve.problems.perturbation import Perturbation, count_thresholds
from privsolve.problems.problem import BaseProblem
from privsolve.releases import Run


@dataclass(frozen=True)
class Separators(Geometry):
    """Noise on the m thresholds of a domain: `v_w` has entries ±ρ (section 3)."""

    domain: Domain
    title: ClassVar[str] = "RSPM"
    lengths: ClassVar[int] = 1
    laws: ClassVar[dict[str, tuple[type[NoiseLaw], str]]] = {
        law.option: (law, "3") for law in (LinfGamma, Laplace, Gaussian, PublishedGaussian)
    }

    @cached_property
    def dim(self) -> int:  # type: ignore[override]
        """Number m of thresholds."""
        return count_thresholds(check_domain(self.domain))

    def shift(self, spread: float, adjacency: Adjacency, largest: float) -> Shift:
        """`mρ`, `√m·ρ` and `ρ`."""
        m = self.dim
        return Shift(m, m * spread, sqrt(m) * spread, spread, partial(self._published, adjacency, largest))

    def _published(self, adjacency: Adjacency, largest: float, epsilon: float, delta: float) -> float:
        if adjacency is not Adjacency.REPLACE or largest != 1:
            raise ValueError("noise='gaussian-published' is stated for adjacency='replace' and losses in [0, 1] only")
        return calibration.separator_sigma_published(self.dim, epsilon, delta)

    def perturbation(self, eta: ArrayLike) -> Perturbation:
        """`Σ_i η_i e_i(w)` in exact integers."""
        return Perturbation.of_thresholds(self.domain, eta)

    def features(self, members: Int64Array) -> Floats:
        """The thresholds of each member."""
        columns = [members[:, j] <= t for j in range(self.domain.dim) for t in self.domain.values(j)[:-1]]
        return np.array(columns, dtype=np.float64).reshape(self.dim, len(members)).T

    def length(self, law: NoiseLaw, beta: float) -> float:
        """`‖η‖₁`, since a member adds up to m entries; `L(ŵ) - OPT <= Σ_i η_i (e_i(w*) - e_i(ŵ)) <= ‖η‖₁`."""
        return law.l1_quantile(beta)


def separator_noise(
    domain: Domain, epsilon: float, *, noise: str = LinfGamma.option, **public: Unpack[Public]
) -> Noise:
    """Calibrate RSPM's noise on a domain's thresholds; looks at no data, so it may be called to plan ahead.

    `public` may be `delta`, `adjacency`, `loss` and `solver_tolerance`, the additive error of the oracle in mistakes.
    """
    return calibrate(Separators(domain), epsilon, noise=noise, **public)


def rspm(
    problem: BaseProblem,
    epsilon: float,
    *,
    noise: str = LinfGamma.option,
    delta: float | None = None,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    oracle: str | Oracle = "tree",
    random_state: int | np.random.SeedSequence | Randomness | None = None,
    progress: ProgressCallback | None = None,
    budget: Account | None = None,
) -> Run:
    """Choose weights privately by minimising the loss plus noise on thresholds, which separate the domain.

    Args:
        problem: table, domain and loss.
        epsilon: privacy budget of this release.
        noise: `"linf-gamma"` (default) or `"laplace"` (both without delta), `"gaussian"` (proved) or
            `"gaussian-published"` (warns, not proved).
        delta: for Gaussian noise; `1 / n²` if left out under `adjacency="replace"`, where n is public.
        adjacency: `"replace"` (one record changed, n is public) or `"add-remove"`.
        oracle, random_state, progress, budget: as in `opdisc`.

    Guarantee:
        `"linf-gamma"` and `"laplace"` are `epsilon`-DP and `"gaussian"` is `(epsilon, delta)`-DP under the stated
        adjacency (theory, sections 1 and 3), for the weights alone, with rounding and the oracle's tolerance included in
        the scale. Running time, failures and the diagnostics are not covered (section 7). After an error use its `retry`:
        calling again draws fresh noise, which voids the guarantee if the error depended on the data.
    """
    return minimise_perturbed(
        Separators,
        problem,
        epsilon,
        noise=noise,
        delta=delta,
        adjacency=adjacency,
        oracle=oracle,
        random_state=random_state,
        progress=progress,
        budget=budget,
    )
