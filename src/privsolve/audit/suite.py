"""Every mechanism of the package attacked on the canned cases: what `privsolve audit` prints.

Claims that are proved must survive. The published calibrations, which are not, must be caught: otherwise the audit is not
sensitive enough.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from privsolve.arrays import Floats, Int64Array
from privsolve.audit.bound import Finding, lower_bound
from privsolve.audit.cases import CASES, SELECTION_CASES, TREE_CASES, Case, parity
from privsolve.audit.exact import ExactFinding, compared, tree_law
from privsolve.audit.full_cards import FULL_CARD_CASES, FullCardCase
from privsolve.audit.parity_pair import ParityProblem, parity_draws
from privsolve.continuous.opsamp import opsamp
from privsolve.continuous.problem import BoxProblem, PiecewiseLinear
from privsolve.continuous.stability import Calibration, SamplingNoise
from privsolve.domains import SignCube
from privsolve.errors import PrivacyWarning
from privsolve.mechanisms.exponential import ExponentialSampler, exponential_law
from privsolve.mechanisms.opdisc import Sphere, opdisc, sphere_noise
from privsolve.mechanisms.perturbed import Noise, calibrate, perturbed_draws
from privsolve.mechanisms.rspm import Separators, rspm, separator_noise
from privsolve.mechanisms.selection import Selection, Selector
from privsolve.mechanisms.trees import TreeSampler
from privsolve.models.choices import BoxPoint
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.guarantee import Proof
from privsolve.problems.priors import Prior, SparsePrior, UniformPrior
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
        claim = {one.name: getattr(check, one.name) for one in fields(Claim)}
        yield Row(**claim, measured=finding.epsilon, exact=exact, runs=runs, verdict=verdict)


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
        *(_exact_choice(case, method) for case in SELECTION_CASES for method in Selection),
        *(_sampled_choice(SELECTION_CASES[0], method, 20 * few, rng) for method in Selection),
        _sampled_tree(TREE_CASES[1], 20 * few, rng),
        *(_full_card(case, few, rng) for case in FULL_CARD_CASES),
        *_parity_checks("gaussian", many // 10, rng),
        _opsamp(Calibration.PROVED, OPSAMP_EPSILON, few, rng),
        *_parity_checks("gaussian-published", many // 10, rng),
        _opsamp(Calibration.PUBLISHED, EPSILON, few, rng),
    ]


def _by_draws(
    claim: Claim, case: Case | FullCardCase, draw: Callable[[Any, int], Any] | Callable[[Any], Any], runs: int
) -> Check:
    """Attack by many draws on either data set: `draw(data, n)` makes all at once, `draw(data)` one."""

    def measure(confidence: float) -> Finding:
        return lower_bound(draw, case.data, case.neighbour, runs, claim.delta, confidence)

    return Check(**asdict(claim), measure=measure)


def _by_laws(claim: Claim, case: Case, law: Callable[[Any], Floats]) -> Check:
    """Compare the laws on either data set to the last digit, of a mechanism without δ."""
    return Check(**asdict(claim), measure=lambda confidence: compared(law, case.data, case.neighbour))


def _pure(mechanism: str, words: str, case: Case) -> Claim:
    return Claim(mechanism, words, case.name, EPSILON, 0.0, Proof.COMPLETE)


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

            claim = Claim(geometry.title, law.name, case.name, EPSILON, delta or 0.0, Proof.COMPLETE)
            yield _by_draws(claim, case, draw, many)
    case = cases[0]
    claim = Claim(geometry.title, "default, tree oracle", case.name, ORACLE_EPSILON, 0.0, Proof.COMPLETE)
    run = partial(mechanism, epsilon=ORACLE_EPSILON, adjacency=case.adjacency, random_state=rng)
    yield _by_draws(claim, case, lambda problem: run(problem), few)


def _exact(case: Case, prior: UniformPrior | SparsePrior) -> Check:
    def law(problem: BaseProblem) -> Floats:
        return exponential_law(problem, EPSILON, adjacency=case.adjacency, prior=prior)

    return _by_laws(_pure("exponential", f"{prior.kind} prior", case), case, law)


def _parity_checks(law: str, runs: int, rng: Randomness) -> list[Check]:
    """Gaussian noise in many dimensions, drawn coordinate by coordinate, for OPDisc and RSPM."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # that the published scales are not proved is the point
        on_sphere = sphere_noise(SignCube(OPDISC_DIM), EPSILON, delta=PARITY_DELTA, noise=law)
        on_separators = separator_noise(SignCube(RSPM_DIM), EPSILON, delta=PARITY_DELTA, noise=law)
    return [_parity(Sphere.title, on_sphere, runs, rng), _parity(Separators.title, on_separators, runs // 2, rng)]


def _parity(mechanism: str, noise: Noise, runs: int, rng: Randomness) -> Check:
    def draw(problem: ParityProblem, n: int) -> Int64Array:
        return parity_draws(problem, noise, n, rng)

    case = parity(noise.dim)
    claim = Claim(mechanism, noise.law_type.name, case.name, noise.epsilon, noise.delta, noise.proof)
    return _by_draws(claim, case, draw, runs)


def _sampled(case: Case, method: str, prior: UniformPrior | SparsePrior, runs: int, rng: Randomness) -> Check:
    """The samplers of the exponential mechanism."""

    def draw(problem: BaseProblem, n: int) -> Int64Array:
        options: dict[str, Prior | str | Randomness] = {"prior": prior, "method": method, "random_state": rng}
        samplers = [ExponentialSampler(problem, EPSILON, adjacency=case.adjacency, **options) for _ in range(SAMPLERS)]  # type: ignore[arg-type]
        rows = np.empty((n, problem.domain.dim), dtype=np.int64)
        for i, sampler in enumerate(samplers):
            rows[i::SAMPLERS] = sampler.draw(len(rows[i::SAMPLERS]))
        return rows

    return _by_draws(_pure("exponential", f"{prior.kind} prior, {method} sampler", case), case, draw, runs)


def _exact_tree(case: Case) -> Check:
    words = f"{case.data.trees.leaves.kind}, depth {case.data.trees.depth}"
    law = lambda data: tree_law(data, EPSILON, adjacency=case.adjacency, **case.options)  # noqa: E731
    return _by_laws(_pure("tree", words, case), case, law)


def _sampled_tree(case: Case, runs: int, rng: Randomness) -> Check:
    """The sums and the draws of the engine, after simplification: what is published."""

    def draw(problem: TreeProblem, n: int) -> list[str]:
        sampler = TreeSampler(problem, EPSILON, adjacency=case.adjacency, random_state=rng)
        return [str(sampler.draw()) for _ in range(n)]

    return _by_draws(_pure("tree", "sums and draws", case), case, draw, runs)


def _selector(case: Case, scores: Sequence[int], method: Selection, rng: Randomness | None = None) -> Selector:
    return Selector(scores, 1, EPSILON, method=method, adjacency=case.adjacency, random_state=rng, **case.options)


def _exact_choice(case: Case, method: Selection) -> Check:
    return _by_laws(_pure("choose", method, case), case, lambda scores: _selector(case, scores, method).log_law())


def _sampled_choice(case: Case, method: Selection, runs: int, rng: Randomness) -> Check:
    draw = lambda scores, n: _selector(case, scores, method, rng).draw(n)  # noqa: E731
    return _by_draws(_pure("choose", f"{method}, draws", case), case, draw, runs)


def _full_card(case: FullCardCase, runs: int, rng: Randomness) -> Check:
    """The whole program, one call per run: sums, noise, solver, output noise, points and level."""
    claim = Claim("full card", "rounded Gaussian", case.name, case.plan.epsilon, case.plan.delta, Proof.COMPLETE)
    return _by_draws(claim, case, lambda table: case.draw(table, rng), runs)


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
    return _by_draws(Claim("OPSamp", calibration, name, epsilon, OPSAMP_DELTA, proof), case, run, runs)
