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
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import privsolve as ps
from browser import Browser, browser_fixture  # noqa: F401
from privsolve.experiments import adult
from privsolve.experiments.adult import (
    EPSILONS,
    HEADER,
    QUICK_EPSILONS,
    Plan,
    Reference,
    Results,
    ResultsFile,
    Row,
    read_rows,
    run_experiment,
    run_one,
    stored_settings,
)
from privsolve.experiments.figures import FIGURE_1, STYLES, figure_1, figure_2
from privsolve.experiments.methods import (
    EXTENDED,
    HALF,
    LR,
    METHODS,
    OPDISC,
    OTHER_UNIT,
    PAPER_UNIT,
    PRINTED,
    RSPM,
    UNITS,
    Setup,
    accuracy,
    published_sigma,
)
from privsolve.experiments.report import markdown, write_report
from privsolve.experiments.summary import accuracy_table, claims, opening, reading, summarise, unit_table

QUICK = Plan((0.1,), 1, search=False)
STORED = stored_settings()
TUNED = tuple(sorted(STORED.items()))


def invented_results(runs: int = 15) -> Results:
    """Numbers of the right shape, so that a report can be drawn without running anything."""
    rng = np.random.default_rng(0)
    rows = []
    for place, m in enumerate(METHODS):
        for e in EPSILONS:
            for run in range(runs):
                level = 0.79 - 0.004 * place - 0.01 * max(0.0, -math.log10(e)) * (1 + place / 5)
                value = float(level + 0.004 * rng.normal())
                rows.append(Row(m.key, e, run, value, value - 0.002, float(0.05 * (place + 1) * rng.gamma(3.0))))
    references = (
        Reference("logistic regression, no privacy", PAPER_UNIT, 0.788, 0.787),
        *(Reference(f"best of the ball, {u:,}s, no privacy", u, 0.776 + 1e-7 * u, 0.775) for u in UNITS),
    )
    return Results(Plan(EPSILONS, runs, search=True), tuple(rows), references)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    out = tmp_path_factory.mktemp("adult")
    return out, run_experiment(out, QUICK, 1, lambda stage, done, total: None)


def test_every_method_has_one_row_and_is_no_worse_than_chance(real: tuple[Path, Results]) -> None:
    _, results = real
    assert [row.task for row in results.rows] == QUICK.tasks
    assert all(0.3 < row.train_accuracy < 0.8 for row in results.rows)
    assert {m.key for m in METHODS} == {row.method for row in results.rows}
    assert set(STYLES) == {*FIGURE_1, *EXTENDED}


def test_a_row_depends_on_its_task_only(real: tuple[Path, Results]) -> None:
    _, results = real
    for row in results.rows:
        if row.method in ("exponential-5000", OPDISC, RSPM, LR, "dp-sgd"):
            again = run_one(TUNED, row.task)
            assert (again.train_accuracy, again.test_accuracy) == (row.train_accuracy, row.test_accuracy)


def test_nothing_is_done_twice(real: tuple[Path, Results], monkeypatch: pytest.MonkeyPatch) -> None:
    out, results = real
    before = (out / "results.csv").read_bytes()

    def refuse(*_: object) -> None:
        raise AssertionError("ran again")

    monkeypatch.setattr(adult, "run_one", refuse)
    again = run_experiment(out, QUICK, 1, lambda stage, done, total: None)
    assert again.rows == results.rows
    assert (out / "results.csv").read_bytes() == before


def test_references_are_what_the_tree_and_logistic_regression_give(real: tuple[Path, Results]) -> None:
    _, results = real
    logistic, *balls = results.references
    best = {r.unit: r.train_accuracy for r in balls}
    assert best[PAPER_UNIT] == pytest.approx(1 - 3515 / 15682, abs=2e-4)
    assert best[OTHER_UNIT] > logistic.train_accuracy > best[PAPER_UNIT]
    assert logistic.train_accuracy == pytest.approx(0.7879, abs=1e-4)


def test_the_printed_scale_is_that_of_the_paper() -> None:
    """7·23·sqrt(ln n²)/ε, with G = τ = 1 and D² = 23; the library's option has the same scale."""
    setup = Setup({})
    assert published_sigma(setup, 0.5) == pytest.approx(7 * 23 * math.sqrt(2 * math.log(15_682)) / 0.5)
    with pytest.warns(ps.PrivacyWarning):
        noise = ps.sphere_noise(setup.ball().domain, 0.5, delta=setup.delta, noise="gaussian-published")
    assert noise.scale == pytest.approx(published_sigma(setup, 0.5))


def test_half_the_scale_is_half_the_noise() -> None:
    """The same seed gives the same direction: half of the noise at epsilon is all of it at twice the epsilon."""
    setup, seed = Setup({}), np.random.SeedSequence(3)
    whole, half = (next(m for m in METHODS if m.key == key) for key in (OPDISC, HALF))
    assert (half.fit(setup, 0.5, seed) == whole.fit(setup, 1.0, seed)).all()


def test_the_printed_program_of_rspm_is_minimised() -> None:
    """Brute force over three features: mistakes minus the noise on the weights themselves."""
    setup = Setup({})
    train = setup.train()
    few = ps.PatternTable(
        train.features[:, :3], train.positives, train.negatives, train.names[:3], train.scales[:3], train.ranges[:3]
    )
    setup._tables[PAPER_UNIT] = few, few
    problem, n = setup.ternary(), few.n
    sigma = 7 * math.sqrt(3 * 2 * math.log(n)) / 100
    for k in range(5):
        eta = np.random.default_rng(np.random.SeedSequence(k)).normal(scale=sigma, size=3)
        members = problem.domain.members()
        best = members[(problem.losses_of(members) - members @ eta).argmin()]
        printed = next(m for m in METHODS if m.key == RSPM)
        assert (printed.fit(setup, 100.0, np.random.SeedSequence(k)) == best).all()


