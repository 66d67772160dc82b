"""A card or a tree in one draw: the law over both against lists of all of them, what is promised and what is checked."""

from __future__ import annotations

import copy
import json
import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import privsolve as ps
from all_choices import AllChoices
from privsolve.domains.monotone import Monotone
from privsolve.domains.trees import TreeQuestions
from privsolve.mechanisms.trees import tree_temperature, tree_utility_bound
from privsolve.mechanisms.unions import EQUAL_WEIGHTS, ModelClass, UnionProgress, UnionSampler
from privsolve.models.leaves import LabelLeaves, ProbabilityLeaves
from privsolve.models.linear import LinearRule
from privsolve.models.tree import DecisionTree
from privsolve.problems.priors import Prior, log_mass, log_weights
from privsolve.problems.unions import UnionProblem, label_costs

PLAIN = ps.ZeroOneLoss()
COSTS = ps.ZeroOneLoss(false_positive=1, false_negative=3)
WEIGHTS = {"half": EQUAL_WEIGHTS, "cards": {"card": 0.9, "tree": 0.1}, "trees": {"card": 1.0, "tree": 30.0}}
PRIORS: dict[str, tuple[Prior, ps.TreePrior]] = {
    "sparse": (ps.SparsePrior(), ps.TreePrior()),
    "uniform": (ps.UniformPrior(), ps.TreePrior(0.5, questions={"x0": 3.0, "x2": 0.25})),
    "root": (ps.SparsePrior(0.6, 0.7), ps.TreePrior(0.6, allowed={0: ("x1",)})),
}


def problem(
    loss: ps.ZeroOneLoss = PLAIN,
    features: int = 3,
    depth: int = 2,
    records: int = 40,
    seed: int = 0,
    intercept: int = 1,
) -> UnionProblem:
    """Records whose label is an exclusive or of two features, mostly, which no short card can say."""
    rng = np.random.default_rng(seed)
    answers = rng.integers(0, 2, (records, features))
    labels = (answers[:, 0] ^ answers[:, 1] ^ (rng.random(records) < 0.25)) == 1
    rows = np.column_stack([answers, np.ones(records, dtype=int)])
    table = ps.PatternTable.from_records(rows, labels, ranges=[*[(0, 1)] * features, (1, 1)])
    leaves = LabelLeaves(["no", "yes"], label_costs(loss))
    trees = ps.DecisionTrees(TreeQuestions.plain(features), depth, leaves)
    return UnionProblem(table, ps.SparsePoints(features + 1, 2, 1, intercept), trees, loss)


def p_value(sampler: UnionSampler, listed: AllChoices, kappa: float, draws: int) -> float:
    """Of draws under the listed law; what is rarely expected is taken together by class and loss."""
    seen = np.bincount([listed.number(sampler.draw()) for _ in range(draws)], minlength=len(listed.losses))
    expected = draws * np.exp(listed.log_law(kappa))
    rare = len(listed.losses) + 2 * (listed.losses - listed.losses.min()) + (np.arange(len(seen)) < listed.cards)
    groups = np.where(expected >= 10, np.arange(len(seen)), rare)
    _, group = np.unique(groups, return_inverse=True)
    observed, wanted = np.bincount(group, seen), np.bincount(group, expected)
    few = wanted < 10
    if few.any():
        observed = np.append(observed[~few], observed[few].sum())
        wanted = np.append(wanted[~few], wanted[few].sum())
    return float(chi2.sf(((observed - wanted) ** 2 / wanted).sum(), len(wanted) - 1))


def sampled(at: UnionProblem, epsilon: float, prior: str = "sparse", **options: Any) -> UnionSampler:
    cards, trees = PRIORS[prior]
    return UnionSampler(
        at, epsilon, card_prior=cards, tree_prior=trees, **{"random_state": 1, "simplify": False} | options
    )


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_draws_have_the_law_of_the_union(prior: str, weights: str, adjacency: str) -> None:
    at = problem(COSTS if adjacency == "replace" else PLAIN)
    sampler = sampled(at, 0.6, prior, weights=WEIGHTS[weights], adjacency=adjacency)
    listed = AllChoices(at, *PRIORS[prior], WEIGHTS[weights]["card"], WEIGHTS[weights]["tree"])
    assert np.logaddexp.reduce(listed.log_prior) == pytest.approx(0.0, abs=1e-9)
    kappa = (0.6 - 1e-6) / ((2 if adjacency == "replace" else 1) * at.loss.largest)
    assert p_value(sampler, listed, kappa, 4000) > 1e-4


