"""The loop that all samplers share: progress on every path, one set of statistics, limits, and one thread at a time."""

from __future__ import annotations

import threading
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import privsolve as ps
from privsolve.engines.rejection import SamplingProgress, SamplingStatistics
from privsolve.mechanisms.exponential import ExponentialSampler

METHODS = ("tree", "supports", "blocks", "enumeration")
WAITING = METHODS[:2]
"""Those that report nothing before they draw: blocks report their listing."""


def sampler(method: str, **options: Any) -> ExponentialSampler:
    """Up to three of seven columns; in blocks up to six of thirty."""
    columns, features = (30, 6) if method == "blocks" else (7, 3)
    rng = np.random.default_rng(0)
    table = ps.PatternTable(rng.integers(0, 2, size=(20, columns)), *rng.integers(0, 3, size=(2, 20)))
    problem = ps.Problem(table, ps.SparsePoints(columns, features, 1))
    chosen = "supports" if method == "blocks" else method
    with pytest.MonkeyPatch.context() as patch:
        if method == "blocks":
            patch.setattr("privsolve.engines.supports.sample._in_blocks", lambda *_: True)
        return ExponentialSampler(problem, 0.1, method=chosen, random_state=0, **options)


@pytest.mark.parametrize("method", METHODS)
def test_progress_is_reported_by_every_method(method: str) -> None:
    seen: list[SamplingProgress] = []
    drawing = sampler(method, progress=seen.append)
    drawing.draw()
    assert len(seen) >= 1
    drawing.draw(3)
    assert len(seen) >= 4
    attempts = [state.attempts for state in seen]
    assert attempts == sorted(attempts)
    assert attempts[0] >= (method != "blocks")
    assert all(state.frontier >= 1 and state.seconds >= 0 for state in seen)
    if method != "enumeration":
        assert attempts[-1] == drawing.statistics["attempts"]


def test_progress_reaches_the_default_path_of_scorecards() -> None:
    seen: list[SamplingProgress] = []
    table = ps.PatternTable([[0, 1], [1, 0]], [3, 1], [1, 4], ranges=[(0, 1)] * 2)
    run = ps.exponential(ps.Problem(table, ps.SparsePoints(2, 1, 2)), 1.0, random_state=0, progress=seen.append)
    assert run.diagnostics.method == "supports"
    assert seen


@pytest.mark.parametrize("method", METHODS[:3])
def test_statistics_have_one_vocabulary(method: str) -> None:
    drawing = sampler(method)
    drawing.draw(4)
    found = drawing.statistics
    assert set(found) == {"method", *(field.name for field in fields(SamplingStatistics))}
    assert found["accepted"] == 4
    assert found["attempts"] >= 4
    assert found["frontier"] > 1
    assert (found["nodes"] > 0) == (method != "supports")
    assert np.isfinite(found["log_frontier"])


@pytest.mark.parametrize("method", METHODS[:3])
def test_the_limit_on_attempts_is_over_all_draws(method: str) -> None:
    drawing = sampler(method, max_attempts=200)
    with pytest.raises(ps.WorkLimitReached, match="max_attempts=200: nothing is released"):
        drawing.draw(300)
    assert drawing.statistics["attempts"] == 200


@pytest.mark.parametrize("method", WAITING)
def test_a_second_thread_is_refused_and_the_first_goes_on(method: str) -> None:
    inside, leave = threading.Event(), threading.Event()
    errors: list[BaseException] = []

    def wait(_: SamplingProgress) -> None:
        inside.set()
        assert leave.wait(60)

    drawing = sampler(method, progress=wait)
    drawn: list[np.ndarray] = []
    first = threading.Thread(target=lambda: drawn.append(drawing.draw()))
    first.start()
    assert inside.wait(60)

    def second() -> None:
        try:
            drawing.draw()
        except ps.PrivsolveError as error:
            errors.append(error)

    other = threading.Thread(target=second)
    other.start()
    other.join(60)
    leave.set()
    first.join(60)
    assert len(drawn) == 1
    assert "one sampler per thread" in str(errors[0])
    assert len(drawing.draw()) == 1  # and the sampler is free again


@pytest.mark.parametrize("method", WAITING)
def test_an_interrupt_leaves_the_sampler_usable(method: str) -> None:
    calls = 0

    def once(_: SamplingProgress) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise KeyboardInterrupt

    drawing = sampler(method, progress=once)
    with pytest.raises(KeyboardInterrupt):
        drawing.draw()
    assert len(drawing.draw()) == 1
