"""A release or a failure: the exact law with oracles that fail as they please, on neighbours, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import binom, chi2, dlaplace
from typer.testing import CliRunner

import privsolve as ps
from oracle_conformance import Raises
from privsolve.cli import app
from privsolve.mechanisms.parts import in_parts
from privsolve.models.choices import NoAnswer
from privsolve.noise.entropy import Randomness

Part = tuple[int, ...]
SubLaw = Callable[[Part], np.ndarray]
"""For the records of a part: with what probability each answer is found; what is missing to 1 is failure."""


def groupings(records: Part) -> Iterator[list[Part]]:
    """All ways to put records into groups."""
    if not records:
        yield []
        return
    for rest in groupings(records[1:]):
        yield [records[:1], *rest]
        for at in range(len(rest)):
            yield [*rest[:at], tuple(sorted((records[0], *rest[at]))), *rest[at + 1 :]]


def exact_law(records: Part, plan: ps.Parts, found: SubLaw) -> np.ndarray:
    """Every answer, and none last: over all ways to deal the records and all successes, by the definition."""
    count, law = plan.count, 0.0
    for groups in groupings(records):
        laws = [found(group) for group in groups] + [found(())] * (count - len(groups))
        answers = np.zeros(len(laws[0]))
        for part, sub_law in enumerate(laws):
            others = np.ones(1)  # how many of the others succeed
            for other in laws[:part] + laws[part + 1 :]:
                others = np.convolve(others, [1 - other.sum(), other.sum()])
            answers += sub_law * (others @ plan.publishing[count - 1 :: -1]) / count
        chance = math.perm(count, len(groups)) / count ** len(records)
        law = law + chance * np.append(answers, 1 - answers.sum())
    return np.asarray(law)


def needed_delta(law: np.ndarray, other: np.ndarray, epsilon: float) -> float:
    """The least δ that holds for two laws, of all sets of results, in both directions."""
    return max(float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) for a, b in ((law, other), (other, law)))


def adversary(plan: ps.Parts, seed: int, answers: int = 3, records: int = 5) -> SubLaw:
    """A mechanism that uses up the epsilon of a part, and an oracle that fails on parts and answers drawn at random."""
    rng = np.random.default_rng(seed)
    losses = rng.integers(0, 2, size=(records, answers))
    fails: dict[Part, np.ndarray] = {}

    def found(part: Part) -> np.ndarray:
        if part not in fails:
            fails[part] = rng.random(answers) < rng.choice([0.0, 0.2, 0.5, 1.0])
        weights = np.exp(-plan.part_epsilon * losses[list(part)].sum(axis=0)) if part else np.ones(answers)
        return np.where(fails[part], 0.0, weights / weights.sum())

    return found


@pytest.mark.parametrize("seed", range(30))
def test_no_oracle_breaks_the_promise_on_any_neighbours(seed: int) -> None:
    plan = ps.Parts(10, 3.0, (0.05, 0.15, 0.3)[seed % 3], allowed=(0, 2, 5)[seed % 3], withheld=0.5)
    found = adversary(plan, seed)
    laws = {records: exact_law(records, plan, found) for records in ((0, 1, 2, 3), (0, 1, 2), (0, 1, 2, 4))}
    for law in laws.values():
        assert law.sum() == pytest.approx(1)
        assert law.min() >= 0
    for pair in (((0, 1, 2, 3), (0, 1, 2)), ((0, 1, 2, 3), (0, 1, 2, 4))):
        assert needed_delta(*(laws[records] for records in pair), plan.epsilon) <= plan.delta


def spiteful(plan: ps.Parts, chance: float) -> tuple[np.ndarray, np.ndarray]:
    """Laws with and without a record, of an oracle that fails where the answer would be w and the record is not there.

    Losses say nothing, so w wins by noise alone, with the same chance in every part: this is the pair of the lower bound.
    """
    failed = np.arange(plan.count)
    others = binom.pmf(failed, plan.count - 1, chance)
    w = float(chance * (others @ plan.publishing[:-1])) / plan.count  # from the part with the record, which succeeds
    another = float(others @ (plan.publishing[:-1] * (plan.count - failed))) / plan.count
    with_it = np.array([w, another - w])
    failed = np.arange(plan.count + 1)
    all_parts = binom.pmf(failed, plan.count, chance)
    without = np.array([0.0, float(all_parts @ (plan.publishing * (plan.count - failed))) / plan.count])
    return tuple(np.append(law, 1 - law.sum()) for law in (with_it, without))  # type: ignore[return-value]


@pytest.mark.parametrize(("count", "delta"), [(100, 0.01), (2500, 1e-6), (10_000, 1e-6)])
def test_the_delta_is_needed_up_to_the_factor_of_a_part(count: int, delta: float) -> None:
    plan = ps.Parts(count, 1.0, delta)
    needed = max(needed_delta(*spiteful(plan, chance / count), plan.epsilon) for chance in (0.5, 1.0, 2.0, 3.0))
    per_factor = max(f * plan.publishing[f - 1] / count**2 for f in range(1, count + 1))
    assert needed <= math.exp(plan.part_epsilon) * per_factor <= delta
    assert needed > per_factor / 3


def test_an_understated_delta_is_caught() -> None:
    """Thirty times fewer parts than the theorem asks for: the promise is broken."""
    honest = ps.Parts(3000, 1.0, 1e-6)
    few = ps.Parts(100, 1.0, 0.01)
    assert needed_delta(*spiteful(few, 1.0 / few.count), 1.0) > 10 * honest.delta


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 4.0])
def test_the_bound_is_the_formula_of_the_theorem(epsilon: float) -> None:
    plan = ps.Parts(9000, epsilon, 1e-5, allowed=2)
    noise, failed = dlaplace(plan.test_epsilon), np.arange(plan.count + 1)
    publishing = 0.95 * noise.cdf(plan.threshold - failed)
    assert np.allclose(plan.publishing, publishing, rtol=1e-9, atol=1e-300)
    none = 1 - publishing * (plan.count - failed) / plan.count
    ratio = max(math.exp(plan.test_epsilon), (none[1:] / none[:-1]).max(), (none[:-1] / none[1:]).max())
    factor = math.exp(plan.part_epsilon)
    delta = factor * (failed[1:] * publishing[:-1]).max() / plan.count**2
    loss = math.log(ratio * (1 + factor / (plan.count - 1)))
    assert delta <= plan.delta
    assert loss <= plan.epsilon
    assert max(delta / plan.delta, loss / plan.epsilon) > 1 - 1e-6  # nothing is given away
    assert publishing[2] >= 0.9 > publishing[plan.threshold + 1]
    assert ps.Parts(20_000, epsilon, 1e-5, allowed=2).part_epsilon > plan.part_epsilon


def test_extreme_budgets_make_a_plan_or_are_refused() -> None:
    assert ps.Parts(1000, 1e4, 0.5).part_epsilon > 10
    assert ps.Parts(10**6, 0.01, 1e-6).part_epsilon > 1
    with pytest.raises(ValueError, match="too few"):
        ps.Parts(10**6, 1e-9, 1e-6)


def test_records_are_dealt_like_dice_and_none_is_lost() -> None:
    table = ps.PatternTable([[0, 1], [1, 1], [2, 1]], [40, 0, 7], [3, 50, 0], ranges=[(0, 2), (1, 1)])
    parts = list(in_parts(table, 4, Randomness.seeded(1)))
    assert sum(part.n for part in parts) == 100
    assert all(part.ranges == table.ranges for part in parts)
    for name in ("positives", "negatives"):
        counts = {
            row: sum(int(getattr(p, name)[np.flatnonzero(p.features[:, 0] == row)].sum()) for p in parts)
            for row in range(3)
        }
        assert list(counts.values()) == getattr(table, name).tolist()
    sizes = np.array([part.n for part in parts])
    assert ((sizes - 25) ** 2 / 25).sum() < chi2.ppf(0.9999, 3)
    numbers = list(in_parts(list("abc"), 50, Randomness.seeded(2)))
    assert sorted(letter for part in numbers for letter in part or ()) == list("abc")
    sparse = [part for part in in_parts(csr_array(np.eye(6, dtype=int)), 3, Randomness.seeded(3)) if part is not None]
    assert sum(part.shape[0] for part in sparse) == 6
    labels = Randomness.seeded(4).integers_below(3, 30_000)
    assert ((np.bincount(labels) - 10_000) ** 2 / 10_000).sum() < chi2.ppf(0.9999, 2)


LINE = ps.FiniteSet([[0], [1], [2]])


def lost(records: Any, members: Any) -> np.ndarray:
    return (np.asarray(records)[:, None] - members[None, :, 0]) % 3 % 2


def only_some_parts(records: Any) -> ps.DiscreteProblem:
    if len(records) != 7 and (sum(records) + len(records)) % 3 == 2:
        raise RuntimeError("gave up")
    return ps.DiscreteProblem(LINE, lost, records, bound=1)


@pytest.mark.nightly
def test_runs_have_the_exact_law_failures_included() -> None:
    plan, records, runs = ps.Parts(8, 3.0, 0.9, allowed=5, withheld=0.5), (2,) * 7, 2000

    @cache
    def found(part: Part) -> np.ndarray:
        try:
            problem = only_some_parts(list(part)) if part else None
        except RuntimeError:
            problem = None
        if problem is None:
            return np.zeros(3)
        return np.exp(ps.audit.exponential_law(problem, plan.part_epsilon, adjacency="add-remove"))

    def found_anyway(part: Part) -> np.ndarray:
        return found(part) / found(part).sum() if found(part).any() else np.full(3, 1 / 3)

    law, other = exact_law(records, plan, found), exact_law(records, plan, found_anyway)
    rng, counts = Randomness.seeded(5), np.zeros(4)
    for _ in range(runs):
        run = ps.release_or_failure(list(records), only_some_parts, plan, mechanism="exponential", random_state=rng)
        counts[3 if isinstance(run.release.model, NoAnswer) else int(run.release.weights[0])] += 1
    right, wrong = (((counts - runs * p) ** 2 / (runs * p)).sum() for p in (law, other))
    assert law[3] > 0.05
    assert right < chi2.ppf(1 - 1e-4, 3) < wrong


PLAN = ps.Parts(40, 2.0, 0.01)


def votes(records: Any) -> ps.Problem:
    return ps.Problem(records, ps.IntegerBall(3, 3))


@pytest.fixture(name="table", scope="module")
def _table() -> ps.PatternTable:
    rng = np.random.default_rng(0)
    features = rng.integers(0, 2, size=(4000, 3))
    return ps.PatternTable.from_records(features, features[:, 0] == 1)


@pytest.mark.parametrize("mechanism", ["opdisc", "rspm", "exponential"])
def test_an_answer_is_found_paid_for_and_comes_back_from_its_file(table: ps.PatternTable, mechanism: str) -> None:
    budget = ps.Accountant(2.0, 0.04, adjacency="add-remove")
    run = ps.release_or_failure(
        table, votes, PLAN, mechanism=mechanism, adjacency="add-remove", random_state=1, budget=budget
    )
    guarantee = run.release.guarantee
    assert (guarantee.epsilon, guarantee.delta, guarantee.theory) == (2.0, 0.01, "15.4")
    assert budget.totals.delta > 0
    assert guarantee.proved
    again = ps.Release.from_json(run.release.to_json())
    assert again.setting["parts"] == PLAN.setting
    assert np.array_equal(again.weights, run.release.weights)
    assert run.diagnostics.failed == 0
    assert run.diagnostics.training_accuracy > 0.5


def test_a_failure_is_a_release_with_a_guarantee(table: ps.PatternTable, tmp_path: Any) -> None:
    oracle = Raises(ps.WorkLimitReached("too much work"))
    run = ps.release_or_failure(table, votes, PLAN, oracle=oracle, random_state=1)
    assert run.release.model == NoAnswer()
    assert run.diagnostics.failed == 40
    file = tmp_path / "release.json"
    file.write_text(run.release.to_json())
    shown = " ".join(CliRunner().invoke(app, ["show", str(file)]).output.split())
    assert shown.startswith("no answer")
    assert "Privacy: Changing one record" in shown
    again = ps.Release.from_json(run.release.to_json())
    assert again.model == NoAnswer()
    assert "no answer" in again.model.describe()
    assert "no answer" in again.guarantee.sentence()
    with pytest.raises(TypeError, match="does not predict"):
        again.predict(None)
    with pytest.raises(ps.WorkLimitReached):  # where it is no option
        ps.opdisc(votes(table), 1.0, oracle=oracle)


def test_an_interrupt_keeps_no_noise_to_retry_with(table: ps.PatternTable) -> None:
    with pytest.raises(KeyboardInterrupt) as caught:
        ps.release_or_failure(table, votes, PLAN, oracle=Raises(KeyboardInterrupt()))
    assert not hasattr(caught.value, "retry")
    assert caught.value.__cause__ is None


def test_a_problem_that_is_another_on_a_part_does_not_answer(table: ps.PatternTable) -> None:
    radius = iter([1, 1, *range(2, 100)])  # all records, and as many as a part has: both are looked at before paying
    run = ps.release_or_failure(
        table, lambda some: ps.Problem(some, ps.IntegerBall(3, next(radius))), PLAN, random_state=1
    )
    assert run.diagnostics.failed == 40


def test_a_lack_of_memory_ends_the_run(table: ps.PatternTable) -> None:
    with pytest.raises(MemoryError, match="nothing was released"):
        ps.release_or_failure(table, votes, PLAN, oracle=Raises(MemoryError()))


def twice(table: ps.PatternTable) -> ps.PatternTable:
    return ps.PatternTable(table.features, 2 * table.positives, 2 * table.negatives)


TWO = ps.PatternTable([[1, 0, 0]], [1000], [1000])
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"parts": 40}, "parts must be Parts"),
    ({"problem_of": 3}, "problem_of must be a function"),
    ({"problem_of": repr}, "problem_of must return a problem"),
    ({"records": 3}, "records must be a PatternTable"),
    ({"records": []}, "at least one record"),
    ({"mechanism": "best"}, "mechanism must be one of"),
    ({"adjacency": "swap"}, "adjacency must be one of"),
    ({"noise": "gaussian", "delta": 1e-6}, "noise must be pure"),
    ({"oracle": "nothing"}, "nothing"),
    ({"oracle": ps.oracles.TreeOracle(time_limit=60.0)}, "oracle must not have a time_limit"),
    ({"problem_of": lambda some: votes(twice(some))}, "problem_of must make one record of each entry at most"),
    ({"records": ([1, 2], [0, 1]), "problem_of": lambda some: votes(TWO)}, "made 2000 of 2"),
    ({"problem_of": lambda some: ps.Problem(some, ps.IntegerBall(3, some.n))}, "same domain and loss"),
]


@pytest.mark.parametrize(("wrong", "says"), WRONG)
def test_wrong_input_is_refused_before_anything_is_paid(
    table: ps.PatternTable, wrong: dict[str, Any], says: str
) -> None:
    budget = ps.Accountant(2.0, 0.04)
    right = {"records": table, "problem_of": votes, "parts": PLAN, "budget": budget}
    with pytest.raises((ValueError, TypeError), match=says):
        ps.release_or_failure(**(right | wrong))
    assert budget.totals.releases == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((1, 1.0, 1e-6), "count must be"),
        ((2.5, 1.0, 1e-6), "count must be"),
        ((100, 0.0, 1e-6), "epsilon must be"),
        ((100, 1.0, 2.0), "delta must lie"),
        ((100, 1.0, 0.1, -1), "allowed must be"),
        ((100, 1.0, 0.1, 0, 1.0), "withheld must be"),
        ((100, 1.0, 1e-6), "count=100 parts are too few"),
        ((100, 1e-6, 0.5), "too few"),
    ],
)
def test_wrong_plans_are_refused(arguments: tuple[Any, ...], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ps.Parts(*arguments)
