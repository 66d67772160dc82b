"""A new noise distribution: one class, one line, and calibration, releases and audits know it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import stats

import privsolve as ps
from privsolve.arrays import Floats
from privsolve.audit import suite
from privsolve.audit.cases import CASES
from privsolve.mechanisms.opdisc import Sphere
from privsolve.mechanisms.rspm import Separators
from privsolve.noise.entropy import Randomness
from privsolve.noise.laws import NoiseLaw, Shift, directions, gamma
from privsolve.oracles import EnumerationOracle
from privsolve.privacy import calibration
from privsolve.privacy.guarantee import Proof
from privsolve.privacy.profiles import Pure
from privsolve.releases import Release


@dataclass(frozen=True)
class SmoothGamma(NoiseLaw):
    """Density proportional to `(1 + r) e^-r`, `r = ‖η‖₂/scale`: flat at the origin.

    The logarithm of the density falls by `r/(1 + r) < 1` per unit of r, so a shift of length `‖v‖₂` costs at most
    `‖v‖₂/scale`. The length is a mixture of gamma laws of shapes `dim` and `dim + 1` with weights 1 and `dim`.
    """

    name: ClassVar[str] = "smooth-gamma"
    proof: ClassVar[Proof] = Proof.COMPLETE

    @classmethod
    def scale_for(cls, shift: Shift, epsilon: float, delta: float) -> float:
        return shift.l2 / epsilon

    def draws(self, rng: Randomness, count: int) -> Floats:
        longer = np.array([rng.integer_below(self.dim + 1) > 0 for _ in range(count)])
        lengths = [gamma(rng, self.dim + extra, self.scale, count) for extra in (0, 1)]
        return np.where(longer, lengths[1], lengths[0])[:, None] * directions(rng, self.dim, count)

    def l1_quantile(self, beta: float) -> float:
        return float(np.sqrt(self.dim)) * self.l2_quantile(beta)

    def l2_quantile(self, beta: float) -> float:
        return calibration.gamma_length(self.dim + 1, self.scale, beta)  # at most the longer of the two


@pytest.fixture
def with_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Sphere.laws, "smooth-gamma", (SmoothGamma, "1"))  # other tests see the package as it is


@pytest.mark.usefixtures("with_law")
def test_a_new_law_is_calibrated_and_drawn() -> None:
    noise = ps.sphere_noise(ps.SignCube(3), 2.0, noise="smooth-gamma")
    assert noise.scale == ps.sphere_noise(ps.SignCube(3), 2.0).scale
    assert noise.profile == Pure(2.0)
    lengths = np.linalg.norm(noise.law.draws(Randomness.seeded(0), 20_000), axis=1)
    shapes, scale = stats.gamma([3, 4], scale=noise.scale), noise.scale
    assert stats.kstest(lengths, lambda x: (shapes.cdf(x[:, None]) @ [1, 3]) / 4).pvalue > 1e-4, scale
    assert (2 * lengths > noise.utility_bound(0.05)).mean() < 0.05


@pytest.mark.usefixtures("with_law")
def test_a_new_law_is_released() -> None:
    release = ps.opdisc(CASES[0].data, 2.0, noise="smooth-gamma", random_state=0).release
    assert release.guarantee.profile == Pure(2.0)
    assert release.guarantee.noise == "smooth-gamma noise"
    assert (release.guarantee.theory, release.guarantee.proved) == ("1", True)
    again = Release.from_json(release.to_json())
    assert again.guarantee == release.guarantee
    assert again.to_json() == release.to_json()
    with pytest.raises(ValueError, match="leave delta=None"):
        ps.opdisc(CASES[0].data, 1.0, noise="smooth-gamma", delta=1e-6)
    with pytest.raises(ValueError, match="gaussian-published, smooth-gamma, got"):
        ps.opdisc(CASES[0].data, 1.0, noise="unheard-of")


@pytest.mark.usefixtures("with_law")
def test_a_new_law_is_audited() -> None:
    rows = list(suite.run_checks([c for c in suite.checks(random_state=1) if c.noise == "smooth-gamma"]))
    assert [row.check.case.name for row in rows] == [case.name for case in CASES[:5]]
    assert all(row.as_expected and row.check.proof is Proof.COMPLETE for row in rows)
    assert max(row.finding.epsilon for row in rows) > 0.3  # the attack sees something


@dataclass(frozen=True)
class TooShort(SmoothGamma):
    """The same with an eighth of the scale, and still called proved."""

    name: ClassVar[str] = "too-short"

    @classmethod
    def scale_for(cls, shift: Shift, epsilon: float, delta: float) -> float:
        return super().scale_for(shift, epsilon, delta) / 8


def test_a_new_law_that_is_wrong_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Sphere.laws, "too-short", (TooShort, "1"))
    rows = list(suite.run_checks([c for c in suite.checks(random_state=1) if c.noise == "too-short"]))
    assert [row.verdict for row in rows if row.check.case is CASES[0]] == ["refuted"]


PROVED = [
    (mechanism, option)
    for mechanism, geometry in ((ps.opdisc, Sphere), (ps.rspm, Separators))
    for option, (law, _) in geometry.laws.items()
    if law.proof is not Proof.NONE
]


@pytest.mark.parametrize(("mechanism", "option"), [*PROVED, (ps.exponential, None)])
def test_a_promise_is_what_a_run_keeps(mechanism: Any, option: str | None) -> None:
    options: dict[str, Any] = {"random_state": 3} | ({} if option is None else {"noise": option})
    said = ps.promised(mechanism, CASES[1].data, 0.7, **options)
    assert mechanism(CASES[1].data, 0.7, **options).release.guarantee == said
    assert said.profile.epsilon == 0.7


def test_display_words_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every word for people is changed: scales, draws, profiles and proofs stay."""
    seen = []
    for renamed in (False, True):
        if renamed:
            for geometry in (Sphere, Separators):
                monkeypatch.setattr(geometry, "title", "Proved!")
                for law, _ in geometry.laws.values():
                    monkeypatch.setattr(law, "name", "exponential mechanism")
            monkeypatch.setattr(EnumerationOracle, "name", "guess")
        for mechanism, option in PROVED:
            run = mechanism(CASES[1].data, 0.7, noise=option, oracle="enumeration", random_state=3)
            guarantee = run.release.guarantee
            kept = guarantee.profile, guarantee.proof, guarantee.negligible, guarantee.rho, guarantee.zcdp
            seen.append((run.release.weights.tolist(), *kept))
            assert (guarantee.mechanism == "Proved!") == renamed
    assert seen[: len(seen) // 2] == seen[len(seen) // 2 :]
