"""Every mechanism of the package attacked on the canned cases: what `privsolve audit` prints.

Claims that are proved must survive. The published calibrations, which are not, must be caught, and so must a claim that is
proved for real numbers and published in floating point: if they are not, the audit has lost its teeth.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from privsolve.arrays import Floats, Int64Array
from privsolve.audit.bound import Finding, lower_bound
from privsolve.audit.cases import CASES, SELECTION_CASES, Case, ParityProblem, SelectionCase, parity, parity_draws
from privsolve.audit.exact import ExactFinding, exact_epsilon, tree_law
from privsolve.audit.full_cards import FULL_CARD_CASES, FullCardCase
from privsolve.audit.tree_cases import TREE_CASES, TreeCase
from privsolve.continuous.objectives import PiecewiseLinear
from privsolve.continuous.opsamp import opsamp
from privsolve.continuous.problem import BoxProblem
from privsolve.continuous.stability import Calibration, SamplingNoise
from privsolve.domains import SignCube
from privsolve.errors import PrivacyWarning
from privsolve.mechanisms.base import Mechanism, Variant
from privsolve.mechanisms.exponential import ExponentialSampler
from privsolve.mechanisms.opdisc import OPDisc, sphere_noise
from privsolve.mechanisms.perturbed import Noise
from privsolve.mechanisms.registry import all_mechanisms
from privsolve.mechanisms.rspm import RSPM, separator_noise
from privsolve.mechanisms.selection import Selection, Selector
from privsolve.mechanisms.trees import TreeSampler
from privsolve.models.point import BoxPoint
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.guarantee import Proof
from privsolve.problems.priors import SparsePrior, UniformPrior
from privsolve.problems.problem import BaseProblem
from privsolve.problems.trees import TreeProblem

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

AnyCase = Case | TreeCase | SelectionCase
"""Two data sets that are neighbours."""

REFUTED = "refuted"
VERDICT_WORDS = {
    Proof.COMPLETE: "",
    Proof.REAL_ARITHMETIC: " in floating point (proved in real arithmetic)",
    Proof.NONE: " (not proved)",
}


@dataclass(frozen=True)
class Claim:
    """What a mechanism promises on one case, and how far we say that the proof of it reaches."""

    mechanism: str
    noise: str
    case: str
    epsilon: float
    delta: float
    proof: Proof


@dataclass(frozen=True)
class Check(Claim):
    """One claim under attack. `measure(confidence)` attacks it."""

    measure: Callable[[float], Finding | ExactFinding]


@dataclass(frozen=True)
class Row(Claim):
    """What the attack on one claim found."""

    measured: float
    exact: bool
    runs: int
    verdict: str

    @property
    def as_expected(self) -> bool:
        """A claim that is proved completely is not refuted, and any other is."""
        return (self.proof is Proof.COMPLETE) == (self.verdict != REFUTED)

    @property
    def words(self) -> str:
        """The verdict, with how far the proof reaches if that is not all the way."""
        return f"{self.verdict}{VERDICT_WORDS[self.proof] if self.verdict == REFUTED else ''}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "as_expected": self.as_expected}


def run_checks(to_run: Sequence[Check], confidence: float = 0.999) -> Iterator[Row]:
    """Attack the claims one after the other.

    With probability `confidence` no true claim among *all* of them is called refuted: each gets its share of the risk.
    """
    share = 1.0 - (1.0 - confidence) / max(len(to_run), 1)
    for check in to_run:
        finding = check.measure(share)
        exact = isinstance(finding, ExactFinding)
        verdict = REFUTED if finding.refutes(check.epsilon) else "exact: holds" if exact else "not refuted"
        runs = finding.runs if isinstance(finding, Finding) else 0
        yield Row(
            check.mechanism,
            check.noise,
            check.case,
            check.epsilon,
            check.delta,
            check.proof,
            finding.epsilon,
            exact,
            runs,
            verdict,
        )


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
    by_law = sorted(all_mechanisms(), key=lambda mechanism: mechanism.exact_law)
    return [
        *(check for mechanism in by_law for check in _registered(mechanism, cases, many, few, rng)),
        *(_sampled(by_name[name], method, prior, 40 * few, rng) for method, name, prior in samplers),
        *(_exact_tree(case) for case in TREE_CASES),
        *(_exact_choice(case, method) for case in SELECTION_CASES for method in Selection),
        *(_sampled_choice(SELECTION_CASES[0], method, 20 * few, rng) for method in Selection),
        _sampled_tree(TREE_CASES[1], 20 * few, rng),
        *(_full_card(case, few, rng) for case in FULL_CARD_CASES),
        *_parity_checks("gaussian", many // 10, rng),
        _opsamp(Calibration.PROVED, OPSAMP_EPSILON, few, rng),
        *_parity_checks("gaussian-published", many // 10, rng),
        _opsamp(Calibration.PUBLISHED, EPSILON, few, rng),
    ]


def _proof(proved: bool) -> Proof:
    return Proof.COMPLETE if proved else Proof.NONE


# --- every registered mechanism -------------------------------------------------------------------


def _registered(mechanism: Mechanism, cases: Sequence[Case], many: int, few: int, rng: Randomness) -> Iterator[Check]:
    """All variants of a mechanism on all cases: exactly if its law is known, else by many draws at once or one by one.

    Where there is a fast way to draw, the public function itself is attacked too, one call per run: calibration, noise,
    tables, tree and release.
    """
    first = cases[0]
    for variant in mechanism.variants(COMMON_DELTA):
        for case in cases:
            yield _attack(mechanism, variant, case, EPSILON, many, few, rng)
    if mechanism.fast_draws:
        yield _by_calls(mechanism, Variant("default, tree oracle"), first, ORACLE_EPSILON, few, rng)


def _attack(
    mechanism: Mechanism, variant: Variant, case: Case, epsilon: float, many: int, few: int, rng: Randomness
) -> Check:
    options = {**variant.options, "adjacency": Adjacency.of(case.adjacency)}
    if mechanism.exact_law:
        return _exact(mechanism, variant, case, epsilon)
    if not mechanism.fast_draws:
        return _by_calls(mechanism, variant, case, epsilon, few, rng)

    def draw(problem: BaseProblem, runs: int) -> Int64Array:
        return mechanism.draws(problem, epsilon, runs, rng, **options)

    return _check(mechanism, variant, case, epsilon, draw, many)


def _by_calls(mechanism: Mechanism, variant: Variant, case: Case, epsilon: float, runs: int, rng: Randomness) -> Check:
    def run(problem: BaseProblem) -> Any:
        return mechanism.run(problem, epsilon, adjacency=case.adjacency, random_state=rng, **variant.options)

    return _check(mechanism, variant, case, epsilon, run, runs)


def _check(
    mechanism: Mechanism, variant: Variant, case: Case, epsilon: float, attack: Callable[..., Any], runs: int
) -> Check:
    """A sampled attack on what the mechanism promises for this case.

    It attacks the law and not the last bits, so a proof in real arithmetic has to stand it like a complete one.
    """
    said = mechanism.promise(case.data, epsilon, adjacency=case.adjacency, **variant.options)

    def measure(confidence: float) -> Finding:
        return lower_bound(attack, case.data, case.neighbour, runs, said.delta, confidence)

    return Check(
        said.mechanism,
        variant.words,
        case.name,
        said.epsilon,
        said.delta,
        _proof(said.proof is not Proof.NONE),
        measure,
    )


def _exact(mechanism: Mechanism, variant: Variant, case: Case, epsilon: float) -> Check:
    """The laws on both data sets, compared to the last digit."""

    def law(problem: BaseProblem) -> Any:
        return mechanism.log_law(problem, epsilon, adjacency=Adjacency.of(case.adjacency), **variant.options)

    return _by_laws(mechanism.name, variant.words, case, law, epsilon)


def _by_laws(
    mechanism: str, words: str, case: AnyCase, law: Callable[[Any], Floats], epsilon: float = EPSILON
) -> Check:
    """The laws on either data set, of a mechanism without δ that is proved."""

    def measure(confidence: float) -> ExactFinding:
        laws = [law(data) for data in (case.data, case.neighbour)]
        return ExactFinding(exact_epsilon(*laws), len(laws[0]))

    return Check(mechanism, words, case.name, epsilon, 0.0, Proof.COMPLETE, measure)


# --- OPDisc and RSPM in many dimensions -----------------------------------------------------------


def _parity_checks(law: str, runs: int, rng: Randomness) -> list[Check]:
    """Gaussian noise in many dimensions, drawn coordinate by coordinate, for OPDisc and RSPM."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # that the published scales are not proved is the point
        on_sphere = sphere_noise(SignCube(OPDISC_DIM), EPSILON, delta=PARITY_DELTA, noise=law)
        on_separators = separator_noise(SignCube(RSPM_DIM), EPSILON, delta=PARITY_DELTA, noise=law)
    return [_parity(OPDisc.title, on_sphere, runs, rng), _parity(RSPM.title, on_separators, runs // 2, rng)]


def _parity(mechanism: str, noise: Noise, runs: int, rng: Randomness) -> Check:
    case = parity(noise.dim)

    def draw(problem: ParityProblem, n: int) -> Int64Array:
        return parity_draws(problem, noise, n, rng)

    def measure(confidence: float) -> Finding:
        return lower_bound(draw, case.data, case.neighbour, runs, noise.delta, confidence)

    return Check(mechanism, noise.law_type.name, case.name, noise.epsilon, noise.delta, noise.proof, measure)


# --- the exponential mechanism --------------------------------------------------------------------


def _sampled(case: Case, method: str, prior: UniformPrior | SparsePrior, runs: int, rng: Randomness) -> Check:
    def draw(problem: BaseProblem, n: int) -> Int64Array:
        samplers = [
            ExponentialSampler(problem, EPSILON, adjacency=case.adjacency, prior=prior, random_state=rng, method=method)
            for _ in range(SAMPLERS)
        ]
        rows = np.empty((n, problem.domain.dim), dtype=np.int64)
        for i, sampler in enumerate(samplers):
            rows[i::SAMPLERS] = sampler.draw(len(rows[i::SAMPLERS]))
        return rows

    return _by_draws("exponential", f"{prior.kind} prior, {method} sampler", case, draw, runs)


def _by_draws(mechanism: str, words: str, case: AnyCase, draw: Callable[[Any, int], Any], runs: int) -> Check:
    """Many draws on either data set, of a mechanism without δ that is proved."""

    def measure(confidence: float) -> Finding:
        return lower_bound(draw, case.data, case.neighbour, runs, 0.0, confidence)

    return Check(mechanism, words, case.name, EPSILON, 0.0, Proof.COMPLETE, measure)


# --- trees, one of several candidates --------------------------------------------------------------


def _exact_tree(case: TreeCase) -> Check:
    words = f"{case.data.trees.leaves.kind}, depth {case.data.trees.depth}"
    return _by_laws(
        "tree", words, case, lambda data: tree_law(data, EPSILON, adjacency=case.adjacency, prior=case.prior)
    )


def _sampled_tree(case: TreeCase, runs: int, rng: Randomness) -> Check:
    """The sums and the draws of the engine, after simplification: what is published."""

    def draw(problem: TreeProblem, n: int) -> list[str]:
        sampler = TreeSampler(problem, EPSILON, adjacency=case.adjacency, random_state=rng)
        return [str(sampler.draw()) for _ in range(n)]

    return _by_draws("tree", "sums and draws", case, draw, runs)


def _selector(case: SelectionCase, scores: Sequence[int], method: Selection, rng: Randomness | None = None) -> Selector:
    return Selector(
        scores, 1, EPSILON, monotone=case.monotone, method=method, adjacency=case.adjacency, random_state=rng
    )


def _exact_choice(case: SelectionCase, method: Selection) -> Check:
    return _by_laws("choose", method, case, lambda scores: _selector(case, scores, method).log_law())


def _sampled_choice(case: SelectionCase, method: Selection, runs: int, rng: Randomness) -> Check:
    draw = lambda scores, n: _selector(case, scores, method, rng).draw(n)  # noqa: E731
    return _by_draws("choose", f"{method}, draws", case, draw, runs)


# --- full scorecards ------------------------------------------------------------------------------


def _full_card(case: FullCardCase, runs: int, rng: Randomness) -> Check:
    """The whole program, one call per run: sums, noise, solver, output noise, points and level."""

    def measure(confidence: float) -> Finding:
        draw = lambda table: case.draw(table, rng)  # noqa: E731
        return lower_bound(draw, case.data, case.neighbour, runs, case.plan.delta, confidence)

    words = "rounded Gaussian"
    return Check("full card", words, case.name, case.plan.epsilon, case.plan.delta, Proof.COMPLETE, measure)


# --- OPSamp ---------------------------------------------------------------------------------------


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

    def measure(confidence: float) -> Finding:
        return lower_bound(run, _slopes(width, 0), _slopes(width, 1), runs, OPSAMP_DELTA, confidence)

    return Check(
        "OPSamp", calibration, f"slopes on [0, {width:g}]", epsilon, OPSAMP_DELTA, _proof(not published), measure
    )
