"""Which supports the constraints on a card allow, for whoever goes through supports (theory, section 16).

A support is *allowed* if it has no more columns and variables than it may, and a column of every required variable. A set of
columns is *alive* if some allowed support consists of it and later columns. Supports that are not allowed have no weight.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Int64Array
from privsolve.compiled import helper

if TYPE_CHECKING:
    from privsolve.domains.scorecards import ConstrainedPoints


class Rule(NamedTuple):
    """The constraints as compiled code reads them, and scratch for one thread.

    `variable` of every column; those of the first `required` variables come first, one variable after the other, and `last`
    is where each of them ends. `counted` is for the columns of every variable, `alive` and `allowed` for what `extend` finds.
    """

    active: bool
    variable: Int64Array
    required: int
    last: Int64Array
    questions: int
    most: int
    counted: Int64Array
    alive: NDArray[np.bool_]
    allowed: NDArray[np.bool_]


def no_rule(columns: int, most: int) -> Rule:
    """Every support of at most so many columns is allowed."""
    return _rule(False, np.zeros(columns, dtype=np.int64), 0, most, most)


def rule_of(domain: ConstrainedPoints, columns: Int64Array, most: int) -> tuple[Int64Array, Rule]:
    """The order that the rule needs for usable columns of a domain, those of required variables first; and the rule."""
    names = tuple(dict.fromkeys((*domain.required, *domain.variables)))
    number = {name: v for v, name in enumerate(names)}
    variable = np.array([number[domain.variables[j]] for j in columns.tolist()], dtype=np.int64)
    order = np.argsort(np.minimum(variable, len(domain.required)), kind="stable")
    return order, _rule(True, variable[order], len(domain.required), domain.most_questions, most)


def _rule(active: bool, variable: Int64Array, required: int, questions: int, most: int) -> Rule:
    last = np.array([np.flatnonzero(variable == v).max(initial=-1) for v in range(required)], dtype=np.int64)
    counted, alive = np.zeros(variable.max(initial=0) + 1, dtype=np.int64), np.ones(len(variable), dtype=np.bool_)
    return Rule(active, variable, required, last, questions, most, counted, alive, alive.copy())


def for_one_thread(rule: Rule) -> Rule:
    """The same rule with scratch of its own."""
    return rule._replace(counted=rule.counted.copy(), alive=rule.alive.copy(), allowed=rule.allowed.copy())


@helper
def is_allowed(rule, columns, size):
    """Whether a support is allowed; leaves in `counted` how many columns of every variable it has."""
    count, questions, missing = rule.counted, 0, rule.required
    for v in range(len(count)):
        count[v] = 0
    for i in range(size):
        v = rule.variable[columns[i]]
        if count[v] == 0:
            questions += 1
            missing -= 1 if v < rule.required else 0
        count[v] += 1
    return size <= rule.most and questions <= rule.questions and missing == 0


@helper
def extend(rule, columns, size):
    """For every column after a prefix: is the prefix with it `alive`, and is it `allowed`? Returns whether any is alive."""
    is_allowed(rule, columns, size)
    questions, missing, first, any_alive = 0, 0, len(rule.variable), False
    for v in range(len(rule.counted)):
        if rule.counted[v] > 0:
            questions += 1
        elif v < rule.required:
            first = first if missing > 0 else rule.last[v]  # the missing variables after it end later
            missing += 1
    for k in range(columns[size - 1] + 1 if size > 0 else 0, len(rule.variable)):
        v = rule.variable[k]
        new = 1 if rule.counted[v] == 0 else 0
        left = missing - 1 if new == 1 and v < rule.required else missing
        fits = size + 1 + left <= rule.most and questions + new + left <= rule.questions
        rule.alive[k] = fits and k <= first
        rule.allowed[k] = rule.alive[k] and left == 0
        any_alive = any_alive or rule.alive[k]
    return any_alive
