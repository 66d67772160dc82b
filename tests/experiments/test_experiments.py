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

from browser import Browser, browser_fixture  # noqa: F401
from privsolve.experiments import adult
from privsolve.experiments.adult import EPSILONS, Plan, Reference, Results, run_experiment, run_one, stored_settings
from privsolve.experiments.figures import STYLES, accuracy_figure, time_figure
from privsolve.experiments.methods import BASELINES, BEST, METHODS, Setup, accuracy
from privsolve.experiments.report import markdown, write_report
from privsolve.experiments.results import HEADER, ResultsFile, Row, read_rows
from privsolve.experiments.summary import reading, summarise

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
    references = tuple(
        Reference(f"{name}, no privacy", a, a - 0.001) for name, a in (("a", 0.776), ("b", 0.79), ("c", 0.788))
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
    assert {m.key for m in METHODS} == {row.method for row in results.rows} == set(STYLES)


def test_a_row_depends_on_its_task_only(real: tuple[Path, Results]) -> None:
    _, results = real
    for row in results.rows:
        if row.method in (BEST, "rspm-published", "dp-sgd", "objective-perturbation"):
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


def test_references_are_what_the_tree_and_newton_give(real: tuple[Path, Results]) -> None:
    _, results = real
    best, other, logistic = results.references
    assert best.train_accuracy == pytest.approx(1 - 3515 / 15682, abs=2e-4)
    assert other.train_accuracy > logistic.train_accuracy > best.train_accuracy


def test_other_unit_is_the_same_data() -> None:
    setup = Setup({})
    paper, other = (setup.tables[unit][0] for unit in ("paper", "other"))
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
    results = out / "results.csv"
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 300
    while (not results.exists() or len(read_rows(results)) < 4) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = read_rows(results)
    assert 4 <= len(kept) < len(METHODS) * 3
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = read_rows(results)
    assert rows[: len(kept)] == kept
    assert len(rows) == len(METHODS) * 3
    assert len({row.task for row in rows}) == len(rows)
    assert "Training accuracy on Adult" in done.stdout
    assert (out / "report.html").exists()


def test_the_reading_says_who_wins() -> None:
    results = invented_results()
    cells = summarise(results)
    sentences = reading(results)
    best = max(METHODS, key=lambda m: cells[m.key, 0.1].mean)
    assert best.label in sentences[0]
    for m in METHODS:
        start = f"{m.label[0].upper()}{m.label[1:]}, against "
        mine = [s for s in sentences if s.startswith(start)]
        if m.key in BASELINES.values():
            assert not mine
            continue
        assert len(mine) == (1 if m.unit == "paper" else 2)
        for sentence, key in zip(mine, dict.fromkeys(("dp-sgd", BASELINES[m.unit])), strict=True):
            theirs = {e: cells[key, e] for e in EPSILONS}
            spread = {e: 2 * math.hypot(cells[m.key, e].error, theirs[e].error) for e in EPSILONS}
            wins = [e for e in EPSILONS if cells[m.key, e].mean - theirs[e].mean > spread[e]]
            losses = [e for e in EPSILONS if theirs[e].mean - cells[m.key, e].mean > spread[e]]
            assert ("better at" in sentence) == bool(wins)
            assert not wins or f"better at ε = {', '.join(f'{e:g}' for e in wins)}" in sentence
            assert not losses or f"worse at ε = {', '.join(f'{e:g}' for e in losses)}" in sentence


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
    for figure in (accuracy_figure(results), accuracy_figure(results, test=True), time_figure(results)):
        assert _texts_overlap(figure) == []


def test_the_figure_says_what_was_tuned_without_privacy() -> None:
    figure = accuracy_figure(invented_results(2))
    labels = [t.get_text() for t in figure.legends[0].get_texts()]
    assert sum("tuned without privacy" in label for label in labels) == 3
    assert sum("no privacy" in label for label in labels) == 3


def test_reports_of_equal_results_are_equal(tmp_path: Path) -> None:
    results = invented_results(2)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_report(results, tmp_path / name)
    for path in (tmp_path / "one").iterdir():
        if path.suffix != ".png":
            assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    assert markdown(results).count("|") > 100


def test_the_page_in_a_browser(tmp_path: Path, browser: Browser) -> None:
    results = invented_results()
    page = write_report(results, tmp_path)[0]
    for width in (400, 1200):
        browser.open(page, width=width)
        assert browser.layout_problems() == []
        assert browser.errors() == []
        assert browser.requests() == []
        shown = browser.text("body")
        for m in METHODS:
            assert m.label in shown
        assert "tuned on the training data without privacy" in shown
