"""A new noise law and a new mechanism: one class and one line each, and every part of the package offers them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privsolve as ps
from privsolve.arrays import Floats
from privsolve.audit import suite
from privsolve.audit.cases import CASES
from privsolve.mechanisms import base, registry
from privsolve.mechanisms.base import Expectation, Mechanism
from privsolve.mechanisms.opdisc import OPDisc
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.noise.laws import L2Gamma, NoiseLaw, Shift, directions, gamma
from privsolve.oracles import EnumerationOracle
from privsolve.privacy import calibration
from privsolve.privacy.accounting import charged
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.guarantee import Guarantee, Proof
from privsolve.privacy.profiles import Pure
from privsolve.releases import Diagnostics, Release, Run

FRAME = pd.DataFrame({"a": [0, 1, 1, 0, 1, 0], "b": [1, 1, 0, 0, 1, 1], "ill": ["yes", "no", "yes", "no", "yes", "no"]})
SCHEMA = ps.Schema([ps.Number("a", 0, 1), ps.Number("b", 0, 1)], label=ps.Label("ill", "yes", "no"))


# --- a law: one class, one line -------------------------------------------------------------------


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
    monkeypatch.setattr(OPDisc, "laws", dict(OPDisc.laws))  # other tests see the package as it is
    OPDisc.offer(SmoothGamma, theory="1")


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
    table = SCHEMA.table(FRAME).table
    problem = ps.Problem(table, ps.TernaryCube(SCHEMA.dim), schema=SCHEMA)
    release = ps.opdisc(problem, 2.0, noise="smooth-gamma", oracle="enumeration", random_state=0).release
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
    assert [row.case for row in rows] == [case.name for case in CASES[:5]]
    assert all(row.as_expected and row.proof is Proof.COMPLETE for row in rows)
    assert max(row.measured for row in rows) > 0.3  # the attack sees something


@dataclass(frozen=True)
class TooShort(SmoothGamma):
    """The same with an eighth of the scale, and still called proved."""

    name: ClassVar[str] = "too-short"

    @classmethod
    def scale_for(cls, shift: Shift, epsilon: float, delta: float) -> float:
        return super().scale_for(shift, epsilon, delta) / 8


def test_a_new_law_that_is_wrong_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OPDisc, "laws", dict(OPDisc.laws))
    OPDisc.offer(TooShort, theory="1")
    rows = list(suite.run_checks([c for c in suite.checks(random_state=1) if c.noise == "too-short"]))
    assert [row.verdict for row in rows if row.case == CASES[0].name] == ["refuted"]


# --- a mechanism: one class, one line -------------------------------------------------------------


def permute_and_flip() -> type[Mechanism]:
    """McKenna and Sheldon, "Permute-and-flip" (2020), on domains that can be listed; its coins are plain doubles."""

    class PermuteAndFlip(Mechanism):
        name: ClassVar[str] = "permute-and-flip"
        title: ClassVar[str] = "permute-and-flip"

        def run(self, problem: Any, epsilon: float, **options: Any) -> Run:
            rng, adjacency = as_randomness(options["random_state"]), Adjacency.of(options["adjacency"])
            guarantee = Guarantee(
                Pure(epsilon),
                adjacency,
                self.title,
                "coins",
                theory="4",
                oracle="enumeration",
                proof=Proof.REAL_ARITHMETIC,
                seeded=rng.is_seeded,
            )
            with charged(options.get("budget"), guarantee):
                members = problem.domain.members()
                losses = problem.losses_of(members)
                chances = np.exp(-epsilon / 2 / problem.loss.largest * (losses - losses.min()))
                left = list(range(len(members)))
                while True:
                    candidate = left.pop(rng.integer_below(len(left)))
                    if rng.uniform(1)[0] < chances[candidate]:
                        break
            weights = members[candidate]
            release = Release(problem.model(weights), guarantee, problem.setting)
            return Run(release, Diagnostics(0.0, problem.quality(weights), {}))

        def promise(self, problem: Any, epsilon: float, **options: Any) -> Guarantee:
            return super().promise(problem, epsilon, **{"random_state": None} | options)

        def expectations(self, domain: Any, epsilon: float, **public: Any) -> tuple[Expectation, ...]:
            """Never worse than the exponential mechanism at the same exponent."""
            excess = 2 * public["loss"].largest / epsilon * np.log(domain.size / public["beta"])
            return (Expectation(self.name, float(excess)),)

    return PermuteAndFlip


@pytest.fixture
def with_mechanism(monkeypatch: pytest.MonkeyPatch) -> type[Mechanism]:
    monkeypatch.setattr(base, "_MECHANISMS", dict(base._MECHANISMS))
    return permute_and_flip()


@pytest.mark.usefixtures("with_mechanism")
def test_a_new_mechanism_is_audited() -> None:
    rows = list(suite.run_checks([c for c in suite.checks(random_state=1) if c.mechanism == "permute-and-flip"]))
    assert [row.case for row in rows] == [case.name for case in CASES[:5]]
    assert {row.verdict for row in rows} == {"not refuted"}
    assert all(row.as_expected for row in rows)


# --- the registry ---------------------------------------------------------------------------------


def test_names_are_taken_once(with_mechanism: type[Mechanism]) -> None:
    with pytest.raises(TypeError, match="'opdisc' belongs to privsolve"):
        type("Other", (with_mechanism,), {"name": "opdisc"})
    with pytest.raises(
        ValueError, match="mechanism must be one of exponential, opdisc, rspm, permute-and-flip, got 'x'"
    ):
        registry.mechanism_of("x")


@pytest.mark.parametrize("mechanism", registry.all_mechanisms(), ids=lambda mechanism: mechanism.name)
def test_a_promise_is_what_a_run_keeps(mechanism: Mechanism) -> None:
    problem = CASES[1].data
    for variant in mechanism.variants(1e-3):
        options = {"adjacency": "replace", "random_state": 3, **variant.options}
        said = mechanism.promise(problem, 0.7, **options)
        assert mechanism.run(problem, 0.7, **options).release.guarantee == said
        assert said.profile.epsilon == 0.7


@pytest.mark.parametrize("mechanism", [OPDisc(), registry.mechanism_of("rspm")], ids=lambda mechanism: mechanism.name)
def test_display_words_decide_nothing(mechanism: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every word for people is changed: scales, draws, profiles and proofs stay."""
    problem, seen = CASES[1].data, []
    for renamed in (False, True):
        if renamed:
            monkeypatch.setattr(type(mechanism), "title", "Proved!")
            for law, _ in mechanism.laws.values():
                monkeypatch.setattr(law, "name", "exponential mechanism")
            monkeypatch.setattr(EnumerationOracle, "name", "guess")
        for variant in mechanism.variants(1e-3):
            run = mechanism.run(problem, 0.7, adjacency="replace", random_state=3, **variant.options)
            guarantee = run.release.guarantee
            seen.append((run.release.weights.tolist(), guarantee.profile, guarantee.proof, guarantee.negligible))
            assert (guarantee.mechanism == "Proved!") == renamed
    assert seen[: len(seen) // 2] == seen[len(seen) // 2 :]


def test_laws_say_how_they_are_asked_for() -> None:
    assert OPDisc().noises() == ("gamma", "gaussian", "gaussian-published")
    assert (L2Gamma.name, L2Gamma.option) == ("l2-gamma", "gamma")
    assert registry.mechanism_of("rspm").noises() == ("linf-gamma", "laplace", "gaussian", "gaussian-published")


@pytest.mark.parametrize("first", ["rspm", "opdisc", "exponential"])
def test_the_order_does_not_depend_on_what_was_imported_first(first: str) -> None:
    code = f"import privsolve as ps; ps.{first}; from privsolve.mechanisms import registry; print(registry.mechanism_names())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "('exponential', 'opdisc', 'rspm')"
