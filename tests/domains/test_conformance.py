"""Every kind of domain, and two that a user might write: one suite that all are held to."""

from __future__ import annotations

import itertools
import json
import math
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
from privsolve.arrays import Int64Array
from privsolve.domains import ConstrainedPoints, Domain, domain_from_dict
from privsolve.mechanisms.exponential import ExponentialSampler, inverse_temperature
from privsolve.oracles import AssignmentOracle, EnumerationOracle, Oracle, SpanningTreeOracle, SubsetOracle, TreeOracle
from random_constraints import keeps_to
from random_problems import random_eta, random_features

Vector = tuple[int, ...]
ROUNDS = 12

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


# --- every kind --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """Small domains of one kind, and who belongs to them by the definition."""

    domains: list[Any]
    belongs: Callable[[Any, Vector], bool]
    oracle: Oracle | None = None  # one of its own for linear costs
    additive: bool = True
    listed: bool = False


def is_sparse(domain: ps.SparsePoints, w: Vector) -> bool:
    points = w if domain.intercept is None else w[:-1]
    low, high = domain.intercept or (w[-1], w[-1])
    few = sum(v != 0 for v in points) <= domain.max_features
    return few and max(map(abs, points)) <= domain.max_points and low <= w[-1] <= high


def is_constrained(domain: ConstrainedPoints, w: Vector) -> bool:
    low, high = domain.intercept or (w[-1], w[-1])
    return keeps_to(domain, np.array(w)) and low <= w[-1] <= high


def is_permutation(domain: ps.Permutations, w: Vector) -> bool:
    rows = [w[domain.k * i : domain.k * (i + 1)] for i in range(domain.k)]
    ones = [[int(j == chosen) for j in range(domain.k)] for chosen in range(domain.k)]
    return any(list(map(list, rows)) == list(order) for order in itertools.permutations(ones))


def is_spanning_tree(domain: ps.SpanningTrees, w: Vector) -> bool:
    """As many edges as a tree has, and every node is reached from the first."""
    if not set(w) <= {0, 1} or sum(w) != domain.nodes - 1:
        return False
    seen = {0}
    for _ in range(domain.nodes):
        seen |= {end for edge, v in zip(domain.edges, w, strict=True) if v and set(edge) & seen for end in edge}
    return len(seen) == domain.nodes


