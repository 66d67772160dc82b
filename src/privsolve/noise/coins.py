"""Random choices with a small *relative* error for every outcome, however unlikely (theory, sections 4 and 6).

A uniform of full relative precision is below a float p with probability exactly p. A choice among several is a sequence
of such coins, the least likely outcome first: its probability among those left is at most 1/2, so that the complement
keeps its relative precision too. An outcome is thus chosen with its probability times `1 ± (n + 2)·2^-52`, and none is
ever rounded to zero: probabilities below the range of floats are flipped as several coins in a row.

Weights across nodes differ by more than floats can hold, so they are kept as `mantissa·2^exponent` with the mantissa
in [1, 2) and an exponent of its own, in a binary tree of sums.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

import math
import os
import threading
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Floats, Int64Array
from privsolve.compiled import compiled
from privsolve.errors import PrivsolveError
from privsolve.noise.entropy import Randomness

LOG_STEP = 600.0
EXPONENT_STEP = 1000
SHORT_RUN = 32
_STEP_PROBABILITY = math.exp(-LOG_STEP)
_POWERS = np.ldexp(1.0, -np.arange(EXPONENT_STEP + 2))
_LOG2_E = 1.0 / math.log(2.0)


class Stream(NamedTuple):
    """A block of uniforms, used up in order; it is refilled between attempts."""

    uniforms: Floats
    used: Int64Array


class Uniforms:
    """Where compiled code finds its uniforms: a block drawn ahead, of which none is ever used twice.

    A copy (`copy.deepcopy`, pickling, joblib) and a forked process start with an empty block, so what they draw is their
    own. Two threads would read the same block, so whoever draws claims it first, and the other one gets an error.
    """

    def __init__(self, rng: Randomness) -> None:
        self._rng = rng
        self._start_anew()

    def _start_anew(self) -> None:
        self._pid = os.getpid()
        self._claimed = threading.Lock()
        self.stream = Stream(np.empty(0), np.zeros(1, dtype=np.int64))

    def __reduce__(self) -> tuple[type[Uniforms], tuple[Randomness]]:
        return type(self), (self._rng,)

    def claim(self) -> None:
        """Begin to draw; raise if another thread is at it."""
        if self._pid != os.getpid():
            self._start_anew()
        if not self._claimed.acquire(blocking=False):
            raise PrivsolveError("this sampler is drawing in another thread: use one sampler per thread")

    def release(self) -> None:
        """End what `claim` began."""
        self._claimed.release()

    def at_least(self, reserve: int, block: int) -> None:
        """Leave `reserve` unused uniforms or more in the `stream`: `block` new ones are drawn if there are fewer."""
        rest = self.stream.uniforms[self.stream.used[0] :]
        if len(rest) < reserve:
            self.stream = Stream(np.concatenate([rest, self._rng.uniform(block)]), np.zeros(1, dtype=np.int64))


@compiled
def take(stream):
    """The next uniform."""
    at = stream.used[0]
    if at >= len(stream.uniforms):
        raise RuntimeError("ran out of random numbers within one attempt")
    stream.used[0] = at + 1
    return stream.uniforms[at]


@compiled
def coin(stream, log_probability):
    """True with probability `exp(log_probability)`."""
    while log_probability < -LOG_STEP:
        if take(stream) >= _STEP_PROBABILITY:
            return False
        log_probability += LOG_STEP
    return take(stream) < math.exp(log_probability)


@compiled
def sort_indices(values, n, order):
    """`order[:n]` sorts `values[:n]`, equal values in their order: insertion within short runs, which are then merged."""
    for start in range(0, n, SHORT_RUN):
        for i in range(start, min(start + SHORT_RUN, n)):
            k = i
            while k > start and values[order[k - 1]] > values[i]:
                order[k] = order[k - 1]
                k -= 1
            order[k] = i
    run = SHORT_RUN
    while run < n:
        for start in range(0, n - run, 2 * run):
            _merge(values, order, start, start + run, min(start + 2 * run, n))
        run *= 2


@compiled
def _merge(values, order, start, middle, stop):
    """Merge two neighbouring sorted runs of `order`, equal values from the first one first."""
    left = order[start:middle].copy()
    i, j = 0, middle
    for k in range(start, stop):
        if j == stop or (i < len(left) and values[left[i]] <= values[order[j]]):
            order[k] = left[i]
            i += 1
        else:
            order[k] = order[j]
            j += 1


@compiled
def _ascending(weight, n):
    """Indices of the first n weights, lightest first."""
    order = np.empty(n, np.int64)
    sort_indices(weight, n, order)
    return order


@compiled
def choose(stream, weight, n):
    """An index below n with probability proportional to its weight (they need not add up to 1, some are positive)."""
    order = _ascending(weight, n)
    rest = np.empty(n, np.float64)
    total = 0.0
    for i in range(n - 1, -1, -1):
        total += weight[order[i]]
        rest[i] = total
    for i in range(n - 1):
        if take(stream) < weight[order[i]] / rest[i]:
            return order[i]
    return order[n - 1]


@compiled
def choose_log(stream, log_weight, n):
    """An index below n with probability proportional to `exp(log_weight)`."""
    order = _ascending(log_weight, n)
    rest = np.empty(n, np.float64)
    highest, total = log_weight[order[n - 1]], 0.0
    for i in range(n - 1, -1, -1):
        total += math.exp(log_weight[order[i]] - highest)
        rest[i] = highest + math.log(total)
    for i in range(n - 1):
        if coin(stream, log_weight[order[i]] - rest[i]):
            return order[i]
    return order[n - 1]


@compiled
def choose_of_many(stream, log_weight, n, sums):
    """The same with one coin for each level of a binary tree of sums; and the logarithm of the sum of all.

    From the root down a coin for the lighter child, whose probability is at most 1/2. Outcomes more than `exp(LOG_STEP)` times
    lighter than the heaviest, which floats do not hold beside it, are one outcome first. `sums` is scratch, for `4·n` floats.
    """
    leaves, highest, light = 1, log_weight[0], -np.inf
    while leaves < n:
        leaves *= 2
    for i in range(n):
        highest = max(highest, log_weight[i])
    for i in range(leaves):
        sums[leaves + i] = 0.0
        if i < n and log_weight[i] >= highest - LOG_STEP:
            sums[leaves + i] = math.exp(log_weight[i] - highest)
        elif i < n:
            light = max(light, log_weight[i])
    for node in range(leaves - 1, 0, -1):
        sums[node] = sums[2 * node] + sums[2 * node + 1]
    total = highest + math.log(sums[1])
    if light > -np.inf:
        chosen = _choose_light(stream, log_weight, n, highest - LOG_STEP, light, total)
        if chosen >= 0:
            return chosen, total
    node = 1
    while node < leaves:
        small, large = 2 * node, 2 * node + 1
        if sums[small] > sums[large]:
            small, large = large, small
        node = small if sums[small] > 0.0 and take(stream) < sums[small] / sums[node] else large
    return node - leaves, total


@compiled
def _choose_light(stream, log_weight, n, below, light, total):
    """One of the outcomes lighter than `below`, the heaviest of which is `light`, or -1 with the share of the others."""
    share = 0.0
    for i in range(n):
        if log_weight[i] < below:
            share += math.exp(log_weight[i] - light)
    if not coin(stream, light + math.log(share) - total):
        return -1
    only = np.where(log_weight[:n] < below, log_weight[:n], -np.inf)
    return choose_log(stream, only, n)


class SumTree(NamedTuple):
    """Weights at the leaves `leaves + i` of a binary tree, and in every node the sum of its two children."""

    mantissa: Floats
    exponent: NDArray[np.int64]


NO_WEIGHT = -(2**40)
"""Exponent of an empty leaf, whose mantissa is 0."""


def new_sum_tree(log_weight: Floats, capacity: int) -> SumTree:
    """A tree with room for `capacity` weights, of which the first are given by their logarithms."""
    leaves = 1 << max(capacity - 1, 0).bit_length()
    tree = SumTree(np.zeros(2 * leaves), np.full(2 * leaves, NO_WEIGHT, dtype=np.int64))
    _build(tree, log_weight)
    return tree


@compiled
def _build(tree, log_weight):
    leaves = len(tree.mantissa) // 2
    for i in range(len(log_weight)):
        tree.mantissa[leaves + i], tree.exponent[leaves + i] = _split(log_weight[i])
    for node in range(leaves - 1, 0, -1):
        _add_children(tree, node)


@compiled
def _split(log_weight):
    """`exp(log_weight)` as a mantissa and an exponent; of minus infinity, those of an empty leaf."""
    if log_weight == -np.inf:
        return 0.0, np.int64(NO_WEIGHT)
    scaled = log_weight * _LOG2_E
    exponent = math.floor(scaled)
    mantissa = np.exp2(scaled - exponent)
    return mantissa, np.int64(exponent)


@compiled
def _add_children(tree, node):
    one, other = 2 * node, 2 * node + 1
    if tree.exponent[one] < tree.exponent[other]:
        one, other = other, one
    mantissa, exponent = tree.mantissa[one], tree.exponent[one]
    lower = exponent - tree.exponent[other]
    if lower <= EXPONENT_STEP:
        mantissa += tree.mantissa[other] * _POWERS[lower]
    if mantissa >= 2.0:
        mantissa, exponent = 0.5 * mantissa, exponent + 1
    tree.mantissa[node], tree.exponent[node] = mantissa, exponent


@compiled
def set_weight(tree, leaf, log_weight):
    """Change one weight."""
    node = len(tree.mantissa) // 2 + leaf
    tree.mantissa[node], tree.exponent[node] = _split(log_weight)
    while node > 1:
        node //= 2
        _add_children(tree, node)


@compiled
def copy_leaves(old, new):
    """Move all weights to a larger tree."""
    leaves, room = len(old.mantissa) // 2, len(new.mantissa) // 2
    for i in range(leaves):
        new.mantissa[room + i], new.exponent[room + i] = old.mantissa[leaves + i], old.exponent[leaves + i]
    for node in range(room - 1, 0, -1):
        _add_children(new, node)


@compiled
def propose(stream, tree):
    """A leaf with probability proportional to its weight: from the root down, a coin for the lighter child."""
    node, leaves = 1, len(tree.mantissa) // 2
    while node < leaves:
        small, large = 2 * node, 2 * node + 1
        if (tree.exponent[small], tree.mantissa[small]) > (tree.exponent[large], tree.mantissa[large]):
            small, large = large, small
        lower = tree.exponent[small] - tree.exponent[node]
        node = small if _scaled_coin(stream, tree.mantissa[small] / tree.mantissa[node], lower) else large
    return node - leaves


@compiled
def _scaled_coin(stream, mantissa, exponent):
    """True with probability `mantissa·2^exponent`."""
    if mantissa == 0.0:
        return False
    while exponent < -EXPONENT_STEP:
        if take(stream) >= _POWERS[EXPONENT_STEP]:
            return False
        exponent += EXPONENT_STEP
    return take(stream) < mantissa * _POWERS[-exponent]


@compiled
def log_total(tree):
    """Logarithm of the sum of all weights."""
    return math.log(tree.mantissa[1]) + tree.exponent[1] * math.log(2.0)
