"""The same perturbed problems solved by every oracle, side by side.

    python benchmarks/oracles.py --out docs/oracles-table.md

Noise is Gaussian with the published scale 7 D² sqrt(ln n²) / ε (theory, section 2.3), which is not proved and used here
because it is the setting of the paper. Each solve runs in a process of its own, is warmed up first (so that compilation
is not timed) and is checked against the tree where both finish.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import scipy

import privsolve as ps
from privsolve import oracles

EPSILONS = (0.1, 0.3, 1.0, 3.0)
ORACLES = ("tree", "highs", "gurobi")
PROBLEMS = {
    "Adult": "all 23 columns, 2,611 patterns, squared norm at most 23",
    "slice": "the first 21 columns, 563 patterns, squared norm at most 23; fits Gurobi's built-in licence",
}
GRACE = 60.0
UNIT = 2**20


@dataclass(frozen=True)
class Case:
    problem: str
    epsilon: float
    seed: int
    oracle: str
    limit: float


@dataclass(frozen=True)
class Result:
    seconds: float
    status: str
    objective: float | None = None
    bound: float | None = None

    @property
    def gap(self) -> float | None:
        return None if self.objective is None or self.bound is None else self.objective - self.bound


def problem_of(name: str) -> ps.Problem:
    table = ps.datasets.adult_paper(seed=0)
    if name == "slice":
        columns = list(range(21))
        table = ps.PatternTable(
            table.features[:, columns],
            table.positives,
            table.negatives,
            names=[table.names[j] for j in columns],
            scales=[table.scales[j] for j in columns],
        )
    return ps.Problem(table, ps.IntegerBall(table.dim, 23))


def noise_of(problem: ps.Problem, epsilon: float, seed: int) -> ps.Perturbation:
    sigma = 7 * 23 * math.sqrt(math.log(problem.table.n**2)) / epsilon
    eta = np.random.default_rng(seed).normal(size=24)[: problem.domain.lift_dim] * sigma
    return ps.Perturbation.lifted(problem.domain, eta)


def solve(case: Case) -> Result:
    """One timed solve in this process."""
    kinds = {"tree": oracles.TreeOracle, "highs": oracles.HighsOracle, "gurobi": oracles.GurobiOracle}
    oracle = kinds[case.oracle](time_limit=case.limit)
    problem = problem_of(case.problem)
    tiny = ps.Problem(ps.PatternTable([[1, 0], [1, 1]], [2, 0], [1, 3]), ps.IntegerBall(2, 4))
    kinds[case.oracle]().minimise(tiny, ps.Perturbation.lifted(tiny.domain, [1.0, -2.0, 0.5]))
    oracles.TreeOracle().minimise(problem, noise_of(problem, 0.01, 0))  # compiles the tree
    try:
        oracle.check(problem)
    except oracles.SolverUnavailable:
        return Result(0.0, "licence")
    perturbation = noise_of(problem, case.epsilon, case.seed)
    start = time.perf_counter()
    try:
        answer = oracle.minimise(problem, perturbation)
    except ps.OracleNotCertified as error:
        status = "limit" if isinstance(error, ps.WorkLimitReached) else "not certified"
        return Result(time.perf_counter() - start, status)
    return Result(time.perf_counter() - start, "solved", answer.objective, answer.bound)


def run_apart(case: Case) -> Result:
    """The solve in its own process, so that solvers cannot disturb each other and none can outstay its limit."""
    command = [sys.executable, __file__, "--case", json.dumps(asdict(case))]
    start = time.perf_counter()
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=case.limit + GRACE)
    except subprocess.TimeoutExpired:
        return Result(time.perf_counter() - start, "limit")
    if run.returncode != 0:
        print(run.stderr, file=sys.stderr)
        return Result(time.perf_counter() - start, "solver crashed")
    return Result(**json.loads(run.stdout.splitlines()[-1]))


def cases(options: argparse.Namespace) -> Iterator[Case]:
    for problem in options.problems:
        for epsilon in options.epsilons:
            for seed in range(options.seeds):
                for oracle in options.oracles:
                    if oracles.get(oracle).about.installed:
                        yield Case(problem, epsilon, seed, oracle, options.limit)


def verdict(result: Result, tree: Result | None) -> str:
    """The status, and whether the oracle contradicts the tree's certified optimum."""
    if tree is None or tree.status != "solved" or tree.objective is None or result.bound is None:
        return result.status
    if result.bound > tree.objective + 1 / UNIT:
        return "WRONG BOUND"
    return result.status


