"""Two private choices inside OpenDP: privsolve's mechanisms as measurements, the total kept by OpenDP.

A pipeline that is already accounted for by OpenDP can add exact combinatorial choices, here a short scorecard and a second,
even shorter one for a poster. A measurement knows what it costs before it sees any data.

Run: python examples/opendp_measurement.py (needs `pip install opendp`)
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import opendp.prelude as dp

import privsolve as ps
from privsolve.privacy.profiles import group_privacy

EPSILONS = {3: 0.5, 1: 0.25}  # by the number of columns of the card


def as_measurement(mechanism: Callable[[ps.PatternTable], ps.Run], guarantee: ps.Guarantee) -> dp.Measurement:
    """An OpenDP measurement from pattern tables to releases; the diagnostics of a run are dropped.

    Args:
        mechanism: runs on a table and returns a run.
        guarantee: what every run promises, known beforehand by `ps.promised`. A run that promises something else is refused.

    OpenDP cannot check the claims of outside code, so it needs the features "contrib" and "honest-but-curious". Distances are
    in the units of the guarantee's adjacency: OpenDP's change-one distance for "replace", its symmetric distance for
    "add-remove". A distance of k records maps to the group privacy of k records.
    """
    table_domain = dp.user_domain("privsolve.PatternTable", lambda table: isinstance(table, ps.PatternTable))
    metric = dp.change_one_distance() if guarantee.adjacency == "replace" else dp.symmetric_distance()

    def release(table: ps.PatternTable) -> ps.Release:
        found = mechanism(table).release
        if (found.guarantee.profile, found.guarantee.adjacency) != (guarantee.profile, guarantee.adjacency):
            raise ValueError("the run promises something else than the measurement states")
        return found

    def loss(records: int) -> Any:
        epsilon, delta = group_privacy(guarantee.epsilon, guarantee.delta, records)
        return (epsilon, delta) if guarantee.delta else epsilon

    measure = dp.approximate(dp.max_divergence()) if guarantee.delta else dp.max_divergence()
    return dp.m.make_user_measurement(table_domain, metric, measure, function=release, privacy_map=loss)


def scorecard(columns: int, seed: int | None) -> dp.Measurement:
    """A scorecard with at most so many columns, as an OpenDP measurement."""
    cards = ps.SparsePoints(dim=22, max_features=columns, max_points=3, intercept=(-8, 8))

    def mechanism(table: ps.PatternTable, **options: Any) -> ps.Run:
        return ps.exponential(ps.Problem(table, cards), EPSILONS[columns], random_state=seed, **options)

    empty = ps.PatternTable([[0] * 21 + [1]], [1], [1])  # the guarantee is the same for every table
    return as_measurement(mechanism, ps.promised(mechanism, empty))


def main() -> None:
    """Compose two scorecards, read the total, then release both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, help="repeat a run; a seeded run is not private")
    options = parser.parse_args()
    dp.enable_features("contrib", "honest-but-curious")

    both = dp.c.make_composition([scorecard(columns, options.seed) for columns in EPSILONS])
    print(f"One changed record: epsilon {both.map(1)}. A household of three: epsilon {both.map(3)}.")

    for release in both(ps.datasets.adult_scorecard()):
        print(f"\nA card of at most {release.domain.max_features} columns (released):")
        for name, points in release.model.points.items():
            if points:
                print(f"  {name:28} {int(points):+d}")
        print(f"  Guarantee: {release.guarantee}")


if __name__ == "__main__":
    main()
