"""The paper's experiment: resumable, repeatable, a report that can be read, and DP-SGD against independent computations."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import dp_accounting
import numpy as np
import pandas as pd
import pytest
from dp_accounting.pld import PLDAccountant
from scipy.optimize import brentq
from scipy.special import ndtr

import privsolve as ps
from privsolve.experiments import dpsgd, methods, report
from privsolve.experiments.adult import EPSILONS, QUICK_EPSILONS, Plan, Reference, Results, run_experiment, run_one
from privsolve.experiments.methods import EXTENDED, HALF, LR, METHODS, OPDISC, OTHER_UNIT, PAPER_UNIT, RSPM, UNITS
from privsolve.privacy.adjacency import Adjacency

QUICK = Plan((0.1,), 1)


def invented_results(runs: int = 15) -> Results:
    """Numbers of the right shape, so that a report can be drawn without running anything."""
    rng = np.random.default_rng(0)
    rows = []
    for place, key in enumerate(METHODS):
        for e in EPSILONS:
            for run in range(runs):
                level = 0.79 - 0.004 * place - 0.01 * max(0.0, -math.log10(e)) * (1 + place / 5)
                value = float(level + 0.004 * rng.normal())
                rows.append((key, e, run, value, value - 0.002, float(0.05 * (place + 1) * rng.gamma(3.0))))
    names = ["method", "epsilon", "run", "train_accuracy", "test_accuracy", "seconds"]
    references = (
        Reference("logistic regression, no privacy", PAPER_UNIT, 0.788, 0.787),
        *(Reference(f"best of the ball, {u:,}s, no privacy", u, 0.776 + 1e-7 * u, 0.775) for u in UNITS),
    )
    return Results(Plan(EPSILONS, runs), pd.DataFrame(rows, columns=names), references)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    out = tmp_path_factory.mktemp("adult")
    return out, run_experiment(out, QUICK, 1, lambda done, total: None)


def test_every_method_has_one_row_and_is_no_worse_than_chance(real: tuple[Path, Results]) -> None:
    rows = real[1].rows
    assert list(zip(rows.method, rows.epsilon, rows.run, strict=True)) == QUICK.tasks
    assert rows.train_accuracy.between(0.3, 0.8).all()
    assert set(METHODS) == set(rows.method)
    assert set(report.STYLES) == {*report.FIGURE_1, *EXTENDED}
    assert set(methods.settings()) == set(EPSILONS)


def test_a_row_depends_on_its_task_only_and_is_not_run_twice(real: tuple[Path, Results]) -> None:
    out, results = real
    pd.testing.assert_frame_equal(run_experiment(out, QUICK, 1, lambda done, total: None).rows, results.rows)
    for _, row in results.rows.iterrows():
        if row.method in (OPDISC, RSPM, LR, "dp-sgd"):
            again = run_one(row.method, row.epsilon, row.run)
            assert (again["train_accuracy"], again["test_accuracy"]) == (row.train_accuracy, row.test_accuracy)


def test_references_are_what_the_tree_and_logistic_regression_give(real: tuple[Path, Results]) -> None:
    logistic, *balls = real[1].references
    best = {r.unit: r.train_accuracy for r in balls}
    assert best[PAPER_UNIT] == pytest.approx(1 - 3515 / 15682, abs=2e-4)
    assert best[OTHER_UNIT] > logistic.train_accuracy > best[PAPER_UNIT]
    assert logistic.train_accuracy == pytest.approx(0.7879, abs=1e-4)


def test_the_printed_scale_is_that_of_the_paper() -> None:
    """7·23·sqrt(ln n²)/ε, with G = τ = 1 and D² = 23; the library's option has the same scale."""
    n = methods.tables()[0].n
    assert methods.published_sigma(n, 0.5) == pytest.approx(7 * 23 * math.sqrt(2 * math.log(15_682)) / 0.5)
    with pytest.warns(ps.PrivacyWarning):
        noise = ps.sphere_noise(methods.ball().domain, 0.5, delta=methods.delta(n), noise="gaussian-published")
    assert noise.scale == pytest.approx(methods.published_sigma(n, 0.5))


def test_half_the_scale_is_half_the_noise() -> None:
    """The same seed gives the same direction: half of the noise at epsilon is all of it at twice the epsilon."""
    seed = np.random.SeedSequence(3)
    assert (METHODS[HALF].fit(0.5, seed) == METHODS[OPDISC].fit(1.0, seed)).all()


