"""What a card takes is known before it is paid for, from public numbers."""

from __future__ import annotations

import logging
import math

import numpy as np
import pandas as pd
import pytest

import privsolve as ps
from privsolve.engines.supports.instance import count_supports
from privsolve.engines.supports.work import check_work, default_max_features, estimate
from privsolve.learn.short_card_recipe import CardLimits


def test_default_features_follow_from_the_number_of_columns() -> None:
    assert [default_max_features(m) for m in (1, 2, 4, 30, 148, 149, 493, 494, 6_324, 6_325)] == [
        1,
        2,
        4,
        4,
        4,
        3,
        3,
        2,
        2,
        1,
    ]
    assert CardLimits().plain_domain(150, True).max_features == 3
    assert CardLimits().plain_domain(101, True).max_features == 4
    assert CardLimits(6).plain_domain(101, True).max_features == 6


def test_the_estimate_grows_with_everything_but_the_cores() -> None:
    assert estimate(50, 4, 500) < estimate(100, 4, 500) < estimate(100, 5, 500) < estimate(100, 5, 50_000)
    assert estimate(100, 5, 500, cores=2) < estimate(100, 5, 500, cores=1) < 60
    assert estimate(500, 6, 500) == math.inf
    assert count_supports(4, 2) == 1 + 4 + 6


def test_long_work_is_announced_and_hopeless_work_refused(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "privsolve"):
        check_work(100, 4, 50_000)
        assert caplog.text == ""
        check_work(200, 5, 10**6)
    assert "supports to go through" in caplog.text
    with pytest.raises(ValueError, match=r"max_features=6 on 500 columns .* use max_features=4 or less"):
        check_work(500, 6, 500)


def test_hopeless_work_is_refused_before_anything_is_paid() -> None:
    rng = np.random.default_rng(0)
    columns = [ps.Categories(f"c{i}", list(range(101))) for i in range(5)]
    schema = ps.Schema(columns)
    frame = pd.DataFrame({f"c{i}": rng.integers(0, 101, 20) for i in range(5)})
    account = ps.Accountant(epsilon=1.0)
    model = ps.PrivateShortCard(epsilon=0.5, max_features=6, schema=schema, budget=account, random_state=0)
    with pytest.raises(ValueError, match="more than can be gone through: use max_features="):
        model.fit(frame, np.arange(20) % 2)
    assert account.history == ()


@pytest.mark.parametrize(("adjacency", "records"), [("replace", 20), ("add-remove", 0)])
def test_what_is_said_of_the_time_looks_at_no_private_number(
    adjacency: str, records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.setattr("privsolve.learn.short_card_recipe.check_work", lambda *numbers: seen.append(numbers))
    schema = ps.Schema([ps.Categories("c", [0, 1])])
    frame = pd.DataFrame({"c": np.arange(20) % 3})
    ps.PrivateShortCard(1.0, max_features=1, schema=schema, adjacency=adjacency).fit(frame, np.arange(20) % 2)
    assert seen == [(2, 1, records, None)]