SCOPE: dict[str, Any] = {"__name__": "balanced"}
exec(compile(BALANCED, "balanced", "exec", dont_inherit=True), SCOPE)
KINDS = [
    Kind(
        [ps.IntegerBall(1, 10), ps.IntegerBall(2, 6), ps.IntegerBall(3, 7), ps.IntegerBall(4, 3)],
        lambda domain, w: sum(v * v for v in w) <= domain.radius_sq,
    ),
    Kind(
        [ps.IntegerGrid([-2], [3]), ps.IntegerGrid([0, -1], [2, 1]), ps.IntegerGrid([1, 1, 4], [2, 1, 6])],
        lambda domain, w: all(low <= v <= high for low, v, high in zip(domain.low, w, domain.high, strict=True)),
    ),
    Kind([ps.SignCube(1), ps.SignCube(4)], lambda domain, w: all(abs(v) == 1 for v in w)),
    Kind([ps.TernaryCube(1), ps.TernaryCube(4)], lambda domain, w: all(abs(v) <= 1 for v in w)),
    Kind(
        [ps.SparseSigns(1, 1), ps.SparseSigns(4, 2), ps.SparseSigns(3, 3)],
        lambda domain, w: all(abs(v) <= 1 for v in w) and sum(v != 0 for v in w) == domain.k,
    ),
    Kind(
        [
            ps.SparsePoints(1, 1, 3),
            ps.SparsePoints(3, 2, 2),
            ps.SparsePoints(3, 1, 3, intercept=(-1, 4)),
            ps.SparsePoints(3, 2, 1, intercept=(2, 3)),
        ],
        is_sparse,
    ),
    Kind(
        [
            ConstrainedPoints(3, 2, 2, variables="abc", signs=[1, -1, 0]),
            ConstrainedPoints(5, 3, 1, (-1, 1), variables="aabc", max_questions=2, excluded=["c"]),
            ConstrainedPoints(5, 3, 1, 1, variables="abcd", required=["b"], signs=[1, 0, 0, -1]),
        ],
        is_constrained,
        additive=False,
    ),
    Kind(
        [
            ps.FiniteSet([[3, 0], [0, 0], [1, 1], [3, 0]]),
            ps.FiniteSet([[3, 4], [5, 0], [-4, 3]]),
            ps.FiniteSet([[64, -64], [64, -63]]),
        ],
        lambda domain, w: list(w) in domain.points.tolist(),
        additive=False,
        listed=True,
    ),
    Kind(
        [ps.Subsets(2, 1), ps.Subsets(5, 3)],
        lambda domain, w: set(w) <= {0, 1} and sum(w) == domain.k,
        SubsetOracle(),
    ),
    Kind([ps.Permutations(2), ps.Permutations(3)], is_permutation, AssignmentOracle(), additive=False),
    Kind(
        [ps.SpanningTrees(2, [(0, 1)]), ps.SpanningTrees(4, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])],
        is_spanning_tree,
        SpanningTreeOracle(),
        additive=False,
    ),
    Kind(
        [SCOPE["BalancedWeights"](dim, largest) for dim, largest in ((2, 1), (3, 2), (4, 1))],
        lambda domain, w: sum(w) == 0 and max(map(abs, w)) <= domain.largest,
    ),
    Kind(
        [FewAndSmall(3, 2, 2), FewAndSmall(2, 1, 3)],
        lambda domain, w: sum(v != 0 for v in w) <= domain.k and sum(map(abs, w)) <= domain.total,
    ),
]


def domains_of(wanted: Callable[[Kind], object] = lambda kind: True) -> pytest.MarkDecorator:
    cases = [(kind, domain) for kind in KINDS for domain in kind.domains if wanted(kind)]
    return pytest.mark.parametrize(("kind", "domain"), cases, ids=[repr(domain) for _, domain in cases])


def box(domain: Domain) -> list[Vector]:
    """The product of the values, and every vector that leaves them in one coordinate by one."""
    values = [domain.values(j).tolist() for j in range(domain.dim)]
    inside = list(itertools.product(*values))
    beside = []
    for j, here in enumerate(values):
        outside = {v + step for v in here for step in (-1, 1)} - set(here)
        beside += [(*w[:j], v, *w[j + 1 :]) for w in inside[:50] for v in outside]
    return sorted({*inside, *beside})


def members_of(kind: Kind, domain: Domain) -> list[Vector]:
    """All vectors of a box around the values that belong to the domain by its definition."""
    return [w for w in box(domain) if kind.belongs(domain, w)]


@domains_of()
def test_members_are_those_of_the_definition(kind: Kind, domain: Domain) -> None:
    expected = members_of(kind, domain)
    assert domain.members().dtype == np.int64
    assert domain.members().tolist() == [list(w) for w in expected]
    assert domain.size == len(expected) > 0
    for w in box(domain):
        assert domain.contains(w) == domain.contains(np.array(w)) == (w in set(expected)), w


@domains_of()
def test_other_things_are_no_members(kind: Kind, domain: Domain) -> None:
    w = domain.members()[-1]
    wrong = [w.astype(float), w[None], np.append(w, 0), w.tolist()[1:], "x", None, w.astype(object), w + 2**40]
    assert not any(domain.contains(x) for x in wrong)


@domains_of()
def test_values_are_ascending_integers_that_cover_the_members(kind: Kind, domain: Domain) -> None:
    members = domain.members()
    for j in range(domain.dim):
        values = domain.values(j)
        assert values.dtype == np.int64
        assert (np.diff(values) > 0).all()
        assert set(members[:, j].tolist()) <= set(values.tolist())


