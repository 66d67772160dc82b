"""Run everybody on everything, append one line per run to `results/`, and never run twice what is there.

    python -m peers.harness                          # whatever is missing
    python -m peers.harness --only "short card, 4 features" --datasets adult,compas --splits 0,1 --epsilons 0.3,1
    python -m peers.harness --redo "short card, 4 features"     # forget its lines first

A competitor runs in its own environment (`make -C benchmarks peers` makes them), one worker process at a time, or `--jobs`
of them; a fit that takes too long is recorded as a timeout and its worker is ended.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from select import select
from typing import Any

import numpy as np

from peers.exchange import Exchange
from peers.jobs import Job
from peers.metrics import measure
from peers.registry import COMPETITORS, EPSILONS, Competitor

HERE = Path(__file__).parent
RESULTS = HERE / "results"
CACHE = HERE / "cache"
ENVS = Path(os.environ.get("PEERS_ENVS", HERE / "envs"))
PATIENCE = 2
"""After so many timeouts on a data set the others are not tried: they would take hours to say the same."""

STUCK = 20
"""A worker that takes so many times its limit by the clock is ended as well."""

START_LIMIT = 600.0
"""CPU seconds for a worker's first fit, on a small table: imports and compilation are not what is measured."""


@dataclass(frozen=True)
class Task:
    """One line of the results."""

    competitor: Competitor
    dataset: str
    split: int
    epsilon: float | None
    adjacency: str

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes the line unique."""
        return self.competitor.name, self.dataset, self.split, self.epsilon, self.adjacency

    def job(self, predictions: str = "") -> Job:
        """What a worker is asked."""
        c = self.competitor
        seed = zlib.crc32(repr(self.key).encode())
        path = str(exchange_path(self.dataset, self.split))
        return Job(path, c.model, c.options, self.epsilon, c.delta, self.adjacency, seed, predictions)


def exchange_path(dataset: str, split: int) -> Path:
    """The exchange file; made if it is not there."""
    path = CACHE / f"{dataset}-{split}.npz"
    if not path.exists():
        from peers.datasets import exchange

        exchange(dataset, split).save(path)
    return path


class Worker:
    """A process of a competitor's environment that fits one model after the other."""

    def __init__(self, competitor: Competitor, log: Path) -> None:
        self.runner = competitor.runner
        paths = [str(HERE.parent), os.environ.get("PYTHONPATH", "")]
        self.log = log.open("ab")
        self.process = subprocess.Popen(
            [python_of(competitor.env), "-m", "peers.worker", competitor.runner],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONWARNINGS": "ignore"},
        )

    def ask(self, job: Job, limit: float) -> dict[str, Any]:
        """The answer, or what happened instead of one; the worker is then gone."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(asdict(job)).encode() + b"\n")
            self.process.stdin.flush()
            if not self._answered(limit):
                self.end()
                return {"status": "timeout", "note": f"more than {limit:g} CPU seconds"}
            line = self.process.stdout.readline()
            if line:
                return dict(json.loads(line))
        except BrokenPipeError:
            pass
        self.end()
        return {"status": "error", "note": f"the process ended with code {self.process.returncode}"}

    def _answered(self, limit: float) -> bool:
        """Wait for an answer until so many CPU seconds are used up: other programs on the machine do not count."""
        start, first = time.monotonic(), cpu_seconds(self.process.pid)
        while not select([self.process.stdout], [], [], 0.5)[0]:
            if cpu_seconds(self.process.pid) - first > limit or time.monotonic() - start > STUCK * limit:
                return False
        return True

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self.process.poll() is None

    def end(self) -> None:
        """Stop the process."""
        self.process.kill()
        with suppress(BrokenPipeError):
            self.process.communicate()
        self.log.close()


def cpu_seconds(pid: int) -> float:
    """What a process has used so far, all threads together."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def python_of(env: str) -> str:
    """The interpreter of an environment; our own is the one that runs this."""
    return sys.executable if env == "ours" else str(ENVS / env / "bin" / "python")


def unavailable(competitor: Competitor) -> str | None:
    """Why the competitor cannot be run here, or None."""
    if competitor.env == "privatree" and not os.environ.get("PRIVATREE"):
        return "PRIVATREE is not set to the path of a checkout"
    if not Path(python_of(competitor.env)).exists():
        return f"no environment {ENVS / competitor.env}: `make -C benchmarks peers` makes it"
    return None


def run_all(tasks: list[Task], results: Path, jobs: int = 1) -> None:
    """Everything that has no line yet; with several jobs, so many runners at the same time."""
    results.mkdir(parents=True, exist_ok=True)
    CACHE.mkdir(exist_ok=True)
    rows = read(results)
    done = {key_of(row) for row in rows}
    slow = Counter((row["name"], row["dataset"]) for row in rows if row["status"] == "timeout")
    missing = [task for task in tasks if task.key not in done]
    for place in sorted({("wine", 0), *((task.dataset, task.split) for task in missing)}):
        exchange_path(*place)  # before anybody needs it: two jobs would write it at the same time
    with ThreadPoolExecutor(jobs) as pool:
        parts = [pool.submit(run_part, name, own, results, slow) for name, own in by_runner(missing)]
        for part in parts:
            part.result()


def run_part(runner: str, tasks: list[Task], results: Path, slow: Counter[tuple[str, str]]) -> None:
    """The tasks of one runner, or a note why there are none."""
    if reason := unavailable(tasks[0].competitor):
        print(f"{runner}: skipped {len(tasks)} runs: {reason}", flush=True)
    else:
        run_tasks(tasks, results / f"{runner}.jsonl", slow)


