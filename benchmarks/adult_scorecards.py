"""Private scorecards on Adult beside what people use without privacy: FasterRisk and logistic regression.

    python benchmarks/adult_scorecards.py --fasterrisk-python PATH --out table.md

All models choose among the same 33 yes/no features (`adult_schema`) and learn from the whole training file; they are judged
on the test file. FasterRisk pins old versions of its dependencies, so it runs in an environment of its own (Python 3.11):

    python -m venv fasterrisk && fasterrisk/bin/pip install fasterrisk==0.1.10

and PATH is `fasterrisk/bin/python`. Without the option it is looked for in this environment, and left out if it is not there.
Every figure depends on the records. Adult is public; on private data none of them could be published.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import privsolve as ps
from peers.runners.dpsgd import settings_grid, tuned
from privsolve.data import EncodedTable
from privsolve.experiments.dpsgd import Accounting, dp_sgd
from privsolve.learn.short_card_recipe import CardLimits, ShortCardRecipe
from privsolve.oracles.exact import TreeOracle
from privsolve.problems.perturbation import Perturbation

Weights = NDArray[np.int64] | NDArray[np.float64]

EPSILONS = (0.1, 1.0)
MAX_FEATURES = 6
MAX_POINTS = 3
LIMITS = CardLimits(MAX_FEATURES, MAX_POINTS, (-8, 8))
COSTS = (1, 3)  # of a false negative; a false positive costs 1
FASTERRISK_POINTS = (MAX_POINTS, 5)  # as ours, and its default
FIRST_SEED = 1000  # of the DP-SGD fits that are reported

# Runs in FasterRisk's own Python. Its own classifier counts the right answers, so that ours can be checked against it.
FASTERRISK = """
import sys
from importlib.metadata import version
import numpy as np
from fasterrisk.fasterrisk import RiskScoreClassifier, RiskScoreOptimizer
source, target, features, points = sys.argv[1:]
data = np.load(source)
search = RiskScoreOptimizer(data["X"], data["y"], k=int(features), lb=-int(points), ub=int(points))
search.optimize()
multipliers, intercepts, points = search.get_models()
models = [RiskScoreClassifier(*model) for model in zip(multipliers, intercepts, points)]
right = [int((model.predict(data["X"]) == data["y"]).sum()) for model in models]
np.savez(target, weights=np.column_stack([points, intercepts]), right=right, version=version("fasterrisk"))
"""
NO_FASTERRISK = (
    "{} has no FasterRisk: give --fasterrisk-python, the Python of an environment with it "
    "(python -m venv fasterrisk && fasterrisk/bin/pip install fasterrisk==0.1.10)"
)


@dataclass(frozen=True)
class Row:
    """One line of the table: a method and the weights of its runs, the intercept's last."""

    name: str
    privacy: str
    weights: Sequence[Weights]


