"""Two private choices inside OpenDP: privsolve's mechanisms as measurements, the total kept by OpenDP.

A pipeline that is already accounted for by OpenDP can add exact combinatorial choices, here a short scorecard and a second,
even shorter one for a poster. A measurement knows what it costs before it sees any data.

Run: python examples/opendp_measurement.py (needs the extra `opendp`)
"""

from __future__ import annotations

import argparse

import opendp.prelude as dp

import privsolve as ps
from privsolve.interop.opendp import as_measurement
from privsolve.privacy.accounting import promised

EPSILONS = {3: 0.5, 1: 0.25}  # by the number of columns of the card


def scorecard(columns: int, seed: int | None) -> dp.Measurement:
    """A scorecard with at most so many columns, as an OpenDP measurement."""
    cards = ps.SparsePoints(dim=22, max_features=columns, max_points=3, intercept=(-8, 8))

    def mechanism(table: ps.PatternTable, **options: object) -> ps.Run:
        problem = ps.Problem(table, cards)
        return ps.exponential(problem, EPSILONS[columns], random_state=seed, **options)  # type: ignore[arg-type]

    empty = ps.PatternTable(
        [[0] * 21 + [1]], [1], [1]
    )  # the guarantee does not depend on the records: any table will do
    return as_measurement(mechanism, promised(mechanism, empty))


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
