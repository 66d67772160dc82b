"""Mechanisms as OpenDP measurements, so that they compose inside OpenDP's framework."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from privsolve.checks import check_choice
from privsolve.data.patterns import PatternTable
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.decimals import at_least, exact
from privsolve.privacy.guarantee import Guarantee, Proof
from privsolve.privacy.profiles import group_privacy


class Measure(StrEnum):
    """How OpenDP counts what is lost."""

    DP = "dp"
    ZCDP = "zcdp"


def as_measurement(
    mechanism: Callable[[PatternTable], Any],
    guarantee: Guarantee,
    *,
    measure: Measure | str = Measure.DP,
) -> Any:
    """An OpenDP measurement from pattern tables to releases (the diagnostics of a run are dropped).

    Needs the extra `opendp`, and `opendp.prelude.enable_features("contrib", "honest-but-curious")`: OpenDP cannot check the
    claims of code from outside. Distances between tables are in the units of the guarantee's adjacency: OpenDP's *change-one*
    distance for `"replace"`, its *symmetric* distance for `"add-remove"` (where one replaced record is a distance of 2).

    Args:
        mechanism: runs on a table, for instance `lambda table: ps.exponential(ps.Problem(table, domain), 0.5)`.
        guarantee: what every run promises, known beforehand, for instance by `ps.promised`. A run that promises less is
            refused.
        measure: `"dp"` for max divergence (approximate, if there is a delta), `"zcdp"` for zero-concentrated divergence.

    Guarantee:
        The measurement maps a distance of k records to the group privacy of k records: `kε` and
        `δ(1 + e^ε + ... + e^((k-1)ε))`, or `k²ρ`. It holds if `mechanism` keeps `guarantee` and releases nothing but what it
        returns. Running time and failures are not covered.
    """
    try:
        import opendp.prelude as dp
    except ImportError:
        raise ImportError("OpenDP is not installed: pip install 'privsolve[opendp]'") from None
    if not isinstance(guarantee, Guarantee):
        raise TypeError(f"guarantee must be a Guarantee, got {type(guarantee).__name__}")
    counted = check_choice("measure", measure, Measure)
    if counted is Measure.ZCDP and guarantee.zcdp is None:
        raise ValueError("guarantee has no zcdp bound: use measure='dp', or the exponential mechanism")
    output, privacy_map = _privacy_map(dp, guarantee, counted)
    metric = dp.change_one_distance() if guarantee.adjacency is Adjacency.REPLACE else dp.symmetric_distance()
    return dp.m.make_user_measurement(
        dp.user_domain("privsolve.PatternTable", lambda table: isinstance(table, PatternTable)),
        metric,
        output,
        function=lambda table: _release(mechanism(table), guarantee),
        privacy_map=privacy_map,
    )


def _privacy_map(
    dp: Any, guarantee: Guarantee, measure: Measure
) -> tuple[Any, Callable[[int], float | tuple[float, float]]]:
    epsilon, delta, zcdp = guarantee.epsilon, guarantee.delta, guarantee.zcdp
    if measure is Measure.ZCDP and zcdp is not None:
        return dp.zero_concentrated_divergence(), lambda records: at_least(records**2 * exact(zcdp))
    if delta:
        return dp.approximate(dp.max_divergence()), lambda records: group_privacy(epsilon, delta, records)
    return dp.max_divergence(), lambda records: group_privacy(epsilon, delta, records)[0]


def _release(run: Any, stated: Guarantee) -> Any:
    """The release of a run, if it promises at least what the measurement states."""
    release = getattr(run, "release", run)
    made: Guarantee = release.guarantee
    order = list(Proof)
    weaker = (
        made.adjacency != stated.adjacency
        or not stated.profile.covers(made.profile)
        or order.index(made.proof) > order.index(stated.proof)
        or made.seeded > stated.seeded
        or made.schema_guessed > stated.schema_guessed
    )
    if weaker:
        raise ValueError(
            "the run promises less than the guarantee the measurement was made with: state what it promises"
        )
    return release