def line(case: Case, result: Result, tree: Result | None) -> str:
    def number(value: float | None, form: str) -> str:
        return "" if value is None else format(value, form)

    ratio = ""
    if tree is not None and tree.status == "solved" and case.oracle != "tree" and result.status != "licence":
        more = "" if result.status == "solved" else "> "
        ratio = f"{more}{result.seconds / tree.seconds:,.0f}"
    cells = [
        case.problem,
        f"{case.epsilon:g}",
        str(case.seed),
        case.oracle,
        number(result.seconds, ".2f"),
        verdict(result, tree),
        number(result.objective, ",.2f"),
        number(result.bound, ",.2f"),
        number(result.gap, ",.2f"),
        ratio,
    ]
    return "| " + " | ".join(cells) + " |"


HEAD = (
    "| problem | ε | seed | oracle | seconds | result | objective | bound | gap | seconds / tree |\n"
    "|---|--:|--:|---|--:|---|--:|--:|--:|--:|"
)


def summary(results: dict[Case, Result]) -> str:
    """Per problem, ε and oracle: how many seeds were solved, and medians that count a limit as the time it took."""
    lines = [
        "| problem | ε | oracle | solved | median seconds | median ratio to the tree |",
        "|---|--:|---|--:|--:|--:|",
    ]
    groups: dict[tuple[str, float, str], list[Case]] = {}
    for case in results:
        groups.setdefault((case.problem, case.epsilon, case.oracle), []).append(case)
    for (problem, epsilon, oracle), members in groups.items():
        found = [results[c] for c in members]
        if any(r.status == "licence" for r in found):
            lines.append(f"| {problem} | {epsilon:g} | {oracle} | beyond its licence | | |")
            continue
        solved = sum(r.status == "solved" for r in found)
        seconds = float(np.median([r.seconds for r in found]))
        trees = [results.get(Case(c.problem, c.epsilon, c.seed, "tree", c.limit)) for c in members]
        ratios = [r.seconds / t.seconds for r, t in zip(found, trees, strict=True) if t and t.status == "solved"]
        more = "" if solved == len(found) else "≥ "
        ratio = f"{more}{np.median(ratios):,.0f}" if ratios and oracle != "tree" else ""
        lines.append(f"| {problem} | {epsilon:g} | {oracle} | {solved}/{len(found)} | {more}{seconds:.2f} | {ratio} |")
    return "\n".join(lines)


def document(options: argparse.Namespace, results: dict[Case, Result], rows: list[str]) -> str:
    versions = f"highs of SciPy {scipy.__version__}, gurobi {oracles.GurobiOracle.about.status}"
    described = "\n".join(f"* {name}: {PROBLEMS[name]}." for name in options.problems)
    command = " ".join(["python benchmarks/oracles.py", *sys.argv[1:]])
    return (
        f"`{command}`\n\n{described}\n\nPython {platform.python_version()}, {versions}; limit {options.limit:g} s "
        f"a solve. Objectives, bounds and gaps are in mistakes.\n\n{summary(results)}\n\n{HEAD}\n"
        + "\n".join(rows)
        + "\n"
    )


def options_of(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds allowed for each solve")
    parser.add_argument("--seeds", type=int, default=3, help="noise vectors per ε")
    parser.add_argument("--quick", action="store_true", help="one seed and 20 seconds")
    parser.add_argument("--oracles", nargs="+", default=ORACLES, choices=ORACLES)
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--out", type=Path, help="file for the table, in markdown; rewritten after every solve")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.quick:
        options.seeds, options.limit = 1, 20.0
    return options


def main() -> None:
    options = options_of(sys.argv[1:])
    if options.case:
        print(json.dumps(asdict(solve(Case(**json.loads(options.case))))))
        return
    results: dict[Case, Result] = {}
    rows: list[str] = []
    tree: Result | None = None
    print(HEAD)
    for case in cases(options):
        result = results[case] = run_apart(case)
        tree = results.get(Case(case.problem, case.epsilon, case.seed, "tree", case.limit))
        rows.append(line(case, result, tree))
        print(rows[-1], flush=True)
        if options.out:
            options.out.write_text(document(options, results, rows), encoding="utf-8")
    print(f"\n{summary(results)}")


if __name__ == "__main__":
    main()
