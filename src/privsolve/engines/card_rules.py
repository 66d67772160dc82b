"""Which supports the constraints on a card allow, for whoever goes through supports (theory, section 16).

A set of columns is *open* if no limit is exceeded (columns, columns of a variable, variables, alternatives): every subset of
it is then open as well. It is *allowed* if it is open and has a column of every required variable. A prefix is *alive* if
some allowed support consists of it and later columns. Supports that are not allowed have no weight, and prefixes that are
not alive are not entered.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.compiled import compiled, helper

if TYPE_CHECKING:
    from privsolve.domains.scorecards import ConstrainedPoints


class Rule(NamedTuple):
    """The constraints as compiled code reads them.

    For every column its `variable`; for every variable how many of its columns may have points (`most_of`), the number of its
    list of alternatives (`list_of`, -1 for none), whether it is `required`, and its last column.
    """

    active: bool
    variable: Int64Array
    most_of: Int64Array
    list_of: Int64Array
    required: NDArray[np.bool_]
    last_of: Int64Array
    questions: int
    most: int


class Room(NamedTuple):
    """Scratch: columns by variable and by list, the columns that may be added (`open`) and those that may be next (`alive`)."""

    counted: Int64Array
    taken: Int64Array
    open: NDArray[np.bool_]
    alive: NDArray[np.bool_]


def no_rule(columns: int, most: int) -> Rule:
    """Every support of at most so many columns is allowed."""
    each = np.arange(columns)
    return Rule(
        False,
        each,
        np.ones(columns, dtype=np.int64),
        np.full(columns, -1),
        np.zeros(columns, dtype=np.bool_),
        each,
        columns,
        most,
    )


def rule_of(domain: ConstrainedPoints, columns: Int64Array, most: int) -> Rule:
    """The rule over these columns of a domain, in this order; all columns that may have points must be among them."""
    questions = domain.questions
    names = list(questions)
    number = {name: v for v, name in enumerate(names)}
    lists = np.full(len(names), -1)
    for k, alternatives in enumerate(domain.alternatives):
        lists[[number[name] for name in alternatives if name in number]] = k
    variable = np.array([number[domain.variables[j]] for j in columns.tolist()], dtype=np.int64)
    last_of = np.full(len(names), -1)
    last_of[variable] = np.arange(len(columns))  # the last assignment stays
    return Rule(
        True,
        variable,
        np.array([questions[name].most for name in names]),
        lists,
        np.array([questions[name].required for name in names]),
        last_of,
        domain.most_questions if domain.max_questions is None else domain.max_questions,
        most,
    )


def required_first(rule: Rule, order: Int64Array) -> Int64Array:
    """The columns in this order, but those of required variables first: prefixes without them end early."""
    key = np.where(rule.required[rule.variable], rule.variable, len(rule.required))
    return order[np.argsort(key[order], kind="stable")] if rule.active else order


def new_room(rule: Rule) -> Room:
    """Room for one thread."""
    m, lists = len(rule.variable), int(rule.list_of.max(initial=-1)) + 1
    return Room(
        np.zeros(len(rule.most_of), dtype=np.int64),
        np.zeros(lists, dtype=np.int64),
        np.ones(m, dtype=np.bool_),
        np.ones(m, dtype=np.bool_),
    )


@helper
def extend(rule, columns, size, room):
    """`open` and `alive` of every column after a prefix that is alive; returns whether the prefix itself is allowed."""
    count, taken, m = room.counted, room.taken, len(rule.variable)
    for v in range(len(count)):
        count[v] = 0
    for a in range(len(taken)):
        taken[a] = 0
    questions = 0
    for i in range(size):
        questions += _enter(rule, room, columns[i])
    missing, first, owner, second = 0, m, -1, m
    for v in range(len(count)):  # of the required variables that are missing, the two whose columns end first
        if rule.required[v] and count[v] == 0:
            missing += 1
            if rule.last_of[v] < first:
                first, owner, second = rule.last_of[v], v, first
            else:
                second = min(second, rule.last_of[v])
    after = columns[size - 1] + 1 if size > 0 else 0
    for k in range(after, m):
        v = rule.variable[k]
        new = 1 if count[v] == 0 else 0
        fits = size < rule.most and count[v] < rule.most_of[v]
        if new == 1:
            fits = fits and questions < rule.questions and (rule.list_of[v] < 0 or taken[rule.list_of[v]] == 0)
        room.open[k] = fits
        left = missing - 1 if new == 1 and rule.required[v] else missing
        fits = fits and size + 1 + left <= rule.most and questions + new + left <= rule.questions
        room.alive[k] = fits and (second if v == owner else first) > k
    return missing == 0


@helper
def _enter(rule, room, j):
    """Count a column; returns 1 if it is the first of its variable."""
    v = rule.variable[j]
    room.counted[v] += 1
    if room.counted[v] > 1:
        return 0
    if rule.list_of[v] >= 0:
        room.taken[rule.list_of[v]] += 1
    return 1


@helper
def dead_at(rule, room, path):
    """The place of the first column that makes a prefix of the path one that is not alive, or its length."""
    for i in range(len(path)):
        extend(rule, path, i, room)
        if not room.alive[path[i]]:
            return i
    return len(path)


@compiled
def mark_supports(rule, room, child_start, alive, allowed):
    """For every support by number (see `numbering`): whether it is alive as a prefix, and whether it is allowed.

    Both must be False throughout. The largest supports, from `len(child_start)` on, are allowed if they are alive.
    """
    m, inner, depth = len(rule.variable), len(child_start), np.int64(0)
    columns, number = np.zeros(rule.most + 1, np.int64), np.zeros(rule.most + 1, np.int64)
    following = np.zeros(rule.most + 1, np.int64)
    alive[0], entering = True, True
    while depth >= 0:
        if entering:
            after = columns[depth - 1] + 1 if depth > 0 else 0
            allowed[number[depth]] = extend(rule, columns, depth, room)
            for j in range(after, m if number[depth] < inner else 0):
                child = child_start[number[depth]] + j
                alive[child] = room.alive[j]
                allowed[child] = room.alive[j] and child >= inner
            following[depth], entering = after, False
        j = following[depth]
        following[depth] = j + 1
        if j >= m or number[depth] >= inner or child_start[number[depth]] + j >= inner:
            depth -= 1
        elif alive[child_start[number[depth]] + j]:
            columns[depth] = j
            number[depth + 1] = child_start[number[depth]] + j
            depth += 1
            entering = True