def by_runner(tasks: list[Task]) -> Iterator[tuple[str, list[Task]]]:
    """The tasks of each runner, in the order of the registry."""
    for runner in dict.fromkeys(task.competitor.runner for task in tasks):
        yield runner, [task for task in tasks if task.competitor.runner == runner]


def run_tasks(tasks: list[Task], path: Path, slow: Counter[tuple[str, str]]) -> None:
    """One worker after the other, a new one where the last one was ended."""
    log = CACHE / f"{path.stem}.log"
    worker, warm = None, set[str]()
    try:
        for task in tasks:
            place = task.competitor.name, task.dataset
            if slow[place] >= PATIENCE:
                append(path, task, {"status": "not tried", "note": "earlier fits on this data set took too long"})
                continue
            if worker is None or not worker.alive:
                worker, warm = Worker(task.competitor, log), set()
            if task.competitor.name not in warm:
                worker.ask(warming(task), START_LIMIT)
                warm.add(task.competitor.name)
            if not worker.alive:
                append(path, task, {"status": "error", "note": "the first fit on a small table did not end well"})
                continue
            reply = one(worker, task)
            slow[place] += reply["status"] == "timeout"
            append(path, task, reply)
    finally:
        if worker is not None and worker.alive:
            worker.end()


def warming(task: Task) -> Job:
    """A fit on a small table, so that imports and compilation are not measured."""
    small = Task(task.competitor, "wine", 0, None if task.epsilon is None else 1.0, task.adjacency)
    return small.job(str(CACHE / "warming.npz"))


def one(worker: Worker, task: Task) -> dict[str, Any]:
    """Ask, and measure what the predictions are worth."""
    with tempfile.TemporaryDirectory() as folder:
        predictions = Path(folder) / "predictions.npz"
        reply = worker.ask(task.job(str(predictions)), task.competitor.limit)
        if reply["status"] != "ok":
            return reply
        labels = Exchange.load(exchange_path(task.dataset, task.split)).test.labels
        with np.load(predictions) as stored:
            found = dict(stored)
        risks = found.get("risks")
        return reply | measure(labels, found["labels"], found["scores"], risks)


def append(path: Path, task: Task, reply: dict[str, Any]) -> None:
    """Add the line and say so."""
    c = task.competitor
    row = {
        "name": c.name,
        "group": c.group,
        "dataset": task.dataset,
        "split": task.split,
        "epsilon": task.epsilon,
        "delta": None if c.group == "plain" else c.delta,
        "adjacency": task.adjacency,
    } | reply
    with path.open("a") as file:
        print(json.dumps(row), file=file)
    shown = [row["name"], row["dataset"], row["split"], row["epsilon"], row["adjacency"], row["status"]]
    print(time.strftime("%H:%M:%S"), *shown, row.get("accuracy"), row.get("auc"), row.get("seconds"), flush=True)


def read(results: Path) -> list[dict[str, Any]]:
    """All lines."""
    return [json.loads(line) for path in sorted(results.glob("*.jsonl")) for line in path.read_text().splitlines()]


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """As `Task.key`."""
    return tuple(row[name] for name in ("name", "dataset", "split", "epsilon", "adjacency"))


def forget(results: Path, names: set[str]) -> None:
    """Drop the lines of these competitors."""
    for path in results.glob("*.jsonl"):
        kept = [line for line in path.read_text().splitlines() if json.loads(line)["name"] not in names]
        path.write_text("".join(f"{line}\n" for line in kept))


def tasks_of(names: set[str] | None, datasets: list[str], splits: list[int], epsilons: list[float]) -> list[Task]:
    """All runs, those of the first split first, so that what there is can always be compared."""
    return [
        Task(c, dataset, split, epsilon, adjacency)
        for split in splits
        for c in COMPETITORS
        if names is None or c.name in names
        for dataset in datasets
        for epsilon in c.epsilons
        if epsilon is None or epsilon in epsilons
        for adjacency in c.relations
    ]


def main() -> None:
    """The command line."""
    everything = "adult,breast_cancer,wine,digits,compas,german,additive,interactions,hospital,fraud,default,spam"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="a competitor's name; may be repeated")
    parser.add_argument("--datasets", default=everything)
    parser.add_argument("--splits", default="0,1,2,3,4")
    parser.add_argument("--epsilons", default=",".join(map(str, EPSILONS)))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--redo", action="append", default=[], help="forget this competitor's lines first")
    parser.add_argument("--jobs", type=int, default=1, help="so many workers at the same time")
    parser.add_argument(
        "--quick", action="store_true", help="two data sets, two splits, ε = 1, no results kept elsewhere"
    )
    said = parser.parse_args()
    if said.quick:
        said.datasets, said.splits, said.epsilons, said.results = "compas,german", "0,1", "1.0", CACHE / "quick"
    names = set(said.only or []) | set(said.redo)
    if unknown := names - {c.name for c in COMPETITORS}:
        parser.error(f"nobody is called {', '.join(sorted(unknown))}: see registry.py")
    forget(said.results, set(said.redo))
    splits, epsilons = [int(s) for s in said.splits.split(",")], [float(e) for e in said.epsilons.split(",")]
    run_all(tasks_of(names or None, said.datasets.split(","), splits, epsilons), said.results, said.jobs)


if __name__ == "__main__":
    main()
