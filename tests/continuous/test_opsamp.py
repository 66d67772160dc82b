"""OPSamp as a whole: its release, its accuracy, attacks on its privacy, workers, and the examples."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from math import exp
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from numpy.typing import NDArray
from scipy import stats

import privsolve as ps
from privsolve import audit
from privsolve.continuous.opsamp import exponential_noise, noisy_steps, opsamp
from privsolve.continuous.oracles import BoxSolution, LipschitzOracle, PiecewiseLinearOracle
from privsolve.continuous.problem import (
    Box,
    BoxProblem,
    Objective,
    PiecewiseLinear,
    absolute_deviation,
    as_box,
    truncated_deviation,
)
from privsolve.continuous.stability import SamplingNoise, SamplingPlan, plan_opsamp
from privsolve.errors import OracleFailed, OracleNotCertified, PrivacyWarning, SolveInterrupted
from privsolve.models.choices import BoxPoint
from privsolve.noise.discrete import DiscreteLaplace
from privsolve.noise.entropy import Randomness

EXAMPLES = Path(__file__).parents[2] / "examples"
EXACT = PiecewiseLinearOracle()


BOX = [(0.0, 1.0)]
DEVIATION = absolute_deviation(np.random.default_rng(0).random(200), BOX)


def small(**changes: Any) -> dict[str, Any]:
    problem = BoxProblem(DEVIATION, BOX)
    return {"problem": problem, "epsilon": 1.0, "delta": 1e-6, "draws": 300, "random_state": 7} | changes


def changed(**changes: Any) -> BoxProblem:
    return BoxProblem(**{"objective": DEVIATION, "box": BOX, "lipschitz": 1.0, "n": 200} | changes)


# --- the release ----------------------------------------------------------------------------------


def test_release_holds_a_grid_point_and_the_guarantee() -> None:
    run = opsamp(**small())
    release, model = run.release, run.release.model
    assert release.guarantee.epsilon == 1.0
    assert release.guarantee.delta == 1e-6
    assert release.guarantee.proved
    assert release.guarantee.seeded
    assert release.guarantee.theory == "5"
    assert isinstance(model, BoxPoint)
    assert 0 <= model.point[0] <= 1
    assert model.point[0] == model.grid * model.steps[0]
    assert ps.Release.from_json(release.to_json()).to_json() == release.to_json()
    assert ps.Release.from_json(release.to_json()).model == model
    assert "points" not in release.to_json()
    assert "Do not publish" in json.loads(run.diagnostics.to_json())["warning"]


def test_system_randomness_is_the_default() -> None:
    one, other = (opsamp(**small(random_state=None)).release for _ in range(2))
    assert not one.guarantee.seeded
    assert one.setting == other.setting
    assert len({opsamp(**small(random_state=None)).release.model.steps for _ in range(5)}) > 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["model"].pop("grid"), "missing or unknown"),
        (lambda c: c["model"].update(steps=[10**9]), "not a point of its grid"),
        (lambda c: c["model"].update(steps=["a"]), "whole numbers"),
        (lambda c: c["model"].update(point=[0.123]), "steps give"),
        (lambda c: c["model"].update(low=["a"]), "list of numbers"),
        (lambda c: c.update(setting={}), "setting"),
        (lambda c: c["model"].update(grid=-1.0), "grid"),
    ],
)
def test_broken_release_files_are_refused(change: Callable[[dict[str, Any]], object], message: str) -> None:
    content = json.loads(opsamp(**small()).release.to_json())
    change(content)
    with pytest.raises(ValueError, match=message):
        ps.Release.from_json(json.dumps(content))


def test_the_run_is_its_parts() -> None:
    """The mechanism is noise, oracle, mean, grid and Laplace, in this order and with nothing else."""
    arguments = small()
    run = opsamp(**arguments)
    rng, plan = Randomness.seeded(7), run.diagnostics.plan
    etas = exponential_noise(rng, plan.sigma, (300, 1))
    points, _ = EXACT.minimise_many(DEVIATION, as_box(BOX), etas)
    mean = round(points.mean() / plan.grid)
    noise = DiscreteLaplace(plan.scale_steps).draws(rng, 1)[0]
    assert run.release.model.steps[0] == min(max(mean + noise, 0), int(1 / plan.grid))


def test_oracle_error_enters_the_noise() -> None:
    objective = Objective(lambda x: np.abs(x[:, 0] - 0.3), 1, 1.0)
    scales = []
    for tolerance in (1e-3, 0.1):
        noise = SamplingNoise(sigma=0.01)
        run = opsamp(BoxProblem(objective, BOX), 1.0, 1e-6, 20, oracle=LipschitzOracle(tolerance), noise=noise)
        assert run.release.setting["oracle_error"] == tolerance
        scales.append(run.release.setting["sensitivity"])
    assert scales[1] > scales[0]


def test_exponential_noise_has_rate_sigma() -> None:
    draws = exponential_noise(Randomness.seeded(0), 4.0, (50_000, 2), centred=False)
    assert draws.min() > 0
    assert stats.kstest(draws.ravel(), "expon", args=(0, 0.25)).pvalue > 1e-3
    centred = exponential_noise(Randomness.seeded(0), 4.0, (50_000, 2))
    assert np.allclose(centred + 0.25, draws)


def test_published_calibration_warns_and_is_not_proved() -> None:
    with pytest.warns(PrivacyWarning, match="no valid proof"):
        run = opsamp(**small(noise=SamplingNoise("published"), draws=None))
    assert not run.release.guarantee.proved
    assert "NOT PROVED" in str(run.release.guarantee)
    assert not run.release.setting["centred"]


# --- wrong inputs ---------------------------------------------------------------------------------


untouched = Randomness(lambda size: pytest.fail("noise was drawn"), seeded=True)


def claiming(answer: BoxSolution) -> SimpleNamespace:
    """An oracle that states an error and answers anything."""
    return SimpleNamespace(tolerance=0.1, minimise=lambda objective, box, eta: answer)


CARELESS = SimpleNamespace(minimise=lambda objective, box, eta: BoxSolution(box.corner, 0.0))  # states no error


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"draws": 0}, "draws"),
        ({"draws": None}, "draws"),
        ({"adjacency": "swap"}, "adjacency"),
        ({"adjacency": "add-remove"}, "n must be given for adjacency='add-remove'"),
        ({"noise": "published"}, "noise must be a SamplingNoise"),
        ({"noise": SamplingNoise(grid=5.0)}, "grid"),
        ({"oracle": "exact"}, "oracle"),
        ({"oracle": CARELESS}, "tolerance"),
        ({"problem": DEVIATION}, "problem must be a BoxProblem"),
        ({"problem": changed(n=199)}, "n must be the objective's"),
        ({"problem": changed(box=[(0.0, 2.0)])}, "box"),
        ({"problem": changed(objective=Objective(DEVIATION.values, 200, 1.0))}, "oracle must be given"),
        ({"problem": changed(objective=[1]), "oracle": LipschitzOracle(0.1)}, "objective must be an Objective"),
        (
            {"problem": changed(objective=SimpleNamespace(values=DEVIATION.values)), "oracle": LipschitzOracle(0.1)},
            "objective must be an Objective for this oracle, with n",
        ),
    ],
)
def test_wrong_inputs_are_named_before_any_noise(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        opsamp(**(small(random_state=untouched) | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"box": [(1.0, 0.0)]}, "box"),
        ({"box": [(0.0, 1.0)] * 2}, "box"),
        ({"lipschitz": 0.0}, "lipschitz"),
        ({"lipschitz": 0.5}, "lipschitz must be at least 1"),
        ({"n": 0}, "n must be"),
        ({"objective": CARELESS, "n": None}, "n must be given"),
        ({"objective": CARELESS, "lipschitz": None}, "lipschitz must be given"),
    ],
)
def test_wrong_problems_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        changed(**change)


def test_what_the_objective_states_need_not_be_said_again() -> None:
    problem = BoxProblem(DEVIATION, BOX)
    assert (problem.lipschitz, problem.public_n("replace")) == (1.0, 200)
    said_again = opsamp(**small(problem=changed(), oracle=EXACT))
    assert said_again.release.to_json() == opsamp(**small()).release.to_json()


@pytest.mark.parametrize(("point", "gap"), [(2.0, 0.0), (float("nan"), 0.0), (0.5, 0.2), (0.5, float("nan"))])
def test_answers_that_break_their_promise_release_nothing(point: float, gap: float) -> None:
    with pytest.raises(OracleNotCertified, match="nothing is released"):
        opsamp(**small(oracle=claiming(BoxSolution(np.array([point]), gap))))


def test_a_paid_solve_that_fails_is_retried_with_the_same_noise_and_has_one_answer() -> None:
    """What another oracle finds with the noise of a failed run is what it would have found at once, and stays so."""
    budget = ps.Accountant(1.0, 1e-3)
    general = changed(objective=Objective(DEVIATION.values, 200, 1.0))
    arguments = small(problem=general, draws=20, budget=budget)
    with pytest.raises(ps.WorkLimitReached) as failed:
        opsamp(**arguments, oracle=LipschitzOracle(0.5, max_cells=1, start=1))
    retry = failed.value.retry
    assert retry is not None
    with pytest.raises(ValueError, match="at least as exact"):
        retry(LipschitzOracle(0.6))
    with pytest.raises(ps.WorkLimitReached):
        retry(LipschitzOracle(0.5, max_cells=1, start=1))
    run = retry(LipschitzOracle(0.5))
    straight = opsamp(**arguments | {"budget": None}, oracle=LipschitzOracle(0.5))
    assert run.release.to_json() == straight.release.to_json()
    assert retry(LipschitzOracle(0.01)) is run
    assert len(budget.history) == 1


class Failing:
    """Fails once with words of its own, then answers by itself and by asking for a retry."""

    tolerance = 0.1

    def __init__(self, error: BaseException) -> None:
        self.error: BaseException | None = error
        self.retry: Callable[[Any], ps.Run] | None = None
        self.inner: ps.Run | None = None

    def minimise(self, objective: Any, box: Any, eta: Any) -> Any:
        if self.error is not None:
            raise self.error
        if self.retry is not None and self.inner is None:
            self.inner = self.retry(EXACT)
        return BoxSolution(box.corner, 0.0)


@pytest.mark.parametrize("error", [RuntimeError("row 17 is secret"), KeyboardInterrupt()])
def test_whatever_goes_wrong_keeps_the_noise_and_one_answer(error: BaseException) -> None:
    oracle, accountant = Failing(error), ps.Accountant(10.0, 0.5)
    with pytest.raises((OracleFailed, SolveInterrupted), match=r"noise is kept|nothing was released") as failed:
        opsamp(**small(oracle=oracle, budget=accountant))
    assert "secret" not in str(failed.value)
    oracle.error, oracle.retry = None, failed.value.retry
    assert oracle.retry is not None
    run = oracle.retry(oracle)  # which asks for a retry itself: both get the one answer
    assert run is oracle.inner
    assert len(accountant.history) == 1


def test_add_remove_takes_a_public_n() -> None:
    run = opsamp(**small(adjacency="add-remove", problem=changed(n=250)))
    assert run.release.setting["n"] == 250
    assert run.release.guarantee.adjacency == "add-remove"
    assert "Adding or removing one record" in str(run.release.guarantee)


# --- accuracy -------------------------------------------------------------------------------------


def test_bound_is_nearly_used_where_the_loss_is_steep() -> None:
    """All records at one point, the noise's whole effect is in the loss: between a quarter and all of the bound."""
    n = 10**5
    problem = BoxProblem(absolute_deviation(np.full(n, 0.5), BOX), BOX)
    runs = [opsamp(problem, 1.0, 1e-6, 20_000, random_state=seed) for seed in range(40)]
    excess = np.mean([abs(run.release.model.point[0] - 0.5) for run in runs])
    bound = plan_opsamp(n, [1.0], 1.0, 1.0, 1e-6, 20_000, error=runs[0].release.setting["oracle_error"]).excess
    assert 0.25 * bound < excess <= bound