def test_young_samplers_have_the_law_too() -> None:
    """One draw from each of many: most attempts are made on bounds that nothing has tightened yet."""
    at, priors = problem(), PRIORS["sparse"]
    samplers = [sampled(at, 0.8, random_state=seed) for seed in range(400)]
    law = np.exp(AllChoices(at, *priors, 1, 1).log_law((0.8 - 1e-6) / 2))
    listed = AllChoices(at, *priors, 1, 1)
    cards = sum(listed.number(sampler.draw()) < listed.cards for sampler in samplers)
    share = law[: listed.cards].sum()
    assert abs(cards - 400 * share) < 4 * math.sqrt(400 * share * (1 - share))


@pytest.mark.parametrize("wrong", ["temperature", "card weight", "tree weight", "unnormalised prior", "reference"])
def test_the_test_has_teeth(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws at a temperature off by a tenth, or with the scales of the classes off, do not pass."""
    at, card, tree, epsilon = problem(records=60), 0.5, 0.5, 1.2 if wrong == "temperature" else 0.4
    sampler = sampled(at, epsilon)
    if wrong == "temperature":
        epsilon *= 1.1
    elif wrong in ("card weight", "tree weight"):
        card, tree = (0.65, 0.5) if wrong == "card weight" else (0.5, 0.65)
    elif wrong == "unnormalised prior":
        monkeypatch.setattr(sampler, "_log_mass", sampler._log_mass + 0.2)
    else:
        monkeypatch.setattr(sampler.cards, "reference", sampler.cards.reference + 1)
    listed = AllChoices(at, *PRIORS["sparse"], card, tree)
    assert p_value(sampler, listed, (epsilon - 1e-6) / 2, 20_000) < 1e-6


def test_without_an_intercept_and_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    at = problem(features=4, seed=3, depth=1)
    plain = UnionProblem(
        ps.PatternTable.from_records(
            np.repeat(at.table.features[:, :4], at.table.positives + at.table.negatives, axis=0),
            np.concatenate([[True] * p + [False] * q for p, q in zip(at.table.positives, at.table.negatives, strict=True)]),
        ),
        ps.SparsePoints(4, 2, 1), at.trees,
    )  # fmt: skip
    listed = AllChoices(plain, *PRIORS["sparse"], 1, 1)
    assert p_value(sampled(plain, 1.0), listed, (1.0 - 1e-6) / 2, 4000) > 1e-4
    from privsolve.engines.supports.blocks import BlockFrontier
    from privsolve.engines.supports.sample import SupportSampler

    original = SupportSampler.__init__
    monkeypatch.setattr(SupportSampler, "__init__", lambda self, *a, **o: original(self, *a, **o | {"max_listed": 3}))
    in_blocks = sampled(at, 1.0)
    assert isinstance(in_blocks.cards.frontier, BlockFrontier)
    assert p_value(in_blocks, AllChoices(at, *PRIORS["sparse"], 1, 1), (1.0 - 1e-6) / 2, 4000) > 1e-4


@pytest.mark.parametrize("prior", [ps.SparsePrior(), ps.UniformPrior(), ps.SparsePrior(0.99, 0.1)])
@pytest.mark.parametrize(
    "domain", [ps.SparsePoints(5, 2, 2, (-1, 2)), ps.SparsePoints(4, 4, 1), ps.SparsePoints(3, 1, 3)]
)
def test_the_mass_of_all_cards(prior: Prior, domain: ps.SparsePoints) -> None:
    members = domain.members()
    zero = sum(table[domain.values(0) == 0][0] for table in prior.log_tables(domain)[: domain.columns])
    listed = np.logaddexp.reduce(log_weights(prior, domain, members)) - zero
    assert log_mass(prior, domain) == pytest.approx(listed, abs=1e-9)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_the_exact_epsilon_of_neighbours(adjacency: str) -> None:
    """Over all records that a neighbour can have: no card and no tree becomes more than e^ε times as likely."""
    epsilon, priors, base = 0.8, PRIORS["sparse"], problem(COSTS, features=2, records=6)
    kappa = (epsilon - 1e-6) / ((2 if adjacency == "replace" else 1) * COSTS.largest)

    def law(row: tuple[int, int], label: bool) -> Any:
        rows = [*base.table.features.tolist(), [*row, 1]]
        positives, negatives = [*base.table.positives, label], [*base.table.negatives, not label]
        table = ps.PatternTable(rows, positives, negatives)
        return AllChoices(UnionProblem(table, base.domain, base.trees, COSTS), *priors, 1, 2).log_law(kappa)

    records = [((a, b), y) for a in (0, 1) for b in (0, 1) for y in (False, True)]
    laws = [law(*record) for record in records]
    without = AllChoices(base, *priors, 1, 2).log_law(kappa)
    pairs = [(without, one) for one in laws] if adjacency == "add-remove" else [(a, b) for a in laws for b in laws]
    largest = max(float(np.abs(one - other).max()) for one, other in pairs)
    assert 0.3 * epsilon < largest <= epsilon


def test_what_is_promised_and_released() -> None:
    accountant = ps.Accountant(1.0)
    kinds = set()
    for seed in range(30):
        run = ps.private_union(problem(), 0.4, random_state=seed)
        release = ps.Release.from_json(run.release.to_json())
        assert release.to_json() == run.release.to_json()
        assert release.guarantee.epsilon == 0.4
        assert release.guarantee.zcdp == pytest.approx(0.4**2 / 8)
        assert release.setting["union"]["weights"] == {"card": 0.5, "tree": 0.5}
        assert set(release.setting["union"]) == {"weights", "cards", "trees"}
        assert run.diagnostics.mistakes == round(40 * (1 - run.diagnostics.training_accuracy))
        assert release.card().to_text()
        kinds.add(type(release.model))
    assert kinds == {LinearRule, DecisionTree}
    ps.private_union(problem(), 0.6, budget=accountant, random_state=0)
    with pytest.raises(ps.BudgetExceeded):
        ps.private_union(problem(), 0.6, budget=accountant)
    assert len(accountant.history) == 1
    assert ps.promised(ps.private_union, problem(), 0.5).epsilon == 0.5


def test_the_setting_of_other_releases_has_no_strange_fields() -> None:
    release = json.loads(ps.private_union(problem(), 0.4, random_state=0).release.to_json())
    release["setting"]["more"] = 1
    with pytest.raises(ValueError, match="unknown fields: more"):
        ps.Release.from_json(json.dumps(release))
    del release["setting"]["more"], release["setting"]["union"]["trees"]
    with pytest.raises(ValueError, match="must say of a union what the weights, cards and trees were"):
        ps.Release.from_json(json.dumps(release))


def test_seeds_repeat() -> None:
    same = {ps.private_union(problem(), 0.5, random_state=3).release.to_json() for _ in range(3)}
    assert len(same) == 1
    assert len({ps.private_union(problem(), 0.5).release.to_json() for _ in range(8)}) > 1


def test_copies_do_not_repeat_draws() -> None:
    original = UnionSampler(problem(), 0.01)
    original.draw()  # leaves uniforms that were drawn ahead
    copies = [copy.deepcopy(original), pickle.loads(pickle.dumps(original))]
    drawn = [[str(sampler.draw()) for _ in range(12)] for sampler in (original, *copies)]
    assert all(a != b for i, a in enumerate(drawn) for b in drawn[:i])


def test_two_threads_cannot_draw_at_once() -> None:
    sampler = UnionSampler(problem(), 0.5, random_state=0)
    with sampler._choice.held(), pytest.raises(ps.PrivsolveError, match="another thread"):
        sampler.draw()


def test_progress_tells_of_both() -> None:
    seen: list[UnionProgress] = []
    sampler = sampled(problem(depth=3), 0.5, progress=seen.append)
    for _ in range(20):
        sampler.draw()
    assert [state.trees for state in seen] == sorted(state.trees for state in seen)
    assert seen[-1].trees == 1.0
    assert seen[-1].attempts > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 1e-7}, "epsilon must be at least"),
        ({"epsilon": 1e12}, "epsilon is too large"),
        ({"adjacency": "swap"}, "adjacency must be one of"),
        ({"weights": {"card": 1.0}}, "weights must say how likely card and tree are"),
        ({"weights": {"card": 1.0, "tree": 0.0}}, "weights must be positive"),
        ({"weights": {"card": 0.0, "tree": 0.0}}, "weights must be positive"),
        ({"weights": {"card": -1.0, "tree": 1.0}}, "weights must be positive"),
        ({"weights": {"card": math.nan, "tree": 1.0}}, "weights must be positive numbers"),
        ({"tree_prior": ps.TreePrior(1.5)}, "prior: split"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"max_memory": 10}, "max_memory"),
        ({"progress": 3}, "progress must be None or a function"),
    ],
)
def test_wrong_arguments_spend_nothing(options: dict[str, Any], message: str) -> None:
    accountant = ps.Accountant(1e15)
    with pytest.raises(ValueError, match=message):
        ps.private_union(problem(), **{"epsilon": 0.5, "budget": accountant, **options})
    assert accountant.history == ()


def test_wrong_problems() -> None:
    good = problem()
    with pytest.raises(ValueError, match="must cost what the loss says"):
        UnionProblem(good.table, good.domain, good.trees, COSTS)
    with pytest.raises(ValueError, match="make them the same"):
        UnionProblem(good.table, good.domain, ps.DecisionTrees(TreeQuestions.plain(2), 2, good.trees.leaves))
    shares = ps.DecisionTrees(good.trees.questions, 2, ProbabilityLeaves(["no", "yes"]))
    with pytest.raises(ValueError, match="cards and trees say labels"):
        UnionProblem(good.table, good.domain, shares)
    with pytest.raises(ValueError, match="domain must be SparsePoints"):
        UnionProblem(good.table, ps.TernaryCube(4), good.trees)  # type: ignore[arg-type]
    deep = problem(features=18, depth=1)
    many = UnionProblem(deep.table, ps.SparsePoints(19, 17, 1, 1), deep.trees)
    with pytest.raises(ValueError, match="max_features must be at most"):
        UnionSampler(many, 1.0)
    sampler = UnionSampler(good, 5.0, weights={"card": 1.0, "tree": 1e-8}, max_attempts=1, random_state=0)
    with pytest.raises(ps.WorkLimitReached):
        _ = [sampler.draw() for _ in range(50)]


def test_rounding_is_bounded_and_above_that_of_its_parts() -> None:
    sampler = sampled(problem(), 0.5)
    assert sampler.trees.relative_error < sampler.relative_error() < 1e-9


def test_the_utility_bound() -> None:
    at = problem(records=300, features=4)
    best, loss = ps.best_tree(at.grown)
    alone = tree_utility_bound(at.trees, 1.0, tree=best.root)
    bound = alone + math.log(2) / tree_temperature(at.trees, 1.0, "replace")
    sampler = UnionSampler(at, 1.0, random_state=4)
    assert np.mean([at.total_loss(sampler.draw()) - loss > bound for _ in range(400)]) <= 0.05
    assert set(sampler.log_bounds()) == set(ModelClass)


def test_trees_of_a_union_may_have_to_be_monotone() -> None:
    """A tree that is not monotone is a lost attempt: the law is that of cards and monotone trees."""
    at, cards, prior = problem(), ps.SparsePrior(), ps.TreePrior(monotone={"x0": 1, "x1": 1})
    sampler = UnionSampler(at, 0.6, card_prior=cards, tree_prior=prior, random_state=2, simplify=False)
    listed = AllChoices(at, cards, prior, 1, 1)
    monotone = Monotone(at.trees, prior.monotone)
    allowed = [monotone.allows(listed.trees.tree(k)) for k in range(len(listed.trees.losses))]
    listed.log_prior[listed.cards :][~np.array(allowed)] = -np.inf
    share = np.exp(np.logaddexp.reduce(listed.log_law((0.6 - 1e-6) / 2)[: listed.cards]))
    seen = np.array([listed.number(sampler.draw()) for _ in range(4000)])
    assert np.isfinite(listed.log_prior[seen]).all()
    assert abs((seen < listed.cards).mean() - share) < 4 * math.sqrt(share * (1 - share) / 4000)