def test_the_printed_program_of_rspm_is_minimised() -> None:
    """Brute force over three features: mistakes minus the noise on the weights themselves."""
    train, _ = methods.tables()
    three = train.features[:, :3], train.positives, train.negatives, train.names[:3], train.scales[:3], train.ranges[:3]
    problem = methods.ternary(ps.PatternTable(*three))
    sigma = 7 * math.sqrt(3 * 2 * math.log(train.n)) / 100
    for k in range(5):
        eta = np.random.default_rng(np.random.SeedSequence(k)).normal(scale=sigma, size=3)
        members = problem.domain.members()
        best = members[(problem.losses_of(members) - members @ eta).argmin()]
        assert (methods.rspm_printed(problem, 100.0, np.random.SeedSequence(k)) == best).all()


def test_the_data_are_the_same_in_another_unit() -> None:
    paper, other = (methods.tables(unit)[0] for unit in (PAPER_UNIT, OTHER_UNIT))
    weights = np.zeros(23, dtype=np.int64)
    weights[paper.names.index("capital-gain")] = 1
    assert methods.accuracy(paper, weights) == methods.accuracy(other, weights)
    assert (paper.features == other.features).all()
    assert paper.n == other.n == 15_682


@pytest.mark.nightly
def test_kill_and_go_on(tmp_path: Path) -> None:
    out, options = tmp_path / "adult", ["--quick", "--runs", "1", "--jobs", "1"]
    command = [sys.executable, "-m", "privsolve", "reproduce", "adult", *options, "--out", out]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 300
    while len(kept := list(out.rglob("output.pkl"))) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = {path: path.read_bytes() for path in kept}
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {path: path.read_bytes() for path in kept} == before
    rows = pd.read_csv(out / "results.csv")
    assert list(zip(rows.method, rows.epsilon, rows.run, strict=True)) == Plan(QUICK_EPSILONS, 1).tasks
    assert "As printed: training accuracy" in done.stdout
    assert (out / "report.md").exists()


def test_the_sentences_say_who_is_above_whom() -> None:
    results = invented_results()
    cells = report.summarise(results)
    (first, second, third, fourth), text = report.claims(results), report.opening(results)
    labels = {key: m.label for key, m in METHODS.items()}
    for key, other, sentence in ((OPDISC, LR, first), (RSPM, LR, first), (HALF, RSPM, second)):
        spread = {e: 2 * math.hypot(cells.error[key, e], cells.error[other, e]) for e in EPSILONS}
        difference = {e: cells.train[key, e] - cells.train[other, e] for e in EPSILONS}
        stated = sentence.split(f"{labels[key]} against {labels[other]}: ")[1].split(";")[0]
        for word, found in (
            ("above", [e for e in EPSILONS if difference[e] > spread[e]]),
            ("below", [e for e in EPSILONS if difference[e] < -spread[e]]),
        ):
            assert (word in stated) == bool(found)
            assert not found or f"{word} at ε = {', '.join(f'{e:g}' for e in found)}" in stated
    smaller = [e for e in EPSILONS if cells.deviation[OPDISC, e] < cells.deviation[LR, e]]
    assert third.endswith(f"private LR at ε = {', '.join(f'{e:g}' for e in smaller)}.")
    longest = results.rows.seconds[results.rows.method == RSPM].max()
    assert f"at most {longest:.2f} s" in fourth
    assert f"OPDisc {cells.train[OPDISC, 1.0]:.3f}" in text
    assert text.count(". ") == 1
    assert len(report.reading(results)) == 4


def test_cells_are_means_and_deviations() -> None:
    results = invented_results(4)
    cell = report.summarise(results).loc[("rspm", 0.1)]
    values = results.rows.query("method == 'rspm' and epsilon == 0.1").train_accuracy
    expected = [np.mean(values), np.std(values, ddof=1), np.std(values, ddof=1) / 2]
    assert [cell.train, cell.deviation, cell.error] == pytest.approx(expected)
    head, *rows = report.unit_table(results)
    assert head == ("unit", "ε = 0.1", "ε = 1", "no privacy")
    assert [row[0] for row in rows] == [f"{unit:,}" for unit in UNITS]


@pytest.mark.parametrize("runs", [1, 15])
def test_the_figures_have_the_papers_form(runs: int) -> None:
    """Figure 1 has three curves and a histogram of three methods, the second figure at most six curves."""
    results = invented_results(runs)
    first, second = report.figure_1(results), report.figure_2(results)
    for axes in first.axes:
        assert [t.get_text() for t in axes.get_legend().get_texts()] == ["OPDisc", "RSPM", "private LR"]
    assert len(second.axes[0].containers) == len(EXTENDED) <= 6


def test_reports_of_equal_results_are_equal(tmp_path: Path) -> None:
    results = invented_results(2)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        report.write_report(results, tmp_path / name)
    for path in (tmp_path / "one").iterdir():
        if path.suffix != ".png":
            assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    page = (tmp_path / "one" / "report.md").read_text(encoding="utf-8")
    assert page.index("Figure 1 of the paper") < page.index("Mean accuracy at") < page.index("four claims")
    assert all(line[0] in page for line in report.accuracy_table(results, EXTENDED))
    assert "tuned on the training data without privacy" in page


