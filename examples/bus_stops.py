"""Privately choose which bus stops to keep, with an integer program as the oracle.

    python examples/bus_stops.py

A line has 60 stops, 20 of which are kept: of any five neighbours at least one, and never two side by side. These rules are
public and make the domain. Each rider uses up to three stops (private) and loses those that close. Costs are linear, so
SciPy's `milp` finds the best stops under the noise; its dual bound is the certificate, and the gap that it may leave is stated
beforehand and paid for in noise.
"""

from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

import privsolve as ps
from privsolve.domains import Domain
from privsolve.problems.perturbation import UNIT

STOPS, KEPT, RIDERS, USED, EPSILON = 60, 20, 30_000, 3, 4.0


@dataclass(frozen=True)
class KeptStops(Domain):
    """0/1 vectors with `kept` ones, at least one in any five neighbours and at most one in any two."""

    dim: int
    kept: int
    kind: ClassVar[str] = "kept-stops"
    separation_sq: ClassVar[int] = 2
    equal_norms: ClassVar[bool] = True

    @cached_property
    def rules(self) -> LinearConstraint:
        """Rows of `low <= A w <= high`: the number kept, windows of five, pairs."""
        windows = [np.isin(np.arange(self.dim), range(i, i + 5)) for i in range(self.dim - 4)]
        pairs = [np.isin(np.arange(self.dim), (i, i + 1)) for i in range(self.dim - 1)]
        low = [self.kept, *[1] * len(windows), *[0] * len(pairs)]
        high = [self.kept, *[5] * len(windows), *[1] * len(pairs)]
        return LinearConstraint(np.array([np.ones(self.dim), *windows, *pairs], dtype=int), low, high)

    @property
    def radius_sq_bound(self) -> int:
        """As many ones as stops are kept."""
        return self.kept

    @property
    def size(self) -> int:
        """Not needed: nothing lists the members."""
        raise NotImplementedError

    def values(self, j: int) -> np.ndarray:
        """Closed or kept."""
        return np.array([0, 1])

    def has(self, vector: np.ndarray) -> bool:
        """By the rules."""
        sums = self.rules.A @ vector
        return bool(np.isin(vector, (0, 1)).all() and (sums >= self.rules.lb).all() and (sums <= self.rules.ub).all())

    def members(self) -> np.ndarray:
        """Too many to list."""
        raise NotImplementedError


class MilpOracle:
    """`scipy.optimize.milp`, with its dual bound as the certificate."""

    name = "scipy.milp"
    tolerance = 0.5

    def minimise(self, problem: ps.LinearProblem, perturbation: ps.Perturbation) -> SimpleNamespace:
        """The noise of each stop is its table at 1, less that at 0."""
        noise = np.array([table[1] - table[0] for table in perturbation.coordinate]) / UNIT
        start = sum(int(table[0]) for table in perturbation.coordinate) / UNIT
        found = milp(
            problem.total + noise,
            constraints=problem.domain.rules,
            bounds=Bounds(0, 1),
            integrality=np.ones(STOPS),
            options={"mip_rel_gap": 0.0},
        )
        return SimpleNamespace(
            weights=np.rint(found.x).astype(int), bound=start + found.mip_dual_bound - self.tolerance / 2
        )


def made_up_riders() -> np.ndarray:
    """Minus one for every stop that a rider uses: keeping it lowers what is lost."""
    rng = np.random.default_rng(3)
    popular = rng.dirichlet(np.full(STOPS, 0.7))
    uses = np.zeros((RIDERS, STOPS), dtype=np.int64)
    for _ in range(USED):
        uses[np.arange(RIDERS), rng.choice(STOPS, size=RIDERS, p=popular)] = -1
    return uses


def main() -> None:
    riders, domain = made_up_riders(), KeptStops(STOPS, KEPT)
    problem = ps.LinearProblem(riders, domain, largest=USED)
    run = ps.opdisc(problem, EPSILON, oracle=MilpOracle())
    kept = run.release.weights
    print(f"{RIDERS:,} riders, {STOPS} stops, {KEPT} to keep.\n")
    print("  " + "".join("●" if stop else "·" for stop in kept) + "\n")
    print(f"Guarantee: {run.release.guarantee}\n")
    print("For the curator only: riders per stop, kept ones in full")
    use = -riders.sum(axis=0)
    for height in range(6, 0, -1):
        bars = [
            ("█" if k else "░") if u > use.max() * (height - 1) / 6 else " " for u, k in zip(use, kept, strict=True)
        ]
        print("  " + "".join(bars))
    best = MilpOracle().minimise(problem, ps.Perturbation.zero(domain)).weights
    print(f"{use @ kept / use.sum():.1%} of the uses stay; without privacy {use @ best / use.sum():.1%}.")


if __name__ == "__main__":
    main()
