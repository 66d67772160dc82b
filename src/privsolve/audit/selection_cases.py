"""Scores of candidates on neighbouring data, as unlike as one record can make them."""

from __future__ import annotations

from dataclasses import dataclass

from privsolve.privacy.adjacency import Adjacency


@dataclass(frozen=True)
class SelectionCase:
    """Counts of votes with one ballot more or less, or another one."""

    name: str
    data: tuple[int, ...]
    neighbour: tuple[int, ...]
    adjacency: Adjacency
    monotone: bool = False


SELECTION_CASES = (
    SelectionCase("one vote goes over", (3, 5, 4, 2), (4, 4, 4, 2), Adjacency.REPLACE),
    SelectionCase("one ballot for all but the first", (3, 5, 4, 2), (3, 6, 5, 3), Adjacency.ADD_REMOVE, monotone=True),
    SelectionCase("one ballot, stated as if for anything", (3, 5, 4, 2), (3, 6, 5, 3), Adjacency.ADD_REMOVE),
)
