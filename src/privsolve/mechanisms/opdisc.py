"""OPDisc: objective perturbation over a discrete domain, lifted to the sphere (theory, section 2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from typing import ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from privsolve.arrays import Floats, Int64Array
from privsolve.domains import Domain, FiniteSet, check_domain
from privsolve.engines.coordinates.minimise import ProgressCallback
from privsolve.losses import Loss
from privsolve.mechanisms.perturbed import Geometry, Noise, Public, calibrate, minimise_perturbed
from privsolve.noise.entropy import Randomness
from privsolve.noise.laws import Gaussian, L2Gamma, NoiseLaw, PublishedGaussian, Shift
from privsolve.oracles.base import Oracle
from privsolve.privacy import calibration
from privsolve.privacy.accounting import Account
from privsolve.privacy.adjacency import Adjacency
from privsolve.problems.perturbation import Perturbation
from privsolve.problems.problem import BaseProblem
from privsolve.releases import Run


@dataclass(frozen=True)
class Sphere(Geometry):
    """The members lifted to the unit sphere: noise adds `-<η, π(w)>`, and `v_w = c·π(w)` has length c (theory, section 2)."""

    domain: Domain
    title: ClassVar[str] = "OPDisc"
    lengths: ClassVar[int] = 2
    laws: ClassVar[dict[str, tuple[type[NoiseLaw], str]]] = {
        L2Gamma.option: (L2Gamma, "2.1"),
        Gaussian.option: (Gaussian, "2.2"),
        PublishedGaussian.option: (PublishedGaussian, "2.3"),
    }

    def __post_init__(self) -> None:
        check_domain(self.domain)
        if isinstance(self.domain, FiniteSet) and self.domain.size < 2:
            raise ValueError("the domain has a single member: there is nothing to choose, and no noise to calibrate")

    @property
    def dim(self) -> int:
        """Dimension k of the lifted vectors."""
        return self.domain.lift_dim

    def effect(self, loss: Loss) -> float:
        """Of the closest pairs: they are the worst, bounded or Lipschitz (theory, section 15)."""
        return loss.within(self.domain.separation_sq)

    def shift(self, spread: float, adjacency: Adjacency, largest: float) -> Shift:
        """`c = 2ΔD²/τ²` in the ℓ2 norm; at most that in ℓ∞ and `√k` times that in ℓ1."""
        c = calibration.sphere_shift(spread, self.domain.radius_sq_bound, self.domain.separation_sq)
        return Shift(self.dim, sqrt(self.dim) * c, c, c, partial(self._published, adjacency, largest))

    def _published(self, adjacency: Adjacency, largest: float, epsilon: float, delta: float) -> float:
        if adjacency is not Adjacency.REPLACE:
            raise ValueError("noise='gaussian-published' is stated for adjacency='replace' only")
        separation = sqrt(self.domain.separation_sq)
        return calibration.gaussian_sigma_published(
            self.domain.radius_sq_bound, largest / separation, separation, epsilon, delta
        )

    def perturbation(self, eta: ArrayLike) -> Perturbation:
        """`-<η, π(w)>` in exact integers."""
        return Perturbation.lifted(self.domain, eta)

    def template(self) -> Perturbation:
        """Zero, with a table of norms unless all are equal; made without the square roots of `lifted`."""
        zero = Perturbation.zero(self.domain)
        norms = None if self.domain.equal_norms else np.zeros(len(self.domain.norms_sq), dtype=np.int64)
        return replace(zero, norm=norms)

    def features(self, members: Int64Array) -> Floats:
        """`-π(w)`."""
        return -self.domain.lift(members)

    def length(self, law: NoiseLaw, beta: float) -> float:
        """`‖η‖₂`, since `|<η, π(w)>| <= ‖η‖₂`; `L(ŵ) - OPT <= 2‖η‖₂` (theory, section 2.4)."""
        return law.l2_quantile(beta)


def sphere_noise(domain: Domain, epsilon: float, *, noise: str = L2Gamma.option, **public: Unpack[Public]) -> Noise:
    """Calibrate OPDisc's noise for a domain; looks at no data, so it may be called to plan ahead.

    `public` may be `delta`, `adjacency`, `loss` and `solver_tolerance`, the additive error of the oracle in mistakes.
    """
    return calibrate(Sphere(domain), epsilon, noise=noise, **public)


def opdisc(
    problem: BaseProblem,
    epsilon: float,
    *,
    delta: float | None = None,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    noise: str = L2Gamma.option,
    oracle: str | Oracle = "tree",
    random_state: int | np.random.SeedSequence | Randomness | None = None,
    progress: ProgressCallback | None = None,
    budget: Account | None = None,
) -> Run:
    """Choose weights privately by minimising the loss minus `<η, π(w)>` with a certified oracle.

    Args:
        problem: a `Problem` (table, domain and loss), a `LinearProblem` or a `DiscreteProblem`.
        epsilon: privacy budget of this release.
        delta: for Gaussian noise; `1 / n²` if left out under `adjacency="replace"`, where n is public.
        adjacency: `"replace"` (one record changed, n is public) or `"add-remove"`.
        noise: `"gamma"` (default, no delta), `"gaussian"` (proved) or `"gaussian-published"` (warns, not proved).
        oracle: a name for `privsolve.oracles.get`, or any object with `minimise(problem, perturbation)`. Its additive
            `tolerance` is paid for in noise; an answer that is not certified within it raises and nothing is released.
        random_state: None for the operating system's entropy; a seed makes the run repeatable, for testing only.
        progress: called now and then with the state of the search, which is the curator's, not private.
        budget: an `Accountant` or a `Ledger` that pays for the release, or refuses it, before the noise is drawn.

    Guarantee:
        `"gamma"` is `epsilon`-DP (theory, section 2.1) and `"gaussian"` is `(epsilon, delta)`-DP (2.2) under the
        stated adjacency, for the weights alone: by the approximate-oracle lemma (1) with the rounding of section 6 and
        the oracle's tolerance included in the scale. Running time, failures and the diagnostics are not covered (7).
        After an error use its `retry`: calling again draws fresh noise, which voids the guarantee if the error depended on
        the data.
    """
    return minimise_perturbed(
        Sphere,
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
