"""Points as people add them up: the smallest whole numbers that decide the same (theory, section 17).

Everything here is public arithmetic on a rule that has been released: it takes nothing from the data.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MOST_COMBINATIONS = 4096
"""Of answers to all questions; points of rules with more are divided by their common divisor, and that is all."""

MOST_WORK = 400_000
"""Sums that the search for smaller points looks at, so that it always ends soon, and in the same place everywhere."""


@dataclass(frozen=True)
class Levels:
    """The different points that the answers to a question have, in ascending order."""

    points: tuple[int, ...]


@dataclass(frozen=True)
class Slope:
    """What a number is multiplied by, in steps."""

    points: int


Part = Levels | Slope


@dataclass(frozen=True)
class Points:
    """The parts of a total in the order of the questions, and the least total that is decided positive.

    Levels stand in the order of the ones they were made from, so that the k-th of one is the k-th of the other.
    """

    parts: tuple[Part, ...]
    threshold: int


def from_zero(points: Points) -> Points:
    """Every question's least answer counts 0; totals and threshold move together. A multiplied number stays as it is."""
    moved = sum(part.points[0] for part in points.parts if isinstance(part, Levels))
    parts = (_lowered(part) if isinstance(part, Levels) else part for part in points.parts)
    return Points(tuple(parts), points.threshold - moved)


def smallest(points: Points) -> Points:
    """The smallest whole points that decide the same on every combination of answers.

    Of all such points from 0 that keep the order of the answers to each question, those with the least highest total; of
    several, one that does not depend on anything but these points. With a number among the questions, or with very many
    combinations, the points are divided by their greatest common divisor only.
    """
    found = _divided(from_zero(points))
    levels = [part.points if isinstance(part, Levels) else (0,) for part in found.parts]
    multiplied = any(isinstance(part, Slope) and part.points for part in found.parts)
    if multiplied or math.prod(map(len, levels)) > MOST_COMBINATIONS:
        return found
    highest = sum(points[-1] for points in levels)
    if not 0 < found.threshold <= highest:  # decided before anything is asked
        chosen, threshold = [(0,) * len(points) for points in levels], 0 if found.threshold <= 0 else 1
    elif (better := _Search(levels, found.threshold).run(highest)) is not None:
        chosen, threshold = better
    else:
        return found
    parts = [Levels(new) if isinstance(part, Levels) else part for part, new in zip(found.parts, chosen, strict=True)]
    return Points(tuple(parts), threshold)


def _lowered(part: Levels) -> Levels:
    return Levels(tuple(points - part.points[0] for points in part.points))


def _divided(points: Points) -> Points:
    """The points without their common divisor; the threshold is rounded up, because there is no total in between."""
    divisor = math.gcd(*(p for part in points.parts for p in _all(part)))
    if not divisor:
        return Points(points.parts, 0 if points.threshold <= 0 else 1)
    parts: list[Part] = [
        Slope(part.points // divisor) if isinstance(part, Slope) else Levels(tuple(p // divisor for p in part.points))
        for part in points.parts
    ]
    return Points(tuple(parts), -(-points.threshold // divisor))


def _all(part: Part) -> tuple[int, ...]:
    return part.points if isinstance(part, Levels) else (part.points,)


class _TooLong(Exception):
    """The search has done all its work."""


class _Search:
    """Question by question, the largest first, points in ascending order, for each highest total in turn.

    After some questions, two lists of answers that some answers to the other questions tell apart must have different sums
    so far, in that order (section 17.3). That leaves few points to try.
    """

    def __init__(self, levels: Sequence[tuple[int, ...]], threshold: int) -> None:
        self.order = sorted(range(len(levels)), key=lambda c: (-levels[c][-1], c))
        self.levels = [levels[c] for c in self.order]
        self.threshold = threshold
        self.rest = [self._sums(k) for k in range(len(levels) + 1)]
        self.work = 0

    def _sums(self, k: int) -> list[int]:
        """All totals of the questions from the k-th on, in ascending order."""
        sums = {0}
        for points in self.levels[k:]:
            sums = {a + b for a in sums for b in points}
        return sorted(sums)

    def run(self, highest: int) -> tuple[list[tuple[int, ...]], int] | None:
        """The first points that decide the same and whose highest total is least, by question, and the least positive total.

        None if the search is too long.
        """
        try:
            for room in range(1, highest + 1):
                for chosen in self._from(0, room, [(0, 0)]):
                    return self._points(chosen)
        except _TooLong:
            return None
        raise AssertionError("the points that the search starts from decide the same")

    def _points(self, chosen: list[tuple[int, ...]]) -> tuple[list[tuple[int, ...]], int]:
        sums = [(0, 0)]
        for levels, points in zip(self.levels, chosen, strict=True):
            sums = _added(sums, levels, points)
        threshold = min(total for raw, total in sums if raw >= self.threshold)
        return [points for _, points in sorted(zip(self.order, chosen, strict=True))], threshold

    def _from(self, k: int, room: int, sums: list[tuple[int, int]]) -> Iterator[list[tuple[int, ...]]]:
        """All choices for the questions from the k-th on whose highest points add up to `room`.

        `sums` are pairs of a sum of the given points and one of the chosen points, of the answers so far.
        """
        if k == len(self.levels):
            if room == 0:
                yield []
            return
        for points in _ascending(len(self.levels[k]), room):
            longer = _added(sums, self.levels[k], points)
            self.work += len(longer)
            if self.work > MOST_WORK:
                raise _TooLong
            if self._told_apart(longer, self.rest[k + 1]):
                for chosen in self._from(k + 1, room - points[-1], longer):
                    yield [points, *chosen]

    def _told_apart(self, sums: list[tuple[int, int]], rest: list[int]) -> bool:
        """Whether answers that the rest can tell apart have chosen points in the same order."""
        before, most, here = -1, -1, -1  # class, largest sum of the classes before, largest sum of this one
        for raw, total in sorted(sums):
            kind = len(rest) - bisect_left(rest, self.threshold - raw)  # how many of the rest make it positive
            if kind != before:
                before, most = kind, max(most, here)
            if total <= most:
                return False
            here = max(here, total)
        return True


def _added(sums: list[tuple[int, int]], levels: Sequence[int], points: Sequence[int]) -> list[tuple[int, int]]:
    return list({(raw + a, total + b) for raw, total in sums for a, b in zip(levels, points, strict=True)})


def _ascending(length: int, most: int) -> Iterator[tuple[int, ...]]:
    """Sequences of whole numbers from 0 that never fall and end at `most` or before: low ends first, then low numbers."""
    if length == 1:
        yield (0,)
        return

    def inner(left: int, least: int, end: int) -> Iterator[tuple[int, ...]]:
        if left == 0:
            yield ()
            return
        for value in range(least, end + 1):
            for others in inner(left - 1, value, end):
                yield (value, *others)

    for end in range(most + 1):
        for middle in inner(length - 2, 0, end):
            yield (0, *middle, end)