@dataclass(frozen=True)
class Data:
    """The training and the test file as tables of the schema's features."""

    schema: ps.Schema
    encoded: EncodedTable
    test: ps.PatternTable

    @classmethod
    def load(cls) -> Data:
        schema, frame = ps.datasets.adult_schema(), ps.datasets.adult()
        train, test = (schema.table(frame[frame["split"] == split]) for split in ("train", "test"))
        return cls(schema, train, test.table)

    @property
    def train(self) -> ps.PatternTable:
        return self.encoded.table

    @property
    def cards(self) -> ps.SparsePoints:
        return LIMITS.plain_domain(self.train.dim, True)

    @property
    def records(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The training records one by one: features without the intercept, and labels -1 or +1."""
        features = self.train.features[:, :-1].astype(np.float64)
        rows = [np.repeat(features, counts, axis=0) for counts in (self.train.negatives, self.train.positives)]
        return np.concatenate(rows), np.repeat([-1.0, 1.0], [len(part) for part in rows])


def rates(table: ps.PatternTable, weights: Weights) -> tuple[float, float]:
    """Accuracy and balanced accuracy of "positive iff the score is above 0"."""
    positive = table.features @ weights > 0
    hits = np.array([table.negatives[~positive].sum(), table.positives[positive].sum()])
    totals = np.array([table.negatives.sum(), table.positives.sum()])
    return float(hits.sum() / totals.sum()), float((hits / totals).mean())


def private_cards(data: Data, runs: int) -> Iterator[tuple[Row, ps.Run]]:
    """The rows of private scorecards, each with its first run."""
    for cost in COSTS:
        for epsilon in EPSILONS:
            recipe = ShortCardRecipe(epsilon, LIMITS, false_negative=cost)
            drawn = [recipe.run(data.encoded, random_state=seed) for seed in range(runs)]
            row = Row("private scorecard" + with_cost(cost), f"ε = {epsilon:g}", [run.release.weights for run in drawn])
            yield row, drawn[0]


def best_cards(data: Data) -> Iterator[Row]:
    for cost in COSTS:
        problem = ps.Problem(data.train, data.cards, ps.ZeroOneLoss(1, cost))
        best = TreeOracle().minimise(problem, Perturbation.zero(data.cards))
        yield Row("best scorecard, certified" + with_cost(cost), "none", [best.weights])


def with_cost(cost: int) -> str:
    return f", false negatives count {cost}" if cost > 1 else ""


def logistic_regression(data: Data) -> Row:
    fit = LogisticRegression(max_iter=1000).fit(*data.records)
    return Row("logistic regression", "none", [np.append(fit.coef_[0], fit.intercept_)])


def private_logistic_regression(data: Data, runs: int) -> Iterator[Row]:
    delta = 1 / data.train.n**2
    for epsilon in EPSILONS:
        accounting = Accounting(epsilon, delta)
        grid = settings_grid(data.train.n, (0.3, 1.0), (16, 64, 250, 1000, 2000), (0.1, 0.5, 1.0))
        settings = tuned(data.train, accounting, grid)
        print(f"DP-SGD at ε = {epsilon:g}: {settings}", file=sys.stderr)
        fits = [dp_sgd(data.train, accounting, settings, FIRST_SEED + run) for run in range(runs)]
        yield Row("DP-SGD, tuned without privacy", f"ε = {epsilon:g}, δ = {delta:.1e}", fits)


def has_fasterrisk(python: str) -> bool:
    try:
        return subprocess.run([python, "-I", "-c", "import fasterrisk"], stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def fasterrisk(data: Data, python: str, points: int) -> Iterator[Row]:
    """FasterRisk's first card, by its logistic loss, and the card of its pool with the best training accuracy."""
    features, labels = data.records
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "records.npz"), Path(folder, "cards.npz")
        np.savez(source, X=features, y=labels)
        command = [python, "-I", "-c", FASTERRISK, str(source), str(target), str(MAX_FEATURES), str(points)]
        subprocess.run(command, check=True)
        with np.load(target) as found:
            pool, right, version = found["weights"], found["right"], str(found["version"])
    ours = np.array([rates(data.train, card)[0] for card in pool])
    if not np.array_equal(np.rint(ours * data.train.n), right):
        raise RuntimeError("FasterRisk counts other right answers than this script: a card was read wrongly")
    name = f"FasterRisk {version}, points -{points}..{points}"
    yield Row(f"{name}, first of its pool", "none", [pool[0]])
    yield Row(f"{name}, most accurate of {len(pool)}", "none", [pool[int(ours.argmax())]])


def markdown(data: Data, rows: Sequence[Row]) -> str:
    head = ["model", "privacy", "features used", "training accuracy", "test accuracy", "test balanced accuracy"]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        train, test = (np.array([rates(table, w) for w in row.weights]) for table in (data.train, data.test))
        used = np.mean([np.count_nonzero(w[:-1]) for w in row.weights])
        figures = (spread(train[:, 0]), spread(test[:, 0]), spread(test[:, 1]))
        lines.append([row.name, row.privacy, f"{used:.3g}", *figures])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def spread(values: NDArray[np.float64]) -> str:
    """Mean and standard deviation in percent."""
    return f"{100 * values.mean():.2f}" + (f" ± {100 * values.std(ddof=1):.2f}" if len(values) > 1 else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fasterrisk-python", help="Python of an environment with FasterRisk")
    parser.add_argument("--runs", type=int, default=10, help="of every private method")
    parser.add_argument("--out", type=Path, help="file for the Markdown")
    options = parser.parse_args()
    python = options.fasterrisk_python or sys.executable
    found = has_fasterrisk(python)
    if not found and options.fasterrisk_python:
        parser.error(NO_FASTERRISK.format(python))

    data = Data.load()
    rows: list[Row] = []
    if found:
        rows += [row for points in FASTERRISK_POINTS for row in fasterrisk(data, python, points)]
    else:
        print(f"left out: {NO_FASTERRISK.format('this Python')}", file=sys.stderr)
    rows += [*best_cards(data), logistic_regression(data)]
    drawn = list(private_cards(data, options.runs))
    rows = [row for row, _ in drawn] + rows + list(private_logistic_regression(data, options.runs))
    card = drawn[EPSILONS.index(1.0)][1].release.card()
    text = f"{markdown(data, rows)}\n\n```\n{card.to_text()}```\n"
    print(text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