def test_other_unit_is_the_same_data() -> None:
    setup = Setup({})
    paper, other = (setup.train(unit) for unit in (PAPER_UNIT, OTHER_UNIT))
    weights = np.zeros(23, dtype=np.int64)
    weights[paper.names.index("capital-gain")] = 1
    assert accuracy(paper, weights) == accuracy(other, weights)
    assert (paper.features == other.features).all()
    assert paper.n == other.n == 15_682


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_line_cut_short_is_dropped_and_the_rest_kept(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "results.csv"
    file = ResultsFile(path)
    rows = [Row("dp-sgd", 0.1, run, 0.75 + run / 1000, 0.74, 0.5) for run in range(3)]
    for row in rows:
        file.append(row)
    assert read_rows(path) == rows
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    resumed = ResultsFile(path)
    assert resumed.rows == rows[:2]
    resumed.append(rows[2])
    assert path.read_bytes() == whole


def test_other_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    for text in ("something else\n", HEADER + "dp-sgd,many,0,1,1,1\n", HEADER + "too,short\n"):
        path.write_text(text)
        with pytest.raises(ValueError, match="choose another folder"):
            ResultsFile(path)
        assert path.read_text() == text


def test_quick_and_full_do_not_mix(tmp_path: Path, real: tuple[Path, Results]) -> None:
    out, _ = real
    with pytest.raises(ValueError, match="holds a quick run: choose another folder"):
        run_experiment(out, Plan((0.1,), 1, search=True), 1, lambda stage, done, total: None)
    (tmp_path / "tuning.json").write_text("{}")
    with pytest.raises(ValueError, match="is not a tuning file"):
        run_experiment(tmp_path, QUICK, 1, lambda stage, done, total: None)


@pytest.mark.nightly
def test_kill_and_go_on(tmp_path: Path) -> None:
    out = tmp_path / "adult"
    command = [
        sys.executable,
        "-m",
        "privsolve",
        "reproduce",
        "adult",
        "--quick",
        "--runs",
        "1",
        "--jobs",
        "1",
        "--out",
        out,
    ]
    results, tasks = out / "results.csv", len(Plan(QUICK_EPSILONS, 1, search=False).tasks)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 300
    while (not results.exists() or len(read_rows(results)) < 4) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = read_rows(results)
    assert 4 <= len(kept) < tasks
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = read_rows(results)
    assert rows[: len(kept)] == kept
    assert len(rows) == tasks
    assert len({row.task for row in rows}) == len(rows)
    assert "As printed: training accuracy" in done.stdout
    assert (out / "report.html").exists()


def test_the_sentences_say_who_is_above_whom() -> None:
    results = invented_results()
    cells = summarise(results)
    (first, second, third, fourth), text = claims(results), opening(results)
    labels = {m.key: m.label for m in METHODS}
    for key, other, sentence in ((OPDISC, LR, first), (RSPM, LR, first), (HALF, RSPM, second)):
        spread = {e: 2 * math.hypot(cells[key, e].error, cells[other, e].error) for e in EPSILONS}
        difference = {e: cells[key, e].mean - cells[other, e].mean for e in EPSILONS}
        stated = sentence.split(f"{labels[key]} against {labels[other]}: ")[1].split(";")[0]
        for word, found in (
            ("above", [e for e in EPSILONS if difference[e] > spread[e]]),
            ("below", [e for e in EPSILONS if difference[e] < -spread[e]]),
        ):
            assert (word in stated) == bool(found)
            assert not found or f"{word} at ε = {', '.join(f'{e:g}' for e in found)}" in stated
    smaller = [e for e in EPSILONS if cells[OPDISC, e].deviation < cells[LR, e].deviation]
    assert third.endswith(f"private LR at ε = {', '.join(f'{e:g}' for e in smaller)}.")
    longest = max(r.seconds for r in results.rows if r.method == RSPM)
    assert f"at most {longest:.2f} s" in fourth
    assert f"OPDisc {cells[OPDISC, 1.0].mean:.3f}" in text
    assert text.count(". ") == 1
    assert len(reading(results)) == 4


def test_the_table_over_units_has_every_unit() -> None:
    head, rows = unit_table(invented_results())
    assert head == ("unit", "ε = 0.1", "ε = 1", "no privacy")
    assert [row[0] for row in rows] == [f"{unit:,}" for unit in UNITS]


def test_cells_are_means_and_deviations() -> None:
    results = invented_results(4)
    cell = summarise(results)["rspm", 0.1]
    values = [r.train_accuracy for r in results.rows if r.method == "rspm" and r.epsilon == 0.1]
    assert cell.mean == pytest.approx(np.mean(values))
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
    assert markdown(results, tmp_path).count("|") > 100


def test_the_page_in_a_browser(tmp_path: Path, browser: Browser) -> None:
    results = invented_results()
    page = write_report(results, tmp_path)[0]
    for width in (400, 1200):
        browser.open(page, width=width)
        assert browser.layout_problems() == []
        assert browser.errors() == []
        assert browser.requests() == []
        shown = browser.text("body")
        assert shown.index("Figure 1 of the paper") < shown.index("Mean accuracy at") < shown.index("four claims")
        for label, *_ in accuracy_table(results, (*PRINTED, *EXTENDED))[1]:
            assert label in shown
        assert "tuned on the training data without privacy" in " ".join(shown.split())
