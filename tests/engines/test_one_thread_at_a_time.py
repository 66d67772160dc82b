"""A draw is read before the sampler is free again: whoever draws next cannot overwrite it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

import privsolve as ps
from privsolve.arrays import Int64Array
from privsolve.mechanisms.exponential import ExponentialSampler
from privsolve.noise.coins import Uniforms


def by_supports(max_nodes: int = 1 << 20) -> Callable[[], Int64Array]:
    table = table_of()
    sampler = ExponentialSampler(
        ps.Problem(table, ps.SparsePoints(5, 2, 2, (-2, 2))),
        0.01,
        random_state=1,
        method="supports",
        max_nodes=max_nodes,
    )
    return lambda: sampler.draw()[0]


def by_coordinates() -> Callable[[], Int64Array]:
    sampler = ExponentialSampler(ps.Problem(table_of(), ps.IntegerBall(5, 3)), 0.01, random_state=1, method="tree")
    return lambda: sampler.draw()[0]


def table_of() -> ps.PatternTable:
    rng = np.random.default_rng(0)
    features = np.column_stack([rng.integers(0, 2, (20, 4)), np.ones(20, dtype=int)])
    return ps.PatternTable(features, *rng.integers(0, 5, (2, 20)), ranges=[*[(0, 1)] * 4, (1, 1)])


@pytest.mark.parametrize("sampler", [by_supports, by_coordinates])
def test_the_next_draw_cannot_overwrite_one(
    sampler: Callable[[], Callable[[], Int64Array]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the very moment the first draw lets go, another thread draws to its end."""
    draw = sampler()
    expected = [draw(), draw()]
    assert not np.array_equal(*expected)
    draw, release, second = sampler(), Uniforms.release, []

    def let_go(uniforms: Uniforms) -> None:
        release(uniforms)
        if not second:
            second.append(np.empty(0))
            thread = threading.Thread(target=lambda: second.__setitem__(0, draw()))
            thread.start()
            thread.join()

    monkeypatch.setattr(Uniforms, "release", let_go)
    first = draw()
    assert np.array_equal(first, expected[0])
    assert np.array_equal(second[0], expected[1])