# --- privacy --------------------------------------------------------------------------------------

RUNS = 6000
AUDIT_DRAWS = 500


def linear(slopes: list[float], n: int, lipschitz: float = 1.0) -> PiecewiseLinear:
    """`Σ_j slope_j·x_j` on the unit cube: a sum of n records of slope at most `lipschitz` each."""
    assert all(abs(s) <= n * lipschitz for s in slopes)
    ends = np.array([0.0, 1.0])
    return PiecewiseLinear((ends,) * len(slopes), tuple(s * ends for s in slopes), n, lipschitz)


def labels_of(plan: SamplingPlan, seed: int, bins: int) -> Callable[[PiecewiseLinear, int], NDArray[np.int64]]:
    """The mechanism, many runs at once: integer labels of the bin of the grid that the release falls into."""
    rng, box = Randomness.seeded(seed), Box((0.0,) * plan.dim, (1.0,) * plan.dim)

    def labels(objective: PiecewiseLinear, runs: int) -> NDArray[np.int64]:
        prepared = EXACT.prepare(objective, box)
        found = np.empty(runs, dtype=np.int64)
        for k in range(runs):
            etas = exponential_noise(rng, plan.sigma, (plan.draws, plan.dim), centred=plan.centred)
            points, _ = EXACT.minimise_many(prepared, box, etas)
            steps = noisy_steps(points, box, plan, rng)
            share = np.minimum(steps * plan.grid * bins, bins - 1).astype(np.int64)
            found[k] = share @ bins ** np.arange(plan.dim)
        return found

    return labels


