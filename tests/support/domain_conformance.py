"""What every domain must do, a user's own too: one suite, inherited by a test class for each."""

from __future__ import annotations

import itertools
import json
import math
from typing import ClassVar

import numpy as np
import pytest

import privsolve as ps
from privsolve.domains import Domain, domain_from_dict
from privsolve.mechanisms.exponential import ExponentialSampler, inverse_temperature
from privsolve.oracles import EnumerationOracle, Oracle, TreeOracle
from random_problems import random_eta, random_features

Vector = tuple[int, ...]


class DomainConformance:
    """Subclasses give small domains and membership by the definition.

    `oracle` is an oracle for linear costs, where the domain has one of its own. A domain without additive costs sets
    `additive = False`; one that is given by its list sets `listed = True`.
    """

    domains: ClassVar[list[Domain]]
    oracle: ClassVar[Oracle | None] = None
    additive: ClassVar[bool] = True
    listed: ClassVar[bool] = False
    rounds = 12

    def belongs(self, domain: Domain, w: Vector) -> bool:
        raise NotImplementedError

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        metafunc.parametrize("domain", self.domains, ids=repr)

    def members(self, domain: Domain) -> list[Vector]:
        """All vectors of a box around the values that belong to the domain by its definition."""
        return [w for w in self._box(domain) if self.belongs(domain, w)]

    def _box(self, domain: Domain) -> list[Vector]:
        """The product of the values, and every vector that leaves them in one coordinate by one."""
        values = [domain.values(j).tolist() for j in range(domain.dim)]
        inside = list(itertools.product(*values))
        beside = []
        for j, here in enumerate(values):
            outside = {v + step for v in here for step in (-1, 1)} - set(here)
            beside += [(*w[:j], v, *w[j + 1 :]) for w in inside[:50] for v in outside]
        return sorted({*inside, *beside})

    # --- members --------------------------------------------------------------------------------------------------

    def test_members_are_those_of_the_definition(self, domain: Domain) -> None:
        expected = self.members(domain)
        assert domain.members().dtype == np.int64
        assert domain.members().tolist() == [list(w) for w in expected]
        assert domain.size == len(expected) > 0
        for w in self._box(domain):
            assert domain.contains(w) == domain.contains(np.array(w)) == (w in set(expected)), w

    def test_other_things_are_no_members(self, domain: Domain) -> None:
        w = domain.members()[-1]
        wrong = [w.astype(float), w[None], np.append(w, 0), w.tolist()[1:], "x", None, w.astype(object), w + 2**40]
        assert not any(domain.contains(x) for x in wrong)

    def test_values_are_ascending_integers_that_cover_the_members(self, domain: Domain) -> None:
        members = domain.members()
        for j in range(domain.dim):
            values = domain.values(j)
            assert values.dtype == np.int64
            assert (np.diff(values) > 0).all()
            assert set(members[:, j].tolist()) <= set(values.tolist())

    # --- norms ----------------------------------------------------------------------------------------------------

    def test_norms_and_separation(self, domain: Domain) -> None:
        members = np.array(self.members(domain))
        norms = (members**2).sum(axis=1)
        assert domain.radius_sq_bound == norms.max()
        assert domain.equal_norms == (len(set(norms.tolist())) == 1)
        assert set(norms.tolist()) <= set(domain.norms_sq.tolist())
        assert (np.diff(domain.norms_sq) > 0).all()
        if len(members) > 1:
            distances = ((members[:, None] - members[None]) ** 2).sum(axis=2)
            assert 1 <= domain.separation_sq <= distances[distances > 0].min()

    def test_lifted_members_are_unit_vectors_no_closer_than_before(self, domain: Domain) -> None:
        members, radius = domain.members(), math.sqrt(domain.radius_sq_bound)
        lifted = domain.lift(members)
        assert lifted.shape == (len(members), domain.lift_dim)
        assert np.allclose(np.linalg.norm(lifted, axis=1), 1, rtol=0, atol=1e-12)
        apart = np.linalg.norm(lifted[:, None] - lifted[None], axis=2)
        assert (apart >= np.linalg.norm(members[:, None] - members[None], axis=2) / radius * (1 - 1e-9)).all()

    def test_no_member_exceeds_the_bound_on_linear_costs(self, domain: Domain) -> None:
        costs = np.random.default_rng(0).integers(-5, 6, size=(20, domain.dim))
        assert ((costs @ domain.members().T).max(axis=1) <= domain.largest_linear(costs)).all()

    # --- additive costs -------------------------------------------------------------------------------------------

    def test_knapsacks_know_the_members_and_their_norms(self, domain: Domain) -> None:
        if not self.additive:
            with pytest.raises(ValueError, match="not cut out by additive costs"):
                domain.knapsack()
            return
        expected = set(self.members(domain))
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

    def test_extremes_of_linear_costs_over_a_knapsack(self, domain: Domain) -> None:
        if not self.additive:
            pytest.skip("not additive")
        costs = np.random.default_rng(1).integers(-9, 10, size=(7, domain.dim))
        scores = costs @ domain.members().T

        def entries(j: int) -> np.ndarray:
            return np.outer(domain.values(j), costs[:, j])

        assert np.array_equal(domain.knapsack().least(entries), scores.min(axis=1))
        assert np.array_equal(domain.knapsack().largest(entries), scores.max(axis=1))

    # --- descriptions ---------------------------------------------------------------------------------------------

    def test_description_is_read_back(self, domain: Domain) -> None:
        again = domain_from_dict(json.loads(json.dumps(domain.to_dict())))
        assert type(again) is type(domain)
        assert again == domain
        assert hash(again) == hash(domain)
        assert again.to_dict() == domain.to_dict()
        assert all(other != domain for other in self.domains if other is not domain)

    # --- mechanisms -----------------------------------------------------------------------------------------------

    def test_priors_are_probabilities(self, domain: Domain) -> None:
        members = domain.members()
        uniform = [ps.UniformPrior().log_probability(domain, w) for w in members]
        assert math.fsum(map(math.exp, uniform)) == pytest.approx(1)
        sparse = [ps.SparsePrior().log_probability(domain, w) for w in members]
        assert 0 < math.fsum(map(math.exp, sparse)) <= 1 + 1e-12

    def test_tree_and_enumeration_find_the_same_optimum(self, domain: Domain) -> None:
        if not (self.additive or self.listed):
            pytest.skip("neither a list nor additive")
        for seed in range(self.rounds):
            rng = np.random.default_rng(seed)
            problem = random_classification(rng, domain)
            perturbation = ps.Perturbation.lifted(domain, random_eta(rng, domain))
            expected = EnumerationOracle().minimise(problem, perturbation)
            found = TreeOracle(threads=1).minimise(problem, perturbation)
            assert found.certified
            assert domain.contains(found.weights)
            assert found.value == found.lower == expected.value, seed

    def test_tree_and_enumeration_sum_up_to_the_same_law(self, domain: Domain) -> None:
        if not self.additive:
            pytest.skip("not additive")
        for seed in range(self.rounds // 4):
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

    def test_own_oracle_finds_the_optimum_of_linear_costs(self, domain: Domain) -> None:
        if self.oracle is None:
            pytest.skip("no oracle of its own")
        for seed in range(self.rounds):
            rng = np.random.default_rng(seed)
            problem = random_linear(rng, domain)
            perturbation = ps.Perturbation.lifted(domain, random_eta(rng, domain))
            found = self.oracle.minimise(problem, perturbation)
            assert found.certified
            assert found.value == EnumerationOracle().minimise(problem, perturbation).value

    def test_releases_are_read_back(self, domain: Domain) -> None:
        if domain.size < 2:
            pytest.skip("nothing to choose")
        rng = np.random.default_rng(0)
        linear = not (self.additive or self.listed)
        problem = random_linear(rng, domain) if linear else random_classification(rng, domain)
        oracle = self.oracle or EnumerationOracle() if linear else TreeOracle(threads=1)
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