@domains_of()
def test_norms_and_separation(kind: Kind, domain: Domain) -> None:
    members = np.array(members_of(kind, domain))
    norms = (members**2).sum(axis=1)
    assert domain.radius_sq_bound == norms.max()
    assert domain.equal_norms == (len(set(norms.tolist())) == 1)
    assert set(norms.tolist()) <= set(domain.norms_sq.tolist())
    assert (np.diff(domain.norms_sq) > 0).all()
    if len(members) > 1:
        distances = ((members[:, None] - members[None]) ** 2).sum(axis=2)
        assert 1 <= domain.separation_sq <= distances[distances > 0].min()


@domains_of()
def test_lifted_members_are_unit_vectors_no_closer_than_before(kind: Kind, domain: Domain) -> None:
    members, radius = domain.members(), math.sqrt(domain.radius_sq_bound)
    lifted = domain.lift(members)
    assert lifted.shape == (len(members), domain.lift_dim)
    assert np.allclose(np.linalg.norm(lifted, axis=1), 1, rtol=0, atol=1e-12)
    apart = np.linalg.norm(lifted[:, None] - lifted[None], axis=2)
    assert (apart >= np.linalg.norm(members[:, None] - members[None], axis=2) / radius * (1 - 1e-9)).all()


@domains_of()
def test_no_member_exceeds_the_bound_on_linear_costs(kind: Kind, domain: Domain) -> None:
    costs = np.random.default_rng(0).integers(-5, 6, size=(20, domain.dim))
    assert ((costs @ domain.members().T).max(axis=1) <= domain.largest_linear(costs)).all()


@domains_of(lambda kind: kind.additive)
def test_knapsacks_know_the_members_and_their_norms(kind: Kind, domain: Domain) -> None:
    expected = set(members_of(kind, domain))
    with_norms = domain.knapsack_with_norms()
    for knapsack in (domain.knapsack(), with_norms):
        assert knapsack.size == len(expected)
        assert all(costs.min() == 0 for costs in knapsack.costs)
        attained = set()
        for choice in itertools.product(*(range(len(domain.values(j))) for j in range(domain.dim))):
            w = tuple(int(domain.values(j)[x]) for j, x in enumerate(choice))
            total = sum(int(knapsack.costs[j][x]) for j, x in enumerate(choice))
            inside = total <= knapsack.limit and bool(knapsack.allowed[total])
            assert inside == (w in expected), w
            attained.add(total)
            if inside and knapsack.norm_sq is not None:
                assert knapsack.norm_sq[total] == sum(v * v for v in w)
        assert set(np.flatnonzero(knapsack.reached).tolist()) == {t for t in attained if t <= knapsack.limit}
    assert with_norms.norm_sq is not None


@domains_of(lambda kind: not kind.additive)
def test_other_domains_say_that_they_have_no_costs(kind: Kind, domain: Domain) -> None:
    with pytest.raises(ValueError, match="not cut out by additive costs"):
        domain.knapsack()


@domains_of(lambda kind: kind.additive)
def test_extremes_of_linear_costs_over_a_knapsack(kind: Kind, domain: Domain) -> None:
    costs = np.random.default_rng(1).integers(-9, 10, size=(7, domain.dim))
    scores = costs @ domain.members().T

    def entries(j: int) -> np.ndarray:
        return np.outer(domain.values(j), costs[:, j])

    assert np.array_equal(domain.knapsack().least(entries), scores.min(axis=1))
    assert np.array_equal(domain.knapsack().largest(entries), scores.max(axis=1))


@domains_of()
def test_description_is_read_back(kind: Kind, domain: Domain) -> None:
    again = domain_from_dict(json.loads(json.dumps(domain.to_dict())))
    assert type(again) is type(domain)
    assert again == domain
    assert hash(again) == hash(domain)
    assert again.to_dict() == domain.to_dict()
    assert all(other != domain for other in kind.domains if other is not domain)


