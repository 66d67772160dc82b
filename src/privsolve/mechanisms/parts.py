"""A release or a failure, both covered by the guarantee: oracles that may give up, on parts (theory, section 15.4)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privsolve.arrays import Floats, Int64Array
from privsolve.checks import check_between, check_integer
from privsolve.data.patterns import PatternTable
from privsolve.mechanisms.exponential import exponential
from privsolve.mechanisms.opdisc import opdisc
from privsolve.mechanisms.rspm import rspm
from privsolve.models.choices import NoAnswer
from privsolve.noise.discrete import DiscreteLaplace
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy import calibration
from privsolve.privacy.accounting import Account, charged, promised
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.decimals import at_most, exact
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.profiles import Approximate
from privsolve.problems.problem import BaseProblem, draft_of
from privsolve.releases import Diagnostics, Release, Run

SHARE = Fraction(9, 10)
"""Of epsilon, for the test of how many parts failed: what the parts themselves cost is divided by their number."""

MECHANISMS: dict[str, Callable[..., Run]] = {"opdisc": opdisc, "rspm": rspm, "exponential": exponential}

MOST_PARTS = 10_000_000

DOWNWARDS, ROUNDING = 1.0 - 2.0**-40, 2.0**-36
"""More than the floats in a bound can gain, and than the logarithm of a chance of at least 0.0005 is off by."""

MOST_FOR_THE_TEST = 20
"""An epsilon at which noise on a count is practically gone."""

LARGEST_EXPONENT = 500.0
"""Beyond this exponentials overflow."""


@dataclass(frozen=True)
class Parts:
    """How records are divided so that the failure of an oracle is covered: public numbers, no data (theory, section 15.4).

    Args:
        count: parts that the records are dealt to. An answer comes from one of them, so it is as good as about `1/count` of
            the records make it; about `2.4/sqrt(delta)` parts leave each the epsilon 1.
        epsilon: of the release or the failure, whichever it is.
        delta: likewise.
        allowed: so many parts may fail and an answer is still withheld with at most the next probability; each more makes
            `part_epsilon` smaller.
        withheld: half of it by a coin that withholds any answer, half by the noise on the number of failed parts.
    """

    count: int
    epsilon: float
    delta: float
    allowed: int = 0
    withheld: float = 0.1

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "count", check_integer("count", self.count, 2, MOST_PARTS))
        set_field(self, "epsilon", calibration.check_epsilon(self.epsilon))
        set_field(self, "delta", calibration.check_delta(self.delta))
        set_field(self, "allowed", check_integer("allowed", self.allowed, 0, self.count - 2))
        set_field(self, "withheld", check_between("withheld", self.withheld, 0.001, 0.9))
        if not self._largest_factor > 1:
            raise ValueError(
                f"count={self.count} parts are too few for epsilon={self.epsilon:g}, delta={self.delta:g} and "
                f"allowed={self.allowed}: delta shrinks with the square of their number, use more of them"
            )

    @property
    def part_epsilon(self) -> float:
        """The epsilon of the mechanism on each part, under `"add-remove"`."""
        return math.log(self._largest_factor) * DOWNWARDS

    @cached_property
    def test_epsilon(self) -> float:
        """What the noise on the number of failed parts costs."""
        return at_most(min(SHARE * exact(self.epsilon), Fraction(MOST_FOR_THE_TEST)))

    @property
    def coin(self) -> Fraction:
        """`β`: with this probability there is no answer, whatever the parts have found."""
        return exact(self.withheld) / 2

    @cached_property
    def threshold(self) -> int:
        """An answer is published, but for the coin, if the noisy number of failed parts is at most this."""
        q = math.exp(-self.test_epsilon)
        return self.allowed + max(0, math.ceil(math.log(self.withheld / 2 * (1 + q)) / math.log(q) - 1))

    @cached_property
    def publishing(self) -> Floats:
        """`t(f)` for f = 0, ..., count failed parts: the chance that what a part has found is published if it is drawn."""
        within = np.exp(self.noise.log_cdf(self.threshold - np.arange(self.count + 1)))
        return np.asarray((1.0 - float(self.coin)) * within)

    @property
    def setting(self) -> dict[str, Any]:
        """Plain values for a release."""
        return {name: getattr(self, name) for name in ("count", "threshold", "withheld", "part_epsilon")}

    @cached_property
    def noise(self) -> DiscreteLaplace:
        """The law of the noise on the number of failed parts."""
        return DiscreteLaplace(1 / exact(self.test_epsilon))

    @cached_property
    def _log_ratio(self) -> float:
        """`ln r`: how far the chances of an answer, and of none, move at most when one part more or less fails."""
        failed = np.arange(self.count + 1)
        none = 1.0 - self.publishing * (self.count - failed) / self.count
        return float(max(self.test_epsilon, np.abs(np.diff(np.log(none))).max())) + ROUNDING

    @property
    def _largest_factor(self) -> float:
        """The largest `e^ε₀` that both `epsilon` and `delta` leave (theorem of section 15.4)."""
        left = min(self.epsilon - self._log_ratio, LARGEST_EXPONENT)
        worst = float((np.arange(1, self.count + 1) * self.publishing[:-1]).max()) / self.count**2
        return min((self.count - 1) * math.expm1(left), self.delta / worst) * DOWNWARDS


def release_or_failure(
    records: Any,
    problem_of: Callable[[Any], BaseProblem],
    parts: Parts,
    *,
    mechanism: str = "opdisc",
    adjacency: Adjacency | str = Adjacency.REPLACE,
    random_state: int | np.random.SeedSequence | Randomness | None = None,
    budget: Account | None = None,
    **options: Any,
) -> Run:
    """Release an answer, or that there is none, such that the guarantee covers which of the two it is.

    For oracles that may give up. Elsewhere an oracle that fails is an error, and *that* it failed is not covered. Here the
    records are dealt to parts, the mechanism runs on each, and the answer of one drawn at random is published if few enough
    have failed. The price is high: the answer comes from one part of the records (theory, section 15.4 has measurements).

    Args:
        records: a `PatternTable`, an array, a sparse matrix, a list or a frame, one entry per record.
        problem_of: makes the problem from some of the records; it must look at these alone, make one record of each entry at
            most, and state the same domain and loss for any of them.
        parts: how many, and the epsilon and delta of the release.
        mechanism: `"opdisc"`, `"rspm"` or `"exponential"`, with noise that is pure.
        adjacency: `"replace"` or `"add-remove"`; the numbers are the same.
        random_state: None for the operating system's entropy; a seed makes the run repeatable, for testing only.
        budget: an `Accountant` or a `Ledger` that pays for the release, or refuses it, before anything is drawn.
        options: of the mechanism, such as `oracle=ps.oracles.TreeOracle(node_limit=20_000)`.

    Guarantee:
        What is released, an answer or `NoAnswer`, is `(epsilon, delta)`-DP for every oracle that certifies what it returns,
        on whatever parts and noise it fails (theory, section 15.4), if whether it does depends on the part, its noise and
        coins of its own: limit its work, not its time. Running time, interrupts, a lack of memory and the diagnostics are not
        covered.
    """
    start, rng = time.perf_counter(), as_randomness(random_state)
    _check(problem_of, parts, mechanism, options.get("oracle"))
    run = partial(MECHANISMS[mechanism], adjacency=Adjacency.ADD_REMOVE, random_state=rng, **options)
    like_a_part = _taken(records, np.arange(max(1, _count(records) // parts.count)))
    whole, some = _problem(problem_of, records), _problem(problem_of, like_a_part)
    if some.setting != whole.setting:
        raise ValueError("problem_of must state the same domain and loss for any records: make them of public numbers")
    # the mechanism checks its options on as many records as a part has, before its noise
    guarantee = _guarantee(promised(run, some, parts.part_epsilon), parts, Adjacency.of(adjacency))
    with charged(budget, guarantee, draft=draft_of(whole)):
        try:
            solve = partial(_answer, run, partial(_problem, problem_of), parts.part_epsilon, whole)
            answers = [None if part is None else solve(part) for part in in_parts(records, parts.count, rng)]
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted while solving: nothing was released") from None
        failed = sum(found is None for found in answers)
        noisy = failed + int(parts.noise.draws(rng, 1)[0])
        drawn = answers[rng.integer_below(parts.count)]
        withheld = rng.integer_below(parts.coin.denominator) < parts.coin.numerator
        chosen = None if withheld or noisy > parts.threshold else drawn
    quality: dict[str, Any] = {}
    with suppress(Exception):  # the curator's figures on all records must not decide whether there is a release
        quality = {} if chosen is None else whole.quality(chosen)
    diagnostics = Diagnostics(time.perf_counter() - start, quality, {"parts": parts.count, "failed": failed})
    model = NoAnswer() if chosen is None else whole.model(chosen)
    return Run(Release(model, guarantee, whole.setting | {"parts": parts.setting}), diagnostics)


def _check(problem_of: Any, parts: Any, mechanism: str, oracle: Any) -> None:
    """Raise for arguments of `release_or_failure` that are wrong whatever the records are."""
    if not isinstance(parts, Parts):
        raise ValueError(f"parts must be Parts(count, epsilon, delta), got {type(parts).__name__}")
    if not callable(problem_of):
        raise ValueError("problem_of must be a function that makes a problem from some of the records")
    if mechanism not in MECHANISMS:
        raise ValueError(f"mechanism must be one of {', '.join(MECHANISMS)}, got {mechanism!r}")
    if getattr(oracle, "time_limit", None) is not None:  # a clock ticks for all parts at once
        raise ValueError("oracle must not have a time_limit here: limit its nodes, which depend on the part alone")


def _answer(
    run: Callable[..., Run], problem_of: Callable[[Any], BaseProblem], epsilon: float, whole: BaseProblem, part: Any
) -> Int64Array | None:
    """The weights that one part gives, None if it fails: for whatever reason, since the proof allows any."""
    try:
        problem = problem_of(part)
        if problem.setting != whole.setting:
            return None
        weights = run(problem, epsilon).release.weights
        return weights if whole.domain.contains(weights) else None
    except Exception as error:
        if isinstance(error, MemoryError) or isinstance(error.__cause__, MemoryError):
            # all parts share it, as they share time: the run ends
            raise MemoryError("too little memory for a part: nothing was released") from None
        return None


def _guarantee(one: Guarantee, parts: Parts, adjacency: Adjacency) -> Guarantee:
    """What release or failure promise, if the mechanism promises `one` on each part."""
    if one.delta or not one.proved:
        raise ValueError("noise must be pure and proved for every part: leave it out, or use another law")
    return replace(
        one,
        profile=Approximate(parts.epsilon, parts.delta),
        adjacency=adjacency,
        mechanism=f"{one.mechanism} on one of {parts.count} parts, or no answer",
        noise=f"{one.noise}, then discrete Laplace noise",
        theory="15.4",
        negligible=parts.count * one.negligible,
    )


def _problem(problem_of: Callable[[Any], BaseProblem], records: Any) -> BaseProblem:
    """The problem of some records, of which each is one record: else one of them would have a say in many."""
    problem, count = problem_of(records), _count(records)
    if not isinstance(problem, BaseProblem):
        raise ValueError(f"problem_of must return a problem, got {type(problem).__name__}")
    if problem.n > count:
        raise ValueError(f"problem_of must make one record of each entry at most, but made {problem.n} of {count}")
    return problem


def _count(records: Any) -> int:
    """How many records there are; raises unless single ones can be taken out."""
    try:
        shape = (records.n,) if isinstance(records, PatternTable) else getattr(records, "shape", None)
        count = len(records) if shape is None else shape[0]
        _taken(records, np.arange(min(count, 1)))
    except (TypeError, IndexError, KeyError):
        raise ValueError(
            f"records must be a PatternTable, an array, a list or a frame, one entry per record, got {type(records).__name__}"
        ) from None
    if count == 0:
        raise ValueError("records must hold at least one record")
    return int(count)


def in_parts(records: Any, count: int, rng: Randomness) -> Iterator[Any]:
    """The records of each part in turn; None for a part that has none. Every record has a die of its own."""
    labels = rng.integers_below(count, _count(records))
    order = np.argsort(labels, kind="stable")
    for first, last in pairwise(np.searchsorted(labels[order], np.arange(count + 1))):
        yield _taken(records, order[first:last]) if last > first else None


def _taken(records: Any, places: NDArray[np.intp]) -> Any:
    """The records at these places; those of a pattern table are counted row by row, the positive ones first."""
    if isinstance(records, PatternTable):
        counts = np.concatenate([records.positives, records.negatives])
        entries = np.searchsorted(np.cumsum(counts), places, side="right")
        yes, no = np.bincount(entries, minlength=len(counts)).reshape(2, -1)
        rows = yes + no > 0
        return PatternTable(records.features[rows], yes[rows], no[rows], records.names, records.scales, records.ranges)
    if hasattr(records, "iloc"):
        return records.iloc[places]
    return [records[place] for place in places] if isinstance(records, list | tuple) else records[places]
