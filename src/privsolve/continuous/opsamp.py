"""OPSamp: the average of many perturbed optima, with Laplace noise, over a box of real numbers (theory, section 5)."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, fsum
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from privsolve._version import __version__
from privsolve.checks import check_count, check_error, check_positive
from privsolve.continuous.objectives import Box, as_box
from privsolve.continuous.oracles import BoxOracle
from privsolve.continuous.stability import SamplingPlan, plan_opsamp
from privsolve.errors import OracleNotCertified, PrivacyWarning
from privsolve.noise.draws import discrete_laplace
from privsolve.noise.entropy import Randomness, as_randomness
from privsolve.privacy.accounting import Account, charged
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.guarantee import Guarantee, Proof
from privsolve.privacy.profiles import profile_of
from privsolve.releases import NOT_PRIVATE

__all__ = [
    "BoxDiagnostics",
    "BoxRelease",
    "BoxRun",
    "exponential_noise",
    "opsamp",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FORMAT = "privsolve-box-release-1"
FIELDS = frozenset({"format", "version", "steps", "point", "low", "high", "grid", "setting", "guarantee"})
SETTING = ("n", "lipschitz", "draws", "sigma", "sensitivity", "oracle_error", "centred")

LARGEST_NOISE = 2**28
"""Numbers of noise that one run may draw, `draws` times the dimension: 2 GB of them."""

MOST_JOBS = 4096

BATCHES = 64
"""Oracle calls are sent out in this many batches at most, whatever the number of workers."""


@dataclass(frozen=True)
class BoxRelease:
    """The published result: a point of a public grid in a box, its guarantee, and the public setting. Nothing else.

    The point is `low + grid·steps`. `setting` holds the public numbers that the noise was computed from.
    """

    steps: tuple[int, ...]
    box: Box
    grid: float
    setting: dict[str, Any]
    guarantee: Guarantee
    version: str = __version__

    def __post_init__(self) -> None:
        top = _top_steps(self.box, self.grid)
        if len(self.steps) != self.box.dim or not all(0 <= k <= t for k, t in zip(self.steps, top, strict=True)):
            raise ValueError("the release's steps are not a point of its grid")
        if set(self.setting) != set(SETTING):
            raise ValueError(f"the release's setting must hold {', '.join(SETTING)}")

    @property
    def point(self) -> Floats:
        """The released point."""
        return np.minimum(self.box.corner + self.grid * np.array(self.steps, dtype=np.float64), self.box.high)

    def to_json(self) -> str:
        """The release as JSON text; equal releases give equal bytes."""
        content = {
            "format": FORMAT,
            "version": self.version,
            "point": self.point.tolist(),
            "steps": list(self.steps),
            "low": list(self.box.low),
            "high": list(self.box.high),
            "grid": self.grid,
            "setting": {name: self.setting[name] for name in SETTING},
            "guarantee": self.guarantee.to_dict(),
        }
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> BoxRelease:
        """The inverse of `to_json`; a file of another kind or version is refused with what is wrong."""
        content = _fields(text)
        if not isinstance(content["steps"], list) or not all(type(k) is int for k in content["steps"]):
            raise ValueError("the release file's steps must be a list of whole numbers")
        if not isinstance(content["setting"], dict):
            raise ValueError("the release file's setting must be an object")
        for name in ("low", "high"):
            if not isinstance(content[name], list) or not all(type(x) in (int, float) for x in content[name]):
                raise ValueError(f"the release file's {name} must be a list of numbers")
        release = cls(
            tuple(content["steps"]),
            Box(tuple(content["low"]), tuple(content["high"])),
            check_positive("grid", content["grid"]),
            content["setting"],
            Guarantee.from_dict(content["guarantee"]),
            content["version"],
        )
        if release.point.tolist() != content["point"]:
            raise ValueError("the release file's point is not the one that its steps give")
        return release


@dataclass(frozen=True)
class BoxDiagnostics:
    """What the curator may look at and must not publish: all of it depends on the data without protection.

    `points` are the answers of the oracle, one row per noise vector.
    """

    seconds: float
    largest_gap: float
    mean: Floats
    spread: Floats
    points: Floats

    def to_json(self) -> str:
        """JSON text that says at the top that it is not for publication."""
        content = {
            "warning": NOT_PRIVATE,
            "seconds": self.seconds,
            "largest_gap": self.largest_gap,
            "mean": self.mean.tolist(),
            "spread": self.spread.tolist(),
        }
        return json.dumps(content, indent=2) + "\n"


@dataclass(frozen=True)
class BoxRun:
    """One use of OPSamp: `release` may be published, `plan` is public, `diagnostics` may not be published."""

    release: BoxRelease
    plan: SamplingPlan
    diagnostics: BoxDiagnostics


def opsamp(
    objective: Any,
    box: Box | Sequence[Sequence[float]],
    lipschitz: float,
    n: int,
    epsilon: float,
    delta: float,
    draws: int | None,
    oracle: BoxOracle,
    *,
    adjacency: str = "replace",
    calibration: str = "proved",
    sigma: float | None = None,
    grid: float | None = None,
    centred: bool = True,
    random_state: int | np.random.SeedSequence | Randomness | None = None,
    n_jobs: int | None = None,
    budget: Account | None = None,
) -> BoxRun:
    """Minimise a Lipschitz loss over a box privately: average `draws` perturbed optima and add Laplace noise.

    Args:
        objective: the total loss `L(D, ·)`, in the form that the oracle takes: `PiecewiseLinear`, `Objective`, ...
        box: public bounds, `[(low, high), ...]`, one pair per coordinate.
        lipschitz: G; the loss of every record that could ever occur changes by at most `G·‖x-y‖₁` between x and y.
        n: number of records, which is public. Under `adjacency="add-remove"` a public stand-in: it sets the noise rate
            and the accuracy, not the privacy.
        epsilon: privacy budget of this release.
        delta: probability with which the privacy may fail; choose it far below `1/n`.
        draws: number of oracle calls. `draws_needed` says how many suffice, `plan_opsamp` what to expect of them.
            None takes the published number with the published calibration.
        oracle: any object with `minimise(objective, box, eta)` and a stated additive `tolerance` in the total loss; see
            `privsolve.continuous.oracles`. Its answer must depend on the data and `eta` alone.
        adjacency: `"replace"` (one record changed, n is public) or `"add-remove"`.
        calibration: `"proved"`, or `"published"` for the constants of the paper (warns, not proved).
        sigma: rate of the objective noise; chosen for accuracy if None. Private whatever it is, if public.
        grid: step of the public grid on which the result lies; fine enough not to matter if None.
        centred: subtract the mean from the objective noise, which costs no privacy. Not done when published.
        random_state: None for the operating system's entropy; a seed makes the run repeatable, for testing only.
        n_jobs: for joblib; None is one job, or what `joblib.parallel_config` says, for instance a Dask cluster. The
            result does not depend on it.
        budget: an `Accountant` or a `Ledger` that pays for the release, or refuses it, before the noise is drawn.

    Guarantee:
        The point is `(epsilon, delta)`-DP under the stated adjacency (theory, section 5), convex or not, provided that
        the losses are `lipschitz` in ℓ1 and that every answer of the oracle is within its stated error: the stability
        lemma bounds the expected distance of answers on neighbouring data, a Chernoff bound that of their averages but
        for probability `delta`, and discrete Laplace noise on the grid covers it. Rounding of the noise, of the mean and
        to the grid is included. Running time, failures, worker traffic and the diagnostics are not covered (section
        7). Retrying after an error draws fresh noise, which voids the guarantee if the error depended on the data.
        `calibration="published"` is not proved.
    """
    start = time.perf_counter()
    the_box = as_box(box)
    lipschitz, n = check_positive("lipschitz", lipschitz), check_count("n", n)
    _check_objective(objective, the_box, lipschitz, n, adjacency)
    error = _stated_error(oracle, the_box, lipschitz, n)
    rng = as_randomness(random_state)
    plan = plan_opsamp(
        n, the_box.widths, lipschitz, epsilon, delta, draws, error=error, adjacency=adjacency, calibration=calibration,
        centred=centred, sigma=sigma, grid=grid,
    )  # fmt: skip
    if plan.draws * the_box.dim > LARGEST_NOISE:
        raise ValueError(f"draws must be at most {LARGEST_NOISE // the_box.dim:,} on this box, got {plan.draws:,}")
    _check_jobs(n_jobs)
    if not plan.proved:
        message = "calibration='published' has no valid proof (theory, section 5): for reproducing the paper only"
        warnings.warn(message, PrivacyWarning, stacklevel=2)
    prepare: Callable[[Any, Box], Any] | None = getattr(oracle, "prepare", None)
    prepared = objective if prepare is None else prepare(objective, the_box)
    guarantee = Guarantee(
        profile_of(plan.epsilon, plan.delta), Adjacency.of(adjacency), "OPSamp",
        "discrete Laplace noise on the average of perturbed optima", theory="5", oracle=_oracle_name(oracle),
        proof=Proof.COMPLETE if plan.proved else Proof.NONE, seeded=rng.is_seeded,
    )  # fmt: skip
    with charged(budget, guarantee):
        # all objective noise is drawn here, so that the result does not depend on who solves what
        etas = exponential_noise(rng, plan.sigma, (plan.draws, the_box.dim), centred=plan.centred)
        batches = np.array_split(etas, min(plan.draws, BATCHES))
        try:
            answers = Parallel(n_jobs=n_jobs)(delayed(_answers)(oracle, prepared, the_box, part) for part in batches)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted while solving: nothing was released") from None
        points = np.concatenate([part for part, _ in answers])
        gap = max(g for _, g in answers)
        _check_answers(points, gap, the_box, plan.draws, error)
        steps = noisy_steps(points, the_box, plan, rng)
    setting = {
        "n": plan.n, "lipschitz": plan.lipschitz, "draws": plan.draws, "sigma": plan.sigma,
        "sensitivity": plan.sensitivity, "oracle_error": plan.error, "centred": plan.centred,
    }  # fmt: skip
    release = BoxRelease(tuple(int(k) for k in steps), the_box, plan.grid, setting, guarantee)
    seconds = time.perf_counter() - start
    return BoxRun(release, plan, BoxDiagnostics(seconds, gap, points.mean(axis=0), points.std(axis=0), points))


def exponential_noise(rng: Randomness, sigma: float, shape: tuple[int, int], *, centred: bool = True) -> Floats:
    """Independent exponential noise of *rate* `sigma`, minus its mean `1/sigma` if centred.

    `-ln(u)` of a uniform with full relative precision: its absolute error is below `2^-41/sigma` everywhere, which the
    calibration includes (`stability.NOISE_ERROR`).
    """
    standard = -np.log(rng.uniform(shape[0] * shape[1])).reshape(shape)
    return np.asarray((standard - 1.0 if centred else standard) / sigma)


def noisy_steps(points: Floats, box: Box, plan: SamplingPlan, rng: Randomness) -> Ints:
    """The mean of the points, rounded to the grid, with discrete Laplace noise, clipped to the grid's ends.

    Rounding moves two means that are λ apart to at most `λ/g + d` steps from each other; clipping is post-processing.
    """
    offsets = points - box.corner
    mean = np.array([fsum(column) / len(points) for column in offsets.T])
    noise = discrete_laplace(rng, plan.scale_steps, box.dim)
    rounded = np.rint(mean / plan.grid).astype(np.int64)
    return np.asarray(np.clip(rounded + noise, 0, _top_steps(box, plan.grid)), dtype=np.int64)


def _top_steps(box: Box, grid: float) -> list[int]:
    return [floor(width / grid) for width in box.widths]


def _answers(oracle: BoxOracle, prepared: Any, box: Box, etas: Floats) -> tuple[Floats, float]:
    """Points (rows) for a batch of noise vectors, and the largest gap; runs on a worker."""
    many: Callable[[Any, Box, Floats], tuple[Floats, float]] | None = getattr(oracle, "minimise_many", None)
    if many is not None:
        points, gap = many(prepared, box, etas)
        return np.asarray(points, dtype=np.float64), float(gap)
    solutions = [oracle.minimise(prepared, box, eta) for eta in etas]
    points = np.array([np.asarray(s.point, dtype=np.float64) for s in solutions])
    return points, float(np.max([s.gap for s in solutions]))  # of all, so that a nan is seen


def _check_objective(objective: Any, box: Box, lipschitz: float, n: int, adjacency: str) -> None:
    """What can be refused before any work: an objective that says it is something else."""
    if (dim := getattr(objective, "dim", box.dim)) != box.dim:
        raise ValueError(f"box has {box.dim} coordinates but the objective has {dim}")
    if (stated := getattr(objective, "lipschitz", None)) is not None and stated > lipschitz:
        raise ValueError(f"lipschitz must be at least {stated:g}, which is that of the objective, got {lipschitz:g}")
    records = getattr(objective, "n", None)
    if adjacency == "replace" and records is not None and records != n:
        raise ValueError(f"n must be the objective's number of records, {records}, for adjacency='replace', got {n}")


def _stated_error(oracle: Any, box: Box, lipschitz: float, n: int) -> float:
    if not callable(getattr(oracle, "minimise", None)):
        raise ValueError(f"oracle must have a method minimise(objective, box, eta), got {oracle!r}")
    state: Callable[[Box, float, int], float] | None = getattr(oracle, "stated_error", None)
    if state is None and not hasattr(oracle, "tolerance"):
        raise ValueError(f"oracle {_oracle_name(oracle)!r} must state its additive error as `tolerance`")
    return check_error("oracle's tolerance", oracle.tolerance if state is None else state(box, lipschitz, n))


def _check_jobs(n_jobs: int | None) -> None:
    """What joblib would refuse only after the budget is spent."""
    whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and not (whole and 0 < abs(n_jobs) <= MOST_JOBS):
        raise ValueError(f"n_jobs must be None or a whole number up to {MOST_JOBS} (-1: all cores), got {n_jobs!r}")


def _oracle_name(oracle: Any) -> str:
    return str(getattr(oracle, "name", type(oracle).__name__))


def _check_answers(points: Floats, gap: float, box: Box, draws: int, error: float) -> None:
    if points.shape != (draws, box.dim) or not box.contains(points):
        raise OracleNotCertified("the oracle returned points outside the box: nothing is released")
    if not gap <= error:
        raise OracleNotCertified(
            f"the oracle left a gap of {gap:.3g}, more than the error of {error:.3g} that it stated: nothing is released; "
            "give it more work on the same noise"
        )


def _fields(text: str) -> dict[str, Any]:
    """The fields of a release file, or what is wrong with it."""
    try:
        content = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"not a release file: it is not JSON ({error})") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"not a release file: expected a JSON object with format {FORMAT!r}")
    if wrong := FIELDS ^ set(content):
        raise ValueError(f"the release file has missing or unknown fields: {', '.join(sorted(wrong))}")
    if not isinstance(content["version"], str):
        raise ValueError(f"the release file's version must be a text, got {content['version']!r}")
    return content
