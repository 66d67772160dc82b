"""Every mechanism attacked: proved claims stand, published ones and broken implementations are caught."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import privsolve as ps
from parity_pair import ParityOracle, parity_odd_probabilities, parity_scale_separator, parity_scale_sphere
from privsolve import audit, cli
from privsolve.cli import audit as command
from privsolve.mechanisms.perturbed import Noise
from privsolve.noise.entropy import Randomness
from privsolve.privacy.guarantee import Proof
from privsolve.privacy.profiles import Approximate

RUNS = 60_000
TIE = audit.CASES[0]
FLIPPED = audit.CASES[1]
LAWS = ("linf-gamma", "laplace", "gaussian")


def attack(case: audit.Case, law: Noise, runs: int = RUNS) -> audit.Finding:
    rng = Randomness.seeded(1)
    return audit.lower_bound(
        lambda p, n: audit.perturbed_draws(p, law, n, rng), case.data, case.neighbour, runs, law.delta
    )


# --- the fast draws are the mechanisms ------------------------------------------------------------


def chi_square(fast: np.ndarray, slow: np.ndarray) -> float:
    """The probability of counts that differ as much or more if both samples have one law."""
    keep = fast + slow > 10
    return float(stats.chi2_contingency(np.stack([fast[keep], slow[keep]])).pvalue)


@pytest.mark.parametrize("law", ["gamma", *LAWS])
def test_fast_draws_have_the_law_of_the_mechanism(law: str) -> None:
    problem, epsilon = FLIPPED.data, 8.0
    members = problem.domain.members()
    delta = 1e-3 if law == "gaussian" else None
    rng = Randomness.seeded(2)
    stated: Any = {"noise": law, "delta": delta}
    mechanism, noise_of = (ps.opdisc, ps.sphere_noise) if law == "gamma" else (ps.rspm, ps.separator_noise)
    fast = audit.perturbed_draws(problem, noise_of(problem.domain, epsilon, **stated), 20_000, rng)
    slow = np.zeros(len(members), dtype=np.int64)
    for _ in range(400):
        weights = mechanism(problem, epsilon, oracle="enumeration", random_state=rng, **stated).release.weights
        slow[np.flatnonzero((members == weights).all(axis=1))[0]] += 1
    assert chi_square(np.bincount(fast, minlength=len(members)), slow) > 1e-4


@pytest.mark.parametrize("mechanism", ["OPDisc", "RSPM"])
def test_parity_draws_match_the_closed_form(mechanism: str) -> None:
    dim, runs = 50, 20_000
    noise_of = ps.sphere_noise if mechanism == "OPDisc" else ps.separator_noise
    noise = noise_of(ps.SignCube(dim), 8.0, delta=1e-6, noise="gaussian")
    on_separators = parity_scale_separator(noise.scale)
    scale = parity_scale_sphere(dim, noise.scale) if mechanism == "OPDisc" else on_separators
    case, rng = audit.parity(dim), Randomness.seeded(4)
    for problem, expected in zip((case.data, case.neighbour), parity_odd_probabilities(dim, scale), strict=True):
        odd = int(audit.parity_draws(problem, noise, runs, rng).sum())
        assert stats.binomtest(odd, runs, expected).pvalue > 1e-4


@pytest.mark.parametrize(("mechanism", "noise_of"), [(ps.opdisc, ps.sphere_noise), (ps.rspm, ps.separator_noise)])
def test_parity_draws_match_the_mechanism(mechanism: Any, noise_of: Any) -> None:
    case, rng, law = audit.parity(6), Randomness.seeded(5), noise_of(ps.SignCube(6), 4.0)
    for problem in (case.data, case.neighbour):
        fast = np.bincount(audit.parity_draws(problem, law, 20_000, rng), minlength=2)
        runs = [mechanism(problem, 4.0, oracle=ParityOracle(), random_state=rng) for _ in range(300)]
        odd = sum(int((run.release.weights < 0).sum()) % 2 for run in runs)
        assert chi_square(fast, np.array([300 - odd, odd])) > 1e-4


# --- what is proved stands, what is not is caught -------------------------------------------------


@pytest.fixture(scope="module")
def quick() -> dict[str, list[dict[str, object]]]:
    done = CliRunner().invoke(cli.app, ["audit", "--json", "--seed", "1"])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["confidence"] == 0.999
    assert result["as_expected"]
    return result


def test_proved_claims_stand(quick: dict[str, list[dict[str, object]]]) -> None:
    proved = [row for row in quick["rows"] if row["proof"] == Proof.COMPLETE]
    mechanisms = {"OPDisc", "RSPM", "exponential", "tree", "OPSamp", "full card"}
    assert {row["mechanism"] for row in proved} == mechanisms
    assert {row["verdict"] for row in proved} == {"not refuted", "exact: holds"}
    assert all(row["measured"] <= row["epsilon"] for row in proved)
    assert max(row["measured"] / row["epsilon"] for row in proved if not row["exact"]) > 0.85


def test_published_calibrations_are_caught(quick: dict[str, list[dict[str, object]]]) -> None:
    refuted = {row["mechanism"]: row["measured"] for row in quick["rows"] if row["proof"] == Proof.NONE}
    assert set(refuted) == {"OPDisc", "RSPM", "OPSamp"}
    assert min(refuted.values()) > 1.2  # type: ignore[type-var]


def test_the_published_scale_is_caught_through_the_mechanism_itself() -> None:
    """One call of `ps.opdisc` per run: calibration, noise, tables, oracle and release. A large delta needs few dimensions."""
    case, delta, rng = audit.parity(100), 0.1, Randomness.seeded(6)

    def odd(problem: audit.ParityProblem) -> int:
        with pytest.warns(ps.PrivacyWarning, match="no valid proof"):
            run = ps.opdisc(
                problem, 1.0, delta=delta, noise="gaussian-published", oracle=ParityOracle(), random_state=rng
            )
        assert not run.release.guarantee.proved
        return int((run.release.weights < 0).sum()) % 2

    assert audit.lower_bound(odd, case.data, case.neighbour, 400, delta).refutes(1.0)


def test_the_budget_is_used_up_where_it_should_be() -> None:
    assert 0.93 < attack(TIE, ps.sphere_noise(ps.SignCube(1), 1.0), 400_000).epsilon <= 1.0
    assert 0.93 < attack(TIE, ps.separator_noise(ps.SignCube(1), 1.0), 400_000).epsilon <= 1.0


# --- broken mechanisms ----------------------------------------------------------------------------


@pytest.mark.parametrize("divisor", [3, 1.5])
def test_too_little_noise_is_caught(divisor: float) -> None:
    for noise in (ps.sphere_noise(ps.SignCube(1), 1.0), ps.separator_noise(ps.SignCube(1), 1.0)):
        assert attack(TIE, dataclasses.replace(noise, scale=noise.scale / divisor)).refutes(1.0)


@pytest.mark.parametrize("case", audit.CASES[:6], ids=lambda case: case.name)
def test_an_eighth_of_the_noise_is_caught_on_every_case(case: audit.Case) -> None:
    noise = ps.sphere_noise(case.data.domain, 1.0, adjacency=case.adjacency, loss=case.data.loss)
    assert attack(case, dataclasses.replace(noise, scale=noise.scale / 8)).refutes(1.0)


def test_other_claims_than_the_noise_keeps_are_caught() -> None:
    """The sensitivity of the other adjacency, forgotten costs, and the scale of delta = 0.3, claimed at 1e-6."""
    assert attack(TIE, ps.sphere_noise(ps.SignCube(1), 1.0, adjacency="add-remove")).refutes(1.0)
    case = next(c for c in audit.CASES if c.name == "unequal costs")
    assert not attack(case, ps.separator_noise(ps.SignCube(1), 1.0, loss=case.data.loss)).refutes(1.0)
    assert attack(case, ps.separator_noise(ps.SignCube(1), 1.0)).refutes(1.0)
    noise = ps.separator_noise(ps.SignCube(1), 1.0, delta=0.3, noise="gaussian")
    assert not attack(TIE, noise).refutes(1.0)
    assert attack(TIE, dataclasses.replace(noise, profile=Approximate(noise.epsilon, 1e-6))).refutes(1.0)


def test_noise_that_depends_on_the_data_is_caught() -> None:
    """A seed computed from the records, as somebody might who wants repeatable results."""

    def seeded(problem: ps.Problem) -> ps.Run:
        return ps.opdisc(problem, 1.0, oracle="enumeration", random_state=3 + int(problem.table.negatives.sum()))

    assert audit.lower_bound(seeded, TIE.data, TIE.neighbour, 200).refutes(1.0)


def test_noise_that_is_drawn_once_is_caught() -> None:
    """One fixed draw: the release becomes a function of the data, and some data show it."""
    frozen = ps.sphere_noise(ps.SignCube(1), 1.0).draw(Randomness.seeded(0))
    frozen = -np.abs(frozen) * 0.5 / np.abs(frozen)  # between the thresholds 0 and -1 of the two data sets

    def reusing(problem: ps.Problem) -> tuple[int, ...]:
        perturbation = ps.Perturbation.lifted(problem.domain, frozen)
        return tuple(ps.oracles.get("enumeration").minimise(problem, perturbation).weights.tolist())

    assert audit.lower_bound(reusing, TIE.data, TIE.neighbour, 200).refutes(1.0)


def test_one_draw_for_all_coordinates_is_caught() -> None:
    """Noise shared by the coordinates prefers vectors of equal signs, whose parity is always even."""
    case, rng = audit.parity(4), Randomness.seeded(7)
    law = ps.sphere_noise(ps.SignCube(4), 1.0)

    def shared(problem: audit.ParityProblem) -> bytes:
        perturbation = ps.Perturbation.lifted(problem.domain, np.full(4, law.draw(rng)[0]))
        return ParityOracle().minimise(problem, perturbation).weights.tobytes()

    assert audit.lower_bound(shared, case.data, case.neighbour, 1600).refutes(1.0)


def test_noise_without_tails_is_caught() -> None:
    """The right scale, cut off at half of it: what needs more noise than that never happens."""
    law, rng = ps.separator_noise(ps.SignCube(1), 1.0), Randomness.seeded(8)

    def clipped(problem: ps.Problem) -> np.ndarray:
        eta = np.clip(law.draw(rng), -law.scale / 2, law.scale / 2)
        perturbation = ps.Perturbation(problem.domain, (np.array([round(float(eta[0]) * 2**20), 0]),))
        return ps.oracles.get("enumeration").minimise(problem, perturbation).weights

    assert audit.lower_bound(clipped, TIE.data, TIE.neighbour, 1000).refutes(2.0)


def test_trying_again_until_the_result_is_good_is_caught() -> None:
    """Fresh noise after a disappointing result conditions on the data (theory, section 7)."""
    rng = Randomness.seeded(9)

    def stubborn(problem: ps.Problem) -> ps.Run:
        for _ in range(5):
            run = ps.rspm(problem, 1.0, oracle="enumeration", random_state=rng)
            if run.diagnostics.mistakes == 0:
                break
        return run

    assert audit.lower_bound(stubborn, TIE.data, TIE.neighbour, 200).refutes(1.0)


def test_an_exponential_mechanism_without_its_sensitivity_is_caught_exactly() -> None:
    """`exp(-ε·L)` instead of `exp(-(ε/Δ)·L)` is the law of twice the budget."""
    laws = [audit.exponential_law(p, 2.0) for p in (FLIPPED.data, FLIPPED.neighbour)]
    assert audit.exact_epsilon(*laws) > 1.2


# --- the command ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "code", "words"),
    [
        ({}, 1, "Not as expected: a proved claim was refuted"),
        ({"proof": Proof.NONE, "epsilon": 50.0}, 1, "not refuted"),
        ({"runs": 0, "outputs": lambda problem: audit.exponential_law(problem, 1.0)}, 0, "exact: holds"),
        ({"proof": Proof.REAL_ARITHMETIC}, 0, "refuted in floating point (proved in real arithmetic)"),
    ],
)
def test_the_command_says_whether_all_is_as_expected(
    changed: dict[str, Any], code: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = ps.separator_noise(ps.SignCube(1), 1.0)
    third, rng = dataclasses.replace(noise, scale=noise.scale / 3), Randomness.seeded(1)
    check = audit.Check("RSPM", "a third of it", TIE, lambda p, n: audit.perturbed_draws(p, third, n, rng), RUNS)
    check = dataclasses.replace(check, **changed)
    monkeypatch.setattr(command, "checks", lambda **options: [check])
    monkeypatch.setattr(command.console, "_width", 140)  # not by COLUMNS, which a console reads only once
    done = CliRunner().invoke(cli.app, ["audit"])
    assert done.exit_code == code
    for said in (words, "claimed", "measured", "verdict", "never prove one", "a tie is broken"):
        assert said in " ".join(done.output.split())


def test_the_long_audit_attacks_every_case() -> None:
    long, short = audit.checks(long=True, random_state=1), audit.checks(random_state=1)
    assert {case.name for case in audit.CASES} <= {check.case.name for check in long}
    assert len(long) > len(short)
    assert [check.epsilon for check in long if check.epsilon != 1.0] == [3.0, 3.0, 10.0]


def test_confidence_is_shared_by_all_claims() -> None:
    check = audit.Check("none", "none", TIE, lambda data, n: [0] * n, 100)
    rows = list(audit.run_checks([check] * 4, 0.96))
    assert [row.finding.confidence for row in rows] == [pytest.approx(0.99)] * 4
    assert all(row.as_expected for row in rows)