@domains_of()
def test_priors_are_probabilities(kind: Kind, domain: Domain) -> None:
    members = domain.members()
    uniform = [ps.UniformPrior().log_probability(domain, w) for w in members]
    assert math.fsum(map(math.exp, uniform)) == pytest.approx(1)
    sparse = [ps.SparsePrior().log_probability(domain, w) for w in members]
    assert 0 < math.fsum(map(math.exp, sparse)) <= 1 + 1e-12


@domains_of(lambda kind: kind.additive or kind.listed)
def test_tree_and_enumeration_find_the_same_optimum(kind: Kind, domain: Domain) -> None:
    for seed in range(ROUNDS):
        rng = np.random.default_rng(seed)
        problem = random_classification(rng, domain)
        perturbation = ps.Perturbation.lifted(domain, random_eta(rng, domain))
        expected = EnumerationOracle().minimise(problem, perturbation)
        found = TreeOracle(threads=1).minimise(problem, perturbation)
        assert found.certified
        assert domain.contains(found.weights)
        assert found.value == found.lower == expected.value, seed


@domains_of(lambda kind: kind.additive)
def test_tree_and_enumeration_sum_up_to_the_same_law(kind: Kind, domain: Domain) -> None:
    for seed in range(ROUNDS // 4):
        problem = random_classification(np.random.default_rng(seed), domain)
        for prior in (ps.UniformPrior(), ps.SparsePrior()):
            tree, listed = (
                ExponentialSampler(problem, 0.7, prior=prior, random_state=seed, method=method)
                for method in ("tree", "enumeration")
            )
            kappa = inverse_temperature(0.7, "replace", problem.loss)
            totals = [s.log_partition() - kappa * s.reference for s in (tree, listed)]
            assert totals[0] == pytest.approx(totals[1], abs=1e-9)
            assert all(domain.contains(w) for w in tree.draw(20))


@domains_of(lambda kind: kind.oracle)
def test_own_oracle_finds_the_optimum_of_linear_costs(kind: Kind, domain: Domain) -> None:
    for seed in range(ROUNDS):
        rng = np.random.default_rng(seed)
        problem = random_linear(rng, domain)
        perturbation = ps.Perturbation.lifted(domain, random_eta(rng, domain))
        found = kind.oracle.minimise(problem, perturbation)
        assert found.certified
        assert found.value == EnumerationOracle().minimise(problem, perturbation).value


@domains_of()
def test_releases_are_read_back(kind: Kind, domain: Domain) -> None:
    if domain.size < 2:
        pytest.skip("nothing to choose")
    rng = np.random.default_rng(0)
    linear = not (kind.additive or kind.listed)
    problem = random_linear(rng, domain) if linear else random_classification(rng, domain)
    oracle = kind.oracle or EnumerationOracle() if linear else TreeOracle(threads=1)
    runs = [ps.opdisc(problem, 1.0, oracle=oracle, random_state=1), ps.exponential(problem, 1.0, random_state=1)]
    for run in runs:
        again = ps.Release.from_json(run.release.to_json())
        assert again.to_json() == run.release.to_json()
        assert domain.contains(again.weights)
        assert again.domain == domain


def random_classification(rng: np.random.Generator, domain: Domain) -> ps.Problem:
    """A few distinct rows with random labels."""
    rows = int(rng.integers(2, 20))
    features, scales = random_features(rng, rows, domain.dim)
    positives, negatives = rng.integers(0, 4, size=(2, rows))
    positives[0] += 1
    reach = int(np.abs(features).max(initial=1))
    wide = [(-reach - 1, reach + 1)] * domain.dim  # more than 0 and 1, also for scorecards
    return ps.Problem(ps.PatternTable(features, positives, negatives, scales=scales, ranges=wide), domain)


def random_linear(rng: np.random.Generator, domain: Domain) -> ps.LinearProblem:
    """A few records with costs of either sign."""
    costs = rng.integers(-3, 4, size=(int(rng.integers(1, 9)), domain.dim))
    spread = domain.largest_linear(costs) + domain.largest_linear(-costs)
    return ps.LinearProblem(costs, domain, largest=max(1, int(spread.max())))


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
    tried = {domain.kind for kind in KINDS for domain in kind.domains}
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
