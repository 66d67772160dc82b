"""The second stage of a draft: cut points of numbers with many values, at quantiles (theory, 12.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.data.columns import Bins, Real
from privsolve.data.private.answers import BY_CHANCE
from privsolve.data.private.counts import Kinds
from privsolve.data.private.deciding import Drafted, Scale, share
from privsolve.data.private.plan import Plan
from privsolve.data.private.quantiles import LEAST_EPSILON, draw_cuts
from privsolve.noise.entropy import Randomness

INTERVALS = 7
"""Cut points divide the records of a column into so many parts, or fewer where epsilon is too small for that."""

ENOUGH = 1e6
"""Of records times epsilon: more would not change a cut point, and would ask for more digits than floats have."""

PER_INTERVAL, AT_LEAST = 25, 40
"""Records times epsilon of a column that one interval asks for, and that cut points need to mean anything."""

POPULATED = 0.02
"""Of the numbers of a column, which must lie between two cut points for both to stay, if noise would hardly give as many."""

TOO_FEW = (
    "numbers that could not be cut with this epsilon: too few records, or nearly all have the same value; state it"
)


@dataclass(frozen=True)
class Cutting:
    """What the second stage spends."""

    plan: Plan
    intervals: int
    rng: Randomness

    def cut(self, scales: Mapping[str, Scale], counts: Mapping[str, Kinds]) -> dict[str, Drafted | str]:
        """The columns with their cut points, or why they are left out."""
        order = sorted(scales, key=lambda name: -scales[name].numbers)
        chosen = next((order[:many] for many in range(len(order), 0, -1) if self._enough(order[:many], scales)), [])
        found: dict[str, Drafted | str] = {}
        for name, scale in scales.items():
            parts: list[tuple[Real, float]] = []
            if name in chosen:
                parts = self._parts(name, scale, counts[name], len(chosen))
            found[name] = self._column(name, scale, parts)
        return found

    def _enough(self, names: list[str], scales: Mapping[str, Scale]) -> bool:
        epsilon = self.plan.costs.for_cuts(len(names))
        return epsilon >= LEAST_EPSILON and all(scales[name].numbers * epsilon >= AT_LEAST for name in names)

    def _column(self, name: str, scale: Scale, parts: list[tuple[Real, float]]) -> Drafted | str:
        """Cut points with how many numbers are at or above each; without any, what the answer says: whether zeros are apart."""
        above: dict[Real, float] = {1: float(scale.numbers)} if scale.zeros and scale.whole else {}
        for cut, numbers in parts:
            above.setdefault(math.ceil(cut) if scale.whole else cut, numbers)
        if not above:
            return TOO_FEW
        cuts, missing, options = sorted(above), "missing" if scale.missing else None, self.plan.options
        column = Bins(name, cuts, "thresholds", scale.whole, missing, options.missing, options.decimal)
        words = "cut points that divide the records evenly" if parts else "zero or not"
        words += ", zeros apart" if scale.zeros and parts else ""
        shares = [share(above[cut], scale.records) for cut in cuts]
        if scale.missing:
            shares.append(share(scale.records - scale.numbers - scale.zeros, scale.records))
        return Drafted(column, f"Drafted: {words}.", tuple(shares))

    def _parts(self, name: str, scale: Scale, kinds: Kinds, columns: int) -> list[tuple[Real, float]]:
        """The cut points that have clearly some numbers on both sides, with the noisy count of those at or above each."""
        grid, cells, first = self.plan.grids[name], *self._divided(name, scale, kinds)
        epsilon = min(self.plan.costs.for_cuts(columns), ENOUGH / scale.numbers)
        asked = int(scale.numbers * epsilon / PER_INTERVAL)
        intervals = min(self.intervals, max(2, asked), len(grid.points) - first + 1)
        places = draw_cuts(cells, grid.weights[first:], intervals, epsilon, self.plan.costs.adjacency, self.rng)
        noise = self.plan.costs.between_cuts(columns)
        sums = np.add.reduceat(cells, [0, *(place + 1 for place in places)])
        noisy = [int(count) + int(xi) for count, xi in zip(sums, noise.draws(self.rng, len(sums)), strict=True)]
        clear = max(noise.margin(BY_CHANCE), POPULATED * scale.numbers)
        kept = _populated([grid.points[first + place] for place in places], noisy, clear)
        return [(cut, float(max(0, above))) for cut, above in kept]

    def _divided(self, name: str, scale: Scale, kinds: Kinds) -> tuple[Int64Array, int]:
        """The numbers by cell from the first candidate on, which is given too."""
        grid, cells = self.plan.grids[name], kinds.cells.copy()
        if scale.zeros and grid.zero is not None:
            cells[grid.zero] = 0
        if scale.negative or grid.zero is None:
            return cells, 0
        return np.append(cells[: grid.zero + 1].sum(), cells[grid.zero + 1 :]), grid.zero


def _populated(cuts: Sequence[Real], counts: Sequence[int], clear: float) -> list[tuple[Real, int]]:
    """Cut points with the count of all that is at or above each; a part with hardly any numbers joins the one beside it."""
    left, parts = list(cuts), list(counts)
    while left and min(parts) < clear:
        part = parts.index(min(parts))
        gone = part if part == 0 or (part < len(left) and parts[part - 1] > parts[part + 1]) else part - 1
        parts[gone : gone + 2] = [parts[gone] + parts[gone + 1]]
        del left[gone]
    return [(cut, sum(parts[place + 1 :])) for place, cut in enumerate(left)]
