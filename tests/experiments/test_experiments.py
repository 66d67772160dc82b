"""The paper's experiment: resumable, repeatable, and a report that can be read."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import privsolve as ps
from privsolve.experiments.adult import EPSILONS, QUICK_EPSILONS, Plan, Reference, Results, run_experiment, run_one
from privsolve.experiments.methods import (
    EXTENDED,
    HALF,
    LR,
    METHODS,
    OPDISC,
    OTHER_UNIT,
    PAPER_UNIT,
    RSPM,
    UNITS,
    accuracy,
    ball,
    delta,
    published_sigma,
    rspm_printed,
    settings,
    tables,
    ternary,
)
from privsolve.experiments.report import (
    FIGURE_1,
    STYLES,
    accuracy_table,
    claims,
    figure_1,
    figure_2,
    opening,
    reading,
    summarise,
    unit_table,
    write_report,
)

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
    assert set(STYLES) == {*FIGURE_1, *EXTENDED}
    assert set(settings()) == set(EPSILONS)


def test_a_row_depends_on_its_task_only_and_is_not_run_twice(real: tuple[Path, Results]) -> None:
    out, results = real
    pd.testing.assert_frame_equal(run_experiment(out, QUICK, 1, lambda done, total: None).rows, results.rows)
    for _, row in results.rows.iterrows():
        if row.method in ("exponential-5000", OPDISC, RSPM, LR, "dp-sgd"):
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
    n = tables()[0].n
    assert published_sigma(n, 0.5) == pytest.approx(7 * 23 * math.sqrt(2 * math.log(15_682)) / 0.5)
    with pytest.warns(ps.PrivacyWarning):
        noise = ps.sphere_noise(ball().domain, 0.5, delta=delta(n), noise="gaussian-published")
    assert noise.scale == pytest.approx(published_sigma(n, 0.5))


def test_half_the_scale_is_half_the_noise() -> None:
    """The same seed gives the same direction: half of the noise at epsilon is all of it at twice the epsilon."""
    seed = np.random.SeedSequence(3)
    assert (METHODS[HALF].fit(0.5, seed) == METHODS[OPDISC].fit(1.0, seed)).all()


def test_the_printed_program_of_rspm_is_minimised() -> None:
    """Brute force over three features: mistakes minus the noise on the weights themselves."""
    train, _ = tables()
    problem = ternary(
        ps.PatternTable(
            train.features[:, :3], train.positives, train.negatives, train.names[:3], train.scales[:3], train.ranges[:3]
        )
    )
    sigma = 7 * math.sqrt(3 * 2 * math.log(train.n)) / 100
    for k in range(5):
        eta = np.random.default_rng(np.random.SeedSequence(k)).normal(scale=sigma, size=3)
        members = problem.domain.members()
        best = members[(problem.losses_of(members) - members @ eta).argmin()]
        assert (rspm_printed(problem, 100.0, np.random.SeedSequence(k)) == best).all()


def test_other_unit_is_the_same_data() -> None:
    paper, other = (tables(unit)[0] for unit in (PAPER_UNIT, OTHER_UNIT))
    weights = np.zeros(23, dtype=np.int64)
    weights[paper.names.index("capital-gain")] = 1
    assert accuracy(paper, weights) == accuracy(other, weights)
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
    cells = summarise(results)
    (first, second, third, fourth), text = claims(results), opening(results)
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
    assert len(reading(results)) == 4


def test_the_table_over_units_has_every_unit() -> None:
    head, *rows = unit_table(invented_results())
    assert head == ("unit", "ε = 0.1", "ε = 1", "no privacy")
    assert [row[0] for row in rows] == [f"{unit:,}" for unit in UNITS]


def test_cells_are_means_and_deviations() -> None:
    results = invented_results(4)
    cell = summarise(results).loc[("rspm", 0.1)]
    values = results.rows.query("method == 'rspm' and epsilon == 0.1").train_accuracy
    assert cell.train == pytest.approx(np.mean(values))
    assert cell.deviation == pytest.approx(np.std(values, ddof=1))
    assert cell.error == pytest.approx(cell.deviation / 2)


def _texts_overlap(figure: Figure) -> list[tuple[str, str]]:
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.canvas.draw()
    boxes = []
    for axes in figure.axes:
        texts = [axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label, *axes.texts]  # type: ignore[attr-defined]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())  # ticks outside exist, but are not drawn
            texts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
        boxes += [(t.get_text(), t.get_window_extent(renderer)) for t in texts if t.get_text() and t.get_visible()]
    for legend in figure.legends:
        boxes += [(t.get_text(), t.get_window_extent(renderer)) for t in legend.get_texts()]
    width, height = figure.canvas.get_width_height()
    assert all(b.x0 >= 0 and b.y0 >= 0 and b.x1 <= width and b.y1 <= height for _, b in boxes)
    return [(a, b) for (a, one), (b, two) in combinations(boxes, 2) if one.overlaps(two)]


@pytest.mark.parametrize("runs", [1, 15])
def test_no_text_of_a_figure_overlaps_another(runs: int) -> None:
    results = invented_results(runs)
    for figure in (figure_1(results), figure_2(results)):
        assert _texts_overlap(figure) == []


def test_the_figures_have_the_papers_form() -> None:
    """Figure 1 has three curves and a histogram of three methods, the second figure at most six curves."""
    results = invented_results(2)
    accuracy_axes, times = figure_1(results).axes
    assert [t.get_text() for t in accuracy_axes.get_legend().get_texts()] == ["OPDisc", "RSPM", "private LR"]
    assert [t.get_text() for t in times.get_legend().get_texts()] == ["OPDisc", "RSPM", "private LR"]
    assert len(figure_2(results).axes[0].containers) == len(EXTENDED) <= 6


def test_reports_of_equal_results_are_equal(tmp_path: Path) -> None:
    results = invented_results(2)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_report(results, tmp_path / name)
    for path in (tmp_path / "one").iterdir():
        if path.suffix != ".png":
            assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    page = (tmp_path / "one" / "report.md").read_text(encoding="utf-8")
    assert page.index("Figure 1 of the paper") < page.index("Mean accuracy at") < page.index("four claims")
    assert all(line[0] in page for line in accuracy_table(results, EXTENDED))
    assert "tuned on the training data without privacy" in page