DELTA = 1 / 15682**2


@pytest.fixture(scope="module")
def small() -> ps.PatternTable:
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 4, size=(300, 3))
    return ps.PatternTable.from_records(rows, rows @ [1, -1, 1] + rng.normal(size=300) > 2, scales=(2, 1, 3))


def clipped(x: np.ndarray, label: int, w: np.ndarray, clip: float) -> np.ndarray:
    gradient = (1 / (1 + math.exp(-x @ w)) - label) * x
    return gradient * min(1, clip / max(float(np.linalg.norm(gradient)), 1e-300))


@pytest.mark.parametrize("clip", [0.05, 0.4, 100.0])
def test_without_noise_a_step_is_the_sum_of_clipped_gradients(small: ps.PatternTable, clip: float) -> None:
    settings = dpsgd.DPSGDSettings(clip, 1.0, 3, 0.01)
    iterates = list(dpsgd.descend(small, settings, 0.0, np.random.default_rng(0)))
    for before, after in pairwise([np.zeros(3), *iterates]):
        total = np.zeros(3)
        for x, positives, negatives in zip(dpsgd.features(small), small.positives, small.negatives, strict=True):
            total += positives * clipped(x, 1, before, clip) + negatives * clipped(x, 0, before, clip)
        np.testing.assert_allclose(after, before - 0.01 * total, atol=1e-12)


def test_noise_and_samples_have_the_stated_law() -> None:
    """One step at w = 0 of records whose gradient is ±1/2: mean and variance of sampling and noise."""
    table = ps.PatternTable([[1]], [400], [200])
    rng, settings = np.random.default_rng(1), dpsgd.DPSGDSettings(1.0, 0.3, 1, 1.0)
    steps = np.array([next(dpsgd.descend(table, settings, 5.0, rng))[0] for _ in range(4000)])
    variance = (600 * 0.3 * 0.7 / 4 + 25) / 0.09
    assert steps.mean() == pytest.approx(100, abs=4 * math.sqrt(variance / 4000))
    assert steps.var() == pytest.approx(variance, rel=0.1)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize(("epsilon", "steps"), [(0.01, 50), (1.0, 1), (3.0, 100)])
def test_the_full_batch_is_the_analytic_gaussian_mechanism(adjacency: Adjacency, epsilon: float, steps: int) -> None:
    """Against the exact epsilon of one Gaussian mechanism (Balle and Wang 2018); replacing moves a sum by two clip norms."""
    z = dpsgd.noise_multiplier(dpsgd.Accounting(epsilon, DELTA, adjacency), 1.0, steps)
    a = (2 if adjacency is Adjacency.REPLACE else 1) * math.sqrt(steps) / z
    exact = brentq(lambda e: ndtr(a / 2 - e / a) - math.exp(e) * ndtr(-a / 2 - e / a) - DELTA, 0, 100, xtol=1e-14)
    assert epsilon * (1 - 2e-3) < exact <= epsilon


def test_sampling_is_accounted_for_by_a_finer_grid_too() -> None:
    z = dpsgd.noise_multiplier(dpsgd.Accounting(0.3, DELTA), 0.1, 64)
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    finer = PLDAccountant(relation, 0.3 / 20_000).compose(dpsgd.event(z, 0.1, 64)).get_epsilon(DELTA)
    assert finer == pytest.approx(0.3, rel=4e-3)
    assert finer <= 0.3


def test_moments_are_for_add_remove_only() -> None:
    with pytest.raises(ValueError, match="add-remove"):
        dpsgd.Accounting(1.0, DELTA, Adjacency.REPLACE, moments=True)
    tight, loose = (dpsgd.Accounting(1.0, DELTA, Adjacency.ADD_REMOVE, moments=m) for m in (False, True))
    ratio = dpsgd.noise_multiplier(loose, 0.02, 300) / dpsgd.noise_multiplier(tight, 0.02, 300)
    assert 1 < ratio < 1.2


def test_a_fit_repeats_by_its_seed_and_learns(small: ps.PatternTable) -> None:
    accounting, settings = dpsgd.Accounting(50.0, 1e-3), dpsgd.DPSGDSettings(1.0, 1.0, 40, 0.02)
    weights = dpsgd.dp_sgd(small, accounting, settings, 3)
    assert (weights == dpsgd.dp_sgd(small, accounting, settings, 3)).all()
    assert 0.8 < dpsgd.accuracy(small, weights) <= dpsgd.accuracy(small, dpsgd.logistic_regression(small)) + 0.02
