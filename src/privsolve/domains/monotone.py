"""Trees that are monotone in some columns: whoever goes up in one of them, all else equal, is never told less."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.domains.trees import DecisionTrees
from privsolve.models.leaves import LabelLeaves, NumberLeaves, ProbabilityLeaves
from privsolve.models.tree import Leaf, Node, Split


class _End(NamedTuple):
    """A leaf: how high what it says stands, and for every column that was asked the codes that come to it, as bits."""

    height: float
    codes: dict[int, int]


class Monotone:
    """Which trees are monotone, by what is public alone. `directions` maps columns to 1 (up) or -1 (down)."""

    def __init__(self, trees: DecisionTrees, directions: Mapping[str, int]) -> None:
        questions = trees.questions
        places = {title: c for c, title in enumerate(questions.titles)}
        for title, way in directions.items():
            if title not in places or questions.ordered[places[title]] < 2:
                raise ValueError(
                    f"prior: monotone must name columns whose values have an order (numbers, bins, yes/no), got {title!r}"
                )
            if type(way) is not int or way not in (1, -1):
                raise ValueError(f"prior: monotone must say 1 (up) or -1 (down) of {title!r}, got {way!r}")
        self._trees = trees
        self._ways = {places[title]: way for title, way in directions.items()}
        self._heights = _heights(trees)

    def allows(self, root: Node) -> bool:
        """Whether no two leaves break the order: the values of two records that differ in one such column are compared."""
        ends = list(self._ends(root, {}))
        return not any(
            one.height > other.height and self._leads(one, other) for one in ends for other in ends if one is not other
        )

    def cut_back(self, root: Node) -> Node:
        """The same tree with the most levels at which it is monotone: below them the answer is no to every question."""
        depth = self._trees.depth
        while not self.allows(root):
            depth -= 1
            root = _cut_at(root, depth)
        return root

    def _ends(self, node: Node, codes: dict[int, int]) -> Iterator[_End]:
        if isinstance(node, Leaf):
            yield _End(float(self._heights[node.value]), codes)
            return
        questions = self._trees.questions
        c, mine = questions.columns[node.question], questions.codes[node.question]
        left = codes.get(c, (1 << questions.radices[c]) - 1)
        for child, here in ((node.yes, left & mine), (node.no, left & ~mine)):
            if here:
                yield from self._ends(child, codes | {c: here})

    def _leads(self, one: _End, other: _End) -> bool:
        """Whether a record at one leaf comes to the other by going up in one column only."""
        apart = [c for c, codes in one.codes.items() if not codes & other.codes.get(c, codes)]
        return len(apart) == 1 and apart[0] in self._ways and self._rises(one, other, apart[0])

    def _rises(self, one: _End, other: _End, c: int) -> bool:
        """Whether some code of the first leaf stands before some code of the second, in the direction of the column."""
        ordered = (1 << self._trees.questions.ordered[c]) - 1
        first, second = one.codes[c] & ordered, other.codes[c] & ordered
        if not first or not second:
            return False
        if self._ways[c] > 0:
            return _lowest(first) < _highest(second)
        return _highest(first) > _lowest(second)


def _cut_at(node: Node, depth: int) -> Node:
    if isinstance(node, Leaf):
        return node
    no = _cut_at(node.no, max(depth - 1, 0))
    return Split(node.question, _cut_at(node.yes, depth - 1), no) if depth else no


def _lowest(codes: int) -> int:
    return (codes & -codes).bit_length()


def _highest(codes: int) -> int:
    return codes.bit_length()


def _heights(trees: DecisionTrees) -> NDArray[np.float64]:
    """How high each leaf value stands: the number, or the share of the second of two labels."""
    leaves = trees.leaves
    if isinstance(leaves, NumberLeaves):
        return np.asarray(leaves.answers(), dtype=np.float64)
    if isinstance(leaves, LabelLeaves | ProbabilityLeaves) and len(leaves.labels) == 2:
        return np.asarray(leaves.shares[:, 1])
    raise ValueError("prior: monotone is for numbers and for two labels: more labels have no order")