def worst_pair(plan: SamplingPlan) -> tuple[PiecewiseLinear, PiecewiseLinear]:
    """All records pull one way, one of them turns round: answers differ whenever a noise is in `[0, H]`."""
    offset = -1 / plan.sigma if plan.centred else 0.0
    change = 2.0 if plan.adjacency == "replace" else 1.0
    ends = ([offset + change] * plan.dim, [offset] * plan.dim)
    return linear(ends[0], plan.n), linear(ends[1], plan.n)


def audit_plan(dim: int = 1, centred: bool = True, **options: Any) -> SamplingPlan:
    noise = SamplingNoise(sigma=0.05 / dim**2, centred=centred)
    return plan_opsamp(100, [1.0] * dim, 1.0, 1.0, 1e-6, AUDIT_DRAWS, noise=noise, **options)


def true_loss(plan: SamplingPlan) -> float:
    """How much ε the worst pair loses for d = 1: the distance of the two means over the scale of the noise."""
    change = 2.0 if plan.adjacency == "replace" else 1.0
    return (1 - exp(-change * plan.sigma)) / plan.noise_scale


@pytest.mark.parametrize("options", [{}, {"centred": False}, {"adjacency": "add-remove"}, {"dim": 2}])
def test_audit_passes(options: dict[str, Any]) -> None:
    plan = audit_plan(**options)
    finding = audit.lower_bound(labels_of(plan, 1, 12), *worst_pair(plan), RUNS, delta=1e-6)
    assert not finding.refutes(1.0)


