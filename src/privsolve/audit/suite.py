"""Every mechanism of the package attacked on the canned cases: what `privsolve audit` prints.

Claims that are proved must survive. The published calibrations, which are not, must be caught: otherwise the audit is not
sensitive enough.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.audit.bound import Finding, lower_bound
from privsolve.audit.cases import CASES, FULL_CARD_CASES, TREE_CASES, Case, FullCardCase, parity
from privsolve.audit.exact import ExactFinding, exact_loss, tree_law
from privsolve.audit.parity_pair import parity_draws
from privsolve.continuous.opsamp import opsamp
from privsolve.continuous.problem import BoxProblem, PiecewiseLinear
from privsolve.continuous.stability import Calibration, SamplingNoise
from privsolve.domains import SignCube
from privsolve.errors import PrivacyWarning
from privsolve.mechanisms.exponential import ExponentialSampler, exponential_law
from privsolve.mechanisms.opdisc import Sphere, opdisc, sphere_noise
from privsolve.mechanisms.perturbed import calibrate, perturbed_draws
from privsolve.mechanisms.rspm import Separators, rspm, separator_noise
from privsolve.mechanisms.trees import TreeSampler
from privsolve.models.choices import BoxPoint
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.guarantee import Proof
from privsolve.problems.priors import SparsePrior, UniformPrior
from privsolve.problems.problem import BaseProblem
from privsolve.problems.trees import TreeProblem
from privsolve.releases import Run

EPSILON = 1.0
COMMON_DELTA = 1e-3
"""For the proved Gaussian laws: large enough to be seen in a hundred thousand runs."""

PARITY_DELTA = OPSAMP_DELTA = 1e-6
OPDISC_DIM, RSPM_DIM = 1000, 3000
"""Where the parity pair breaks the published scales by a wide margin (theory, sections 2.3 and 3)."""

ORACLE_EPSILON, OPSAMP_EPSILON = 3.0, 10.0
"""Claims attacked through the public functions, one call per run: so large that a few hundred runs show something."""

SAMPLERS = 5
"""Draws are of several samplers by turns: young ones have other frontiers than old ones."""

REFUTED = "refuted"
VERDICT_WORDS = {
    Proof.COMPLETE: "",
    Proof.REAL_ARITHMETIC: " in floating point (proved in real arithmetic)",
    Proof.NONE: " (not proved)",
}


@dataclass(frozen=True)
class Check:
    """One claim under attack: what a mechanism promises on a case, and how far we say that the proof of it reaches.

    With `runs`, `outputs(data, n)` or `outputs(data)` draws on either data set. Without, it is the law, as log probabilities,
    and the two laws are compared to the last digit.
    """

    mechanism: str
    noise: str
    case: Case | FullCardCase
    outputs: Callable[..., Any]
    runs: int = 0
    epsilon: float = EPSILON
    delta: float = 0.0
    proof: Proof = Proof.COMPLETE

    def measure(self, confidence: float) -> Finding | ExactFinding:
        """Attack the claim."""
        pair = self.case.data, self.case.neighbour
        if not self.runs:
            return exact_loss(self.outputs, *pair)
        return lower_bound(self.outputs, *pair, self.runs, self.delta, confidence)


@dataclass(frozen=True)
class Row:
    """What the attack on one claim found."""

    check: Check
    finding: Finding | ExactFinding

    @property
    def verdict(self) -> str:
        """What became of the claim."""
        if self.finding.refutes(self.check.epsilon):
            return REFUTED
        return "not refuted" if self.check.runs else "exact: holds"

    @property
    def as_expected(self) -> bool:
        """A claim that is proved completely is not refuted, and any other is."""
        return (self.check.proof is Proof.COMPLETE) == (self.verdict != REFUTED)

    @property
    def words(self) -> str:
        """The verdict, with how far the proof reaches if that is not all the way."""
        return f"{self.verdict}{VERDICT_WORDS[self.check.proof] if self.verdict == REFUTED else ''}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        claim = {
            name: getattr(self.check, name) for name in ("mechanism", "noise", "epsilon", "delta", "proof", "runs")
        }
        found = {"measured": self.finding.epsilon, "exact": not self.check.runs, "verdict": self.verdict}
        return claim | {"case": self.check.case.name} | found | {"as_expected": self.as_expected}


def run_checks(to_run: Sequence[Check], confidence: float = 0.999) -> Iterator[Row]:
    """Attack the claims one after the other.

    With probability `confidence` no true claim among *all* of them is called refuted: each gets its share of the risk.
    """
    share = 1.0 - (1.0 - confidence) / max(len(to_run), 1)
    return (Row(check, check.measure(share)) for check in to_run)


def checks(*, long: bool = False, random_state: int | Randomness | None = None) -> list[Check]:
    """What there is to attack: the most telling cases, or all of them with many more runs."""
    rng = as_randomness(random_state)
    cases = CASES if long else CASES[:5]
    many, few = (1_000_000, 4_000) if long else (60_000, 300)
    by_name = {case.name: case for case in CASES}
    samplers: list[tuple[str, str, UniformPrior | SparsePrior]] = [
        ("tree", "one record flipped", UniformPrior()),
        ("tree", "record duplicated", SparsePrior()),
        ("supports", "scorecard", SparsePrior()),
    ]
    return [
        *_perturbed(opdisc, Sphere, cases, many, few, rng),
        *_perturbed(rspm, Separators, cases, many, few, rng),
        *(_exact(case, prior) for prior in (UniformPrior(), SparsePrior()) for case in cases),
        *(_sampled(by_name[name], method, prior, 40 * few, rng) for method, name, prior in samplers),
        *(_exact_tree(case) for case in TREE_CASES),
        _sampled_tree(TREE_CASES[1], 20 * few, rng),
        *(_full_card(case, few, rng) for case in FULL_CARD_CASES),
        *_parity_checks("gaussian", many // 10, rng),
        _opsamp(Calibration.PROVED, OPSAMP_EPSILON, few, rng),
        *_parity_checks("gaussian-published", many // 10, rng),
        _opsamp(Calibration.PUBLISHED, EPSILON, few, rng),
    ]


def _perturbed(
    mechanism: Callable[..., Run],
    geometry: type[Sphere | Separators],
    cases: Sequence[Case],
    many: int,
    few: int,
    rng: Randomness,
) -> Iterator[Check]:
    """Every law that is proved, on all cases and by many draws at once; then the public function, one call per run.

    Draws attack the law and not the last bits, so a proof in real arithmetic has to stand them like a complete one.
    """
    for option, (law, _) in geometry.laws.items():
        if law.proof is Proof.NONE:
            continue
        delta = COMMON_DELTA if law.needs_delta else None
        for case in cases:
            public: dict[str, Any] = {"noise": option, "delta": delta, "adjacency": case.adjacency}

            def draw(problem: BaseProblem, n: int, public: dict[str, Any] = public) -> Int64Array:
                found = calibrate(geometry(problem.domain), EPSILON, loss=problem.loss, **public)
                return perturbed_draws(problem, found, n, rng)

            yield Check(geometry.title, law.name, case, draw, many, delta=delta or 0.0)
    run = partial(mechanism, epsilon=ORACLE_EPSILON, adjacency=cases[0].adjacency, random_state=rng)
    yield Check(geometry.title, "default, tree oracle", cases[0], lambda problem: run(problem), few, ORACLE_EPSILON)


def _exact(case: Case, prior: UniformPrior | SparsePrior) -> Check:
    law = partial(exponential_law, epsilon=EPSILON, adjacency=case.adjacency, prior=prior)
    return Check("exponential", f"{prior.kind} prior", case, law)


def _parity_checks(law: str, runs: int, rng: Randomness) -> Iterator[Check]:
    """Gaussian noise in many dimensions, drawn coordinate by coordinate, for OPDisc and RSPM."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # that the published scales are not proved is the point
        on_sphere = sphere_noise(SignCube(OPDISC_DIM), EPSILON, delta=PARITY_DELTA, noise=law)
        on_separators = separator_noise(SignCube(RSPM_DIM), EPSILON, delta=PARITY_DELTA, noise=law)
    for title, noise, count in ((Sphere.title, on_sphere, runs), (Separators.title, on_separators, runs // 2)):
        draws = lambda problem, n, noise=noise: parity_draws(problem, noise, n, rng)  # noqa: E731
        yield Check(title, law, parity(noise.dim), draws, count, noise.epsilon, noise.delta, noise.proof)


def _sampled(case: Case, method: str, prior: UniformPrior | SparsePrior, runs: int, rng: Randomness) -> Check:
    """The samplers of the exponential mechanism."""

    def draw(problem: BaseProblem, n: int) -> Int64Array:
        options: dict[str, Any] = {"prior": prior, "method": method, "random_state": rng}
        samplers = [ExponentialSampler(problem, EPSILON, adjacency=case.adjacency, **options) for _ in range(SAMPLERS)]
        rows = np.empty((n, problem.domain.dim), dtype=np.int64)
        for i, sampler in enumerate(samplers):
            rows[i::SAMPLERS] = sampler.draw(len(rows[i::SAMPLERS]))
        return rows

    return Check("exponential", f"{prior.kind} prior, {method} sampler", case, draw, runs)


def _exact_tree(case: Case) -> Check:
    words = f"{case.data.trees.leaves.kind}, depth {case.data.trees.depth}"
    return Check("tree", words, case, lambda data: tree_law(data, EPSILON, adjacency=case.adjacency))


def _sampled_tree(case: Case, runs: int, rng: Randomness) -> Check:
    """The sums and the draws of the engine, after simplification: what is published."""

    def draw(problem: TreeProblem, n: int) -> list[str]:
        sampler = TreeSampler(problem, EPSILON, adjacency=case.adjacency, random_state=rng)
        return [str(sampler.draw()) for _ in range(n)]

    return Check("tree", "sums and draws", case, draw, runs)


def _full_card(case: FullCardCase, runs: int, rng: Randomness) -> Check:
    """The whole program, one call per run: sums, noise, solver, output noise, points and level."""
    promise = case.plan.epsilon, case.plan.delta
    return Check("full card", "rounded Gaussian", case, lambda table: case.draw(table, rng), runs, *promise)


def _slopes(width: float, turned: int) -> BoxProblem:
    """Linear losses on a short interval: two records of slope 1, of which `turned` have slope -1."""
    ends = np.array([0.0, width])
    return BoxProblem(PiecewiseLinear((ends,), ((2 - 2 * turned) * ends,), 2, 1.0), [(0.0, width)])


def _opsamp(calibration: Calibration, epsilon: float, runs: int, rng: Randomness) -> Check:
    """The worst pair we know, through the mechanism itself: answers differ whenever the noise is below 2.

    The published sensitivity has a square of the width where the width belongs, so a narrow interval breaks it.
    """
    published = calibration is Calibration.PUBLISHED
    width, bins = (5e-4 if published else 1.0), 40
    draws, sigma = (None, None) if published else (500, 0.05)
    noise = SamplingNoise(calibration, sigma=sigma, centred=False)

    def run(problem: BoxProblem) -> int:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            done = opsamp(problem, epsilon, OPSAMP_DELTA, draws, noise=noise, random_state=rng)
        assert isinstance(done.release.model, BoxPoint)
        return int(min(done.release.model.point[0] / width * bins, bins - 1))

    name, proof = f"slopes on [0, {width:g}]", Proof.NONE if published else Proof.COMPLETE
    case = Case(name, "one of two slopes turns round", Adjacency.REPLACE, _slopes(width, 0), _slopes(width, 1))
    return Check("OPSamp", calibration, case, run, runs, epsilon, OPSAMP_DELTA, proof)
