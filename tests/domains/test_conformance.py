"""Every kind of domain, and two that a user might write, held to the conformance suite."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import privsolve as ps
from domain_conformance import DomainConformance, Vector
from privsolve.arrays import Int64Array
from privsolve.domains import ConstrainedPoints, Domain, domain_from_dict
from privsolve.oracles import AssignmentOracle, SpanningTreeOracle, SubsetOracle
from random_constraints import keeps_to


class TestIntegerBall(DomainConformance):
    domains: ClassVar = [ps.IntegerBall(1, 10), ps.IntegerBall(2, 6), ps.IntegerBall(3, 7), ps.IntegerBall(4, 3)]

    def belongs(self, domain: Any, w: Vector) -> bool:
        return sum(v * v for v in w) <= domain.radius_sq


class TestIntegerGrid(DomainConformance):
    domains: ClassVar = [
        ps.IntegerGrid([-2], [3]),
        ps.IntegerGrid([0, -1], [2, 1]),
        ps.IntegerGrid([1, 1, 4], [2, 1, 6]),
    ]

    def belongs(self, domain: Any, w: Vector) -> bool:
        return all(low <= v <= high for low, v, high in zip(domain.low, w, domain.high, strict=True))


class TestSignCube(DomainConformance):
    domains: ClassVar = [ps.SignCube(1), ps.SignCube(4)]

    def belongs(self, domain: Any, w: Vector) -> bool:
        return all(abs(v) == 1 for v in w)


class TestTernaryCube(DomainConformance):
    domains: ClassVar = [ps.TernaryCube(1), ps.TernaryCube(4)]

    def belongs(self, domain: Any, w: Vector) -> bool:
        return all(abs(v) <= 1 for v in w)


class TestSparseSigns(DomainConformance):
    domains: ClassVar = [ps.SparseSigns(1, 1), ps.SparseSigns(4, 2), ps.SparseSigns(3, 3)]

    def belongs(self, domain: Any, w: Vector) -> bool:
        return all(abs(v) <= 1 for v in w) and sum(v != 0 for v in w) == domain.k


class TestSparsePoints(DomainConformance):
    domains: ClassVar = [
        ps.SparsePoints(1, 1, 3),
        ps.SparsePoints(3, 2, 2),
        ps.SparsePoints(3, 1, 3, intercept=(-1, 4)),
        ps.SparsePoints(3, 2, 1, intercept=(2, 3)),
    ]

    def belongs(self, domain: Any, w: Vector) -> bool:
        points = w if domain.intercept is None else w[:-1]
        low, high = domain.intercept or (w[-1], w[-1])
        few = sum(v != 0 for v in points) <= domain.max_features
        return few and max(map(abs, points)) <= domain.max_points and low <= w[-1] <= high


class TestConstrainedPoints(DomainConformance):
    domains: ClassVar = [
        ConstrainedPoints(3, 2, 2, variables="abc", signs=[1, -1, 0]),
        ConstrainedPoints(5, 3, 1, (-1, 1), variables="aabc", max_questions=2, excluded=["c"]),
        ConstrainedPoints(5, 3, 1, 1, variables="abcd", required=["b"], signs=[1, 0, 0, -1]),
    ]
    additive = False

    def belongs(self, domain: Any, w: Vector) -> bool:
        low, high = domain.intercept or (w[-1], w[-1])
        return keeps_to(domain, np.array(w)) and low <= w[-1] <= high


class TestFiniteSet(DomainConformance):
    domains: ClassVar = [
        ps.FiniteSet([[3, 0], [0, 0], [1, 1], [3, 0]]),
        ps.FiniteSet([[3, 4], [5, 0], [-4, 3]]),
        ps.FiniteSet([[64, -64], [64, -63]]),
    ]
    additive = False
    listed = True

    def belongs(self, domain: Any, w: Vector) -> bool:
        return list(w) in domain.points.tolist()


class TestSubsets(DomainConformance):
    domains: ClassVar = [ps.Subsets(2, 1), ps.Subsets(5, 3)]
    oracle = SubsetOracle()

    def belongs(self, domain: Any, w: Vector) -> bool:
        return set(w) <= {0, 1} and sum(w) == domain.k


class TestPermutations(DomainConformance):
    domains: ClassVar = [ps.Permutations(2), ps.Permutations(3)]
    oracle = AssignmentOracle()
    additive = False

    def belongs(self, domain: Any, w: Vector) -> bool:
        k = domain.k
        rows = [w[k * i : k * i + k] for i in range(k)]
        return any(
            all(row[j] == (j == chosen) for row, chosen in zip(rows, order, strict=True) for j in range(k))
            for order in itertools.permutations(range(k))
        )


class TestSpanningTrees(DomainConformance):
    domains: ClassVar = [
        ps.SpanningTrees(2, [(0, 1)]),
        ps.SpanningTrees(4, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]),
    ]
    oracle = SpanningTreeOracle()
    additive = False

    def belongs(self, domain: Any, w: Vector) -> bool:
        """As many edges as a tree has, and every node is reached from the first."""
        if not set(w) <= {0, 1} or sum(w) != domain.nodes - 1:
            return False
        seen = {0}
        for _ in range(domain.nodes):
            seen |= {end for edge, v in zip(domain.edges, w, strict=True) if v and set(edge) & seen for end in edge}
        return len(seen) == domain.nodes


# --- domains of a user ------------------------------------------------------------------------------------------------

BALANCED = '''
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import privsolve as ps


@dataclass(frozen=True)
class BalancedWeights(ps.KnapsackDomain):
    """Weights in -largest..largest that sum to zero."""

    dim: int
    largest: int
    kind: ClassVar[str] = "test-balanced-weights"

    def values(self, j):
        return np.arange(-self.largest, self.largest + 1)

    def knapsack(self):
        total = self.dim * self.largest
        return ps.Knapsack.between([self.values(j) + self.largest for j in range(self.dim)], total, total)
'''


@dataclass(frozen=True)
class FewAndSmall(ps.KnapsackDomain):
    """At most `k` weights are not zero, and their sizes add up to at most `total`."""

    dim: int
    k: int
    total: int
    kind: ClassVar[str] = "few-and-small"

    def values(self, j: int) -> Int64Array:
        return np.arange(-self.total, self.total + 1)

    def knapsack(self) -> ps.Knapsack:
        """Two limits in one total: a non-zero counts more than all sizes of `k` of them together."""
        step = self.total * self.k + 1
        costs = [(self.values(j) != 0) * step + np.abs(self.values(j)) for j in range(self.dim)]
        nonzeros, size = np.divmod(np.arange((self.k + 1) * step), step)
        return ps.Knapsack(tuple(costs), (nonzeros <= self.k) & (size <= self.total))


class TestBalancedWeights(DomainConformance):
    scope: ClassVar[dict[str, Any]] = {"__name__": "balanced"}
    exec(compile(BALANCED, "balanced", "exec", dont_inherit=True), scope)
    domains: ClassVar = [scope["BalancedWeights"](2, 1), scope["BalancedWeights"](3, 2), scope["BalancedWeights"](4, 1)]

    def belongs(self, domain: Any, w: Vector) -> bool:
        return sum(w) == 0 and max(map(abs, w)) <= domain.largest


class TestFewAndSmall(DomainConformance):
    domains: ClassVar = [FewAndSmall(3, 2, 2), FewAndSmall(2, 1, 3)]

    def belongs(self, domain: Any, w: Vector) -> bool:
        return sum(v != 0 for v in w) <= domain.k and sum(map(abs, w)) <= domain.total


def test_a_release_over_a_users_domain_needs_only_its_class(tmp_path: Path) -> None:
    """Released in one process, read in another that imports the class; one that does not says what to do."""
    (tmp_path / "balanced.py").write_text(BALANCED)
    make = (
        "import numpy as np, privsolve as ps, balanced\n"
        "table = ps.PatternTable(np.eye(3, dtype=int), [5, 1, 9], [3, 8, 0])\n"
        "problem = ps.Problem(table, balanced.BalancedWeights(3, 2))\n"
        "run = ps.exponential(problem, epsilon=1.0)\n"
        "open('release.json', 'w').write(run.release.to_json())\n"
    )
    read = (
        "import privsolve as ps\n"
        "release = ps.Release.from_json(open('release.json').read())\n"
        "print(type(release.domain).__name__, release.domain.size, release.weights.sum())\n"
    )
    assert _python(make, tmp_path).returncode == 0
    assert _python("import balanced\n" + read, tmp_path).stdout.split() == ["BalancedWeights", "19", "0"]
    without = _python(read, tmp_path)
    assert without.returncode != 0
    assert "domain kind 'test-balanced-weights' is unknown" in without.stderr
    assert "import the class first" in without.stderr


def _python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    paths = [str(folder), str(Path(ps.__file__).parents[1])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)


# --- the registry -----------------------------------------------------------------------------------------------------


def test_every_kind_is_held_to_the_suite() -> None:
    tried = {d.kind for cls in DomainConformance.__subclasses__() for d in cls.domains}
    ours = {vars(c).get("kind") for c in _subclasses(Domain) if c.__module__.startswith("privsolve.")} - {None}
    assert len(ours) == 11
    assert ours <= tried


def _subclasses(cls: type[Domain]) -> list[type[Domain]]:
    return [d for c in cls.__subclasses__() for d in (c, *_subclasses(c))]


def _no_kind() -> object:
    @dataclass(frozen=True)
    class Ball(ps.IntegerBall):
        pass

    return ps.Problem(ps.PatternTable([[1, 0]], [1], [0]), Ball(2, 1))


def _empty() -> object:
    @dataclass(frozen=True)
    class Nothing(ps.KnapsackDomain):
        dim: int
        kind: ClassVar[str] = "nothing"

        def values(self, j: int) -> Int64Array:
            return np.array([0, 2])

        def knapsack(self) -> ps.Knapsack:
            return ps.Knapsack.between([self.values(j) for j in range(self.dim)], 3, 3)

    return ps.exponential(ps.Problem(ps.PatternTable([[1, 0]], [1], [0]), Nothing(2)), 1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_no_kind, "Ball, which has no `kind` of its own"),
        (_empty, "domain is empty"),
        (lambda: ps.Knapsack.between([np.array([-1])], 0, 1), "costs must hold"),
        (lambda: ps.Knapsack.between([np.array([0.5])], 0, 1), "costs must hold"),
        (lambda: ps.Knapsack.between([], 0, -1), "allowed must hold"),
        (lambda: ps.Knapsack((np.array([0]),), np.array([1])), "allowed must hold a truth value"),
        (lambda: ps.Knapsack((np.array([0]),), np.array([True]), np.array([0, 1])), "norm_sq must hold"),
        (lambda: domain_from_dict({"kind": "few-and-small", "dim": 2}), "wrong fields"),
    ],
)
def test_wrong_domains_are_named(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_kind_belongs_to_one_class() -> None:
    with pytest.raises(TypeError, match=r"'sign-cube' belongs to privsolve\.domains\.integers\.SignCube"):
        type("Other", (ps.SignCube,), {"kind": "sign-cube"})
    with pytest.raises(TypeError, match="kind must be a text"):
        type("Other", (ps.SignCube,), {"kind": 3})
    assert domain_from_dict({"kind": "sign-cube", "dim": 2}) == ps.SignCube(2)


def test_totals_that_do_not_fit_are_refused_before_they_are_made() -> None:
    domain = ps.SparsePoints(5, 3, 1000, intercept=100_000)
    problem = ps.Problem(ps.PatternTable([[1, 0, 0, 2, 1]], [1], [0]), domain)
    with pytest.raises(ps.WorkLimitReached, match="10,003,000,001 totals of costs or norms"):
        ps.opdisc(problem, 1.0)