def test_audit_catches_noise_that_is_far_too_small() -> None:
    """On the worst pair the bound is loose by 5.5 at 500 draws (docs/theory/05-opsamp.md), so 20 times less is caught."""
    plan = audit_plan(centred=False)
    assert 5 < 1 / true_loss(plan) < 6.5
    broken = dataclasses.replace(plan, sensitivity=plan.sensitivity / 20, grid=plan.grid / 20)
    finding = audit.lower_bound(labels_of(broken, 2, 200), *worst_pair(plan), RUNS, delta=1e-6)
    assert finding.refutes(1.5)
    assert finding.epsilon <= true_loss(broken) * 1.1


def test_averages_of_neighbours_are_within_lambda() -> None:
    """The event of probability 1 - δ, seen on the worst pair: the exact law of the distance is binomial."""
    for draws in (50, 500, 5000):
        plan = plan_opsamp(50, [1.0], 1.0, 1.0, 1e-3, draws, noise=SamplingNoise(sigma=0.05, centred=False))
        flips = stats.binom(draws, 1 - exp(-2 * 0.05))
        assert flips.sf(plan.sensitivity * draws) <= 1e-3


def test_result_does_not_depend_on_workers() -> None:
    data = np.random.default_rng(0).random((300, 2))
    box = [(0.0, 1.0)] * 2
    args = (BoxProblem(truncated_deviation(data, box, 0.3), box), 1.0, 1e-6, 500)
    alone = opsamp(*args, random_state=5)
    with parallel_config("threading"):
        together = opsamp(*args, random_state=5, n_jobs=3)
    assert alone.release.to_json() == together.release.to_json()
    assert np.array_equal(alone.diagnostics.points, together.diagnostics.points)
