"""A sampler that is copied, pickled or forked draws randomness of its own, and limits are whole numbers."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from typing import Any

import numpy as np
import pytest

import privsolve as ps
from privsolve.mechanisms.exponential import ExponentialSampler

DRAWS = 12
METHODS = ("tree", "supports", "enumeration")
RNG = np.random.default_rng(0)
TABLE = ps.PatternTable(RNG.integers(0, 2, size=(30, 4)), *RNG.integers(0, 3, size=(2, 30)))
PROBLEM = ps.Problem(TABLE, ps.SparsePoints(4, 3, 3))


def sampler(method: str, **options: Any) -> ExponentialSampler:
    """At a small epsilon two independent sequences of twelve draws are equal with probability 1e-30."""
    return ExponentialSampler(PROBLEM, 0.01, method=method, **options)


@pytest.mark.parametrize("method", METHODS)
def test_copies_do_not_repeat_draws(method: str) -> None:
    original = sampler(method)
    original.draw()  # leaves uniforms that were drawn ahead
    copies = [copy.deepcopy(original), copy.copy(original), pickle.loads(pickle.dumps(original))]
    drawn = [s.draw(DRAWS).tolist() for s in (original, *copies)]
    assert all(a != b for i, a in enumerate(drawn) for b in drawn[:i])


def test_a_pickle_holds_no_uniforms_that_will_be_used() -> None:
    original = sampler("tree")
    original.draw()
    ahead = original._draws._sampler._uniforms.stream  # type: ignore[attr-defined]
    secret = ahead.uniforms[ahead.used[0] :]
    assert len(secret) > 100
    content = pickle.dumps(original)
    assert secret[:4].tobytes() not in content


def _draw_in_child(s: ExponentialSampler, results: Any) -> None:
    results.put(s.draw(DRAWS).tolist())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking a process that has threads
@pytest.mark.parametrize("method", METHODS)
def test_forked_processes_do_not_repeat_draws(method: str) -> None:
    original = sampler(method)
    original.draw()
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    children = [context.Process(target=_draw_in_child, args=(original, results)) for _ in range(2)]
    for child in children:
        child.start()
    drawn = [results.get(timeout=60) for _ in children] + [original.draw(DRAWS).tolist()]
    for child in children:
        child.join(60)
    assert all(a != b for i, a in enumerate(drawn) for b in drawn[:i])


@pytest.mark.parametrize("method", METHODS)
def test_a_huge_limit_is_no_problem(method: str) -> None:
    assert sampler(method, max_attempts=2**53, max_nodes=2**53).draw().shape == (1, 4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["max_attempts", "max_nodes"])
@pytest.mark.parametrize("limit", [1e10, 0, -1, True, "9", None, 2**63, float("nan")])
def test_limits_are_checked_before_anything_is_paid(method: str, name: str, limit: Any) -> None:
    """`max_attempts=1e10`, a float, used to loop for ever after the payment."""
    account = ps.Accountant(epsilon=1.0, delta=0.0)
    with pytest.raises(ValueError, match=f"^{name} must be a whole number"):
        ps.exponential(PROBLEM, 1.0, method=method, budget=account, **{name: limit})
    with pytest.raises(ValueError, match=f"^{name} must be a whole number"):
        ExponentialSampler(PROBLEM, 1.0, method=method, **{name: limit})
    assert account.history == ()
