"""OPSamp's calibration (theory, section 5): how far one record can move the average of oracle answers.

Notation of the theory: `change` is H, how Lipschitz the difference of two neighbouring losses is in ℓ1; `error` is A,
the oracle's additive error in the unnormalised objective; `widths` are the side lengths of the box; `sigma` is the
*rate* of the exponential noise; `draws` is m. Nothing here looks at data, so all of it may be used to plan ahead.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from math import ceil, exp, floor, frexp, fsum, inf, log, log1p, nextafter, sqrt

from scipy.optimize import minimize_scalar

from privsolve.checks import check_between, check_choice, check_count, check_items, check_positive
from privsolve.noise.discrete import LARGEST_SCALE
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.calibration import check_beta, check_delta, check_epsilon, gamma_length, smallest

NOISE_ERROR = 2.0**-40
"""Absolute error of the computed noise in units of `1/σ`: no uniform is below 2^-1022, so `ln(1/u) <= 709`."""

MEAN_ERROR = 2.0**-40
"""Absolute error of the computed mean of points in units of the box."""

GRID_SHARE = 128
"""The default grid is so fine that rounding to it adds at most one part in this many to the sensitivity."""

_KL_ALLOWANCE = 1e-9
_MANY_DRAWS = 10**12


def loss_change(lipschitz: float, adjacency: Adjacency | str) -> float:
    """H: `2G` if one record is replaced, `G` if one is added or removed (section 0)."""
    return Adjacency.of(adjacency).range_factor * check_positive("lipschitz", lipschitz)


def stability(sigma: float, widths: Sequence[float], change: float, error: float = 0.0) -> float:
    """`s = 2a + 2·sqrt(a(a+3b))`, `a = Hσ(Σ sqrt(w_i))²`, `b = A/H`: the stability lemma of section 5.

    The expected ℓ1 distance of the oracle's answers on neighbouring data, under the same noise, is at most this.
    """
    a = change * sigma * fsum(sqrt(w) for w in widths) ** 2
    b = error / change
    return 2 * a + 2 * sqrt(a * (a + 3 * b))


def kl(q: float, p: float) -> float:
    """The divergence `q ln(q/p) + (1-q) ln((1-q)/(1-p))` of two coins."""
    first = q * log1p((q - p) / p) if q > 0 else 0.0
    second = (1 - q) * log1p((p - q) / (1 - p)) if q < 1 else 0.0
    return first + second


def kl_inverse(p: float, x: float) -> float:
    """`max{q : kl(q‖p) <= x}`: the upper end of a tight bracket, so never below the true value."""
    if not 0 <= p <= 1:
        raise ValueError(f"p must lie between 0 and 1, got {p}")
    if not x >= 0:
        raise ValueError(f"x must not be negative, got {x}")
    target = x * (1 + _KL_ALLOWANCE) + 1e-15
    if p in (0.0, 1.0) or target >= -log(p):
        return p if p == 0.0 else 1.0
    return smallest(lambda q: kl(q, p) > target, p, 1.0)


def sensitivity(mean_distance: float, diameter: float, draws: int, delta: float) -> float:
    """`λ = D₁·kl⁻¹(min(s, D₁)/D₁, ln(1/δ)/m)` (section 5).

    With probability `1 - delta` over the noise, the averages of `draws` answers on neighbouring data are at most this
    far apart in ℓ1.
    """
    if mean_distance >= diameter:
        return diameter
    return min(diameter, nextafter(diameter * kl_inverse(mean_distance / diameter, -log(delta) / draws), inf))


def published_draws(n: int, widths: Sequence[float], epsilon: float, delta: float) -> int:
    """`m = ln(2d/δ)/(2γ²)` with `γ = sqrt(ε/n)·d^(5/4)·sqrt(D₂)`, as published (Algorithm 2). NOT PROVED."""
    return ceil(log(2 * len(widths) / delta) / (2 * _published_gamma(n, widths, epsilon) ** 2))


def published_sigma(n: int, widths: Sequence[float], lipschitz: float, epsilon: float, *, beta: float = 0.05) -> float:
    """`σ = sqrt(D₂·sqrt(2d)·ε / (250·G²d²D∞²(1+ln(2/β))n))`, as published, read as a rate. NOT PROVED."""
    d, diameter = len(widths), sqrt(fsum(w * w for w in widths))
    below = 250 * lipschitz**2 * d**2 * max(widths) ** 2 * (1 + log(2 / beta)) * n
    return sqrt(diameter * sqrt(2 * d) * epsilon / below)


def published_sensitivity(
    n: int, widths: Sequence[float], lipschitz: float, epsilon: float, sigma: float, *, error: float = 0.0
) -> float:
    """`λ = 4D∞γ + 250σG d²D∞² + α/(10G)`, `α = A/n`, as published. NOT PROVED: see section 5 for what is wrong."""
    d, widest = len(widths), max(widths)
    spread = 250 * sigma * lipschitz * d**2 * widest**2
    return 4 * widest * _published_gamma(n, widths, epsilon) + spread + error / n / (10 * lipschitz)


def _published_gamma(n: int, widths: Sequence[float], epsilon: float) -> float:
    return float(sqrt(epsilon / n) * len(widths) ** 1.25 * fsum(w * w for w in widths) ** 0.25)


class Calibration(StrEnum):
    """Where OPSamp's constants come from."""

    PROVED = "proved"
    """The lemmas of section 5."""

    PUBLISHED = "published"
    """The paper, for reproducing it: not proved, and refuted on narrow boxes."""


@dataclass(frozen=True)
class SamplingNoise:
    """How OPSamp's noise is calibrated. All of it is public, and with the proved calibration any choice is private.

    Args:
        calibration: `"proved"`, or `"published"` for the constants of the paper (warns, not proved).
        sigma: rate of the objective noise; chosen to minimise the bound on the excess loss if None.
        grid: step of the public grid on which the result lies; fine enough not to matter if None.
        centred: subtract the mean from the objective noise, which costs no privacy. Not done when published.
    """

    calibration: Calibration = Calibration.PROVED
    sigma: float | None = None
    grid: float | None = None
    centred: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "calibration", check_choice("calibration", self.calibration, Calibration))
        for name in ("sigma", "grid"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, check_positive(name, value))
        if not isinstance(self.centred, bool):
            raise ValueError(f"centred must be True or False, got {reprlib.repr(self.centred)}")


@dataclass(frozen=True)
class SamplingPlan:
    """Everything OPSamp will use, and the error to expect. All of it is public.

    `sigma` is the rate of the objective noise and `sensitivity` the λ that is proved for the average of `draws`
    answers. Noise is drawn on a grid of step `grid`, where one record moves the rounded average by at most
    `sensitivity_steps` steps in total. `excess` bounds the expected excess mean loss of a *convex* problem; without
    convexity only the privacy holds.
    """

    n: int
    widths: tuple[float, ...]
    lipschitz: float
    epsilon: float
    delta: float
    draws: int
    adjacency: str
    error: float
    centred: bool
    proved: bool
    sigma: float = 0.0
    stability: float = 0.0
    sensitivity: float = 0.0
    grid: float = 0.0

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.widths)

    @property
    def diameter(self) -> float:
        """ℓ1 diameter D₁ of the box."""
        return fsum(self.widths)

    @property
    def sensitivity_steps(self) -> int:
        """`λ + d·g` in grid steps, rounded down: distances on the grid are whole numbers (section 5)."""
        exact = Fraction(self.sensitivity) + Fraction(MEAN_ERROR) * Fraction(self.diameter)
        return floor(exact / Fraction(self.grid)) + self.dim

    @property
    def scale_steps(self) -> Fraction:
        """Scale of the discrete Laplace noise, in grid steps."""
        return Fraction(self.sensitivity_steps) / Fraction(self.epsilon)

    @property
    def noise_scale(self) -> float:
        """Scale of the Laplace noise per coordinate, in the units of the box."""
        return float(self.scale_steps) * self.grid

    @property
    def solver_error(self) -> float:
        """A with the floating point error of the noise included: it moves any two objectives apart by `|η̂-η|·D₁`."""
        return self.error + NOISE_ERROR * self.diameter / self.sigma

    @property
    def bias(self) -> float:
        """`D₁/(nσ)`, divided by e for centred noise: what the noise adds to the mean loss, for convex losses (section 5)."""
        return (exp(-1) if self.centred else 1.0) * self.diameter / (self.n * self.sigma)

    @property
    def excess(self) -> float:
        """Bound on the expected excess of the mean loss, for convex losses (section 5, "Accuracy").

        `G·d·λ/ε + D₁/(nσ) + A/n`, with the sensitivity `λ + d·g` on the grid, whose rounding costs at most `g` more per
        coordinate; never more than `G·D₁`.
        """
        lam = self.sensitivity_steps * self.grid if self.grid else self.sensitivity
        bound = self.lipschitz * self.dim * (lam / self.epsilon + self.grid) + self.bias + self.error / self.n
        return min(bound, self.lipschitz * self.diameter) if self.grid else bound

    def at_rate(self, sigma: float) -> SamplingPlan:
        """The same with this rate of the objective noise, and the bounds that are proved for it."""
        there = replace(self, sigma=sigma)
        change = loss_change(self.lipschitz, self.adjacency)
        bound = stability(sigma, self.widths, change, there.solver_error)
        return replace(there, stability=bound, sensitivity=sensitivity(bound, self.diameter, self.draws, self.delta))

    def utility_bound(self, beta: float = 0.05) -> float:
        """For convex losses the excess of the mean loss is at most this with probability `1 - beta` (section 5.1).

        In the paper's words: OPSamp is an `(alpha, beta)`-minimizer with this `alpha`.

        Example:
            >>> from privsolve.continuous.stability import plan_opsamp
            >>> plan = plan_opsamp(10**6, [1.0], 1.0, epsilon=1.0, delta=1e-6, draws=70_000)
            >>> plan.excess < plan.utility_bound(0.05) < 3 * plan.excess
            True
        """
        beta, largest = check_beta(beta), self.lipschitz * self.diameter
        noise = gamma_length(self.dim, float(self.scale_steps), beta / 2) + 2 * self.dim
        moved = noise * self.grid + MEAN_ERROR * self.diameter
        mean = self.bias + self.solver_error / self.n
        average = largest * kl_inverse(min(1.0, mean / largest), log(2 / beta) / self.draws)
        return min(largest, self.lipschitz * moved + average)

    def __str__(self) -> str:
        return (
            f"OPSamp, n = {self.n:,}, d = {self.dim}, epsilon = {self.epsilon:g}, delta = {self.delta:.3g}, "
            f"{self.draws:,} oracle calls: Laplace noise of scale {self.noise_scale:.4g} per coordinate; expected "
            f"excess mean loss at most {self.excess:.4g} if the loss is convex (trivial bound "
            f"{self.lipschitz * self.diameter:.4g})" + ("" if self.proved else "; NOT PROVED")
        )


def plan_opsamp(
    n: int,
    widths: Sequence[float],
    lipschitz: float,
    epsilon: float,
    delta: float,
    draws: int | None,
    *,
    error: float = 0.0,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    noise: SamplingNoise | None = None,
) -> SamplingPlan:
    """What OPSamp would do, and how well, before anything is spent: no data are involved.

    Args:
        n: number of records, public (under `adjacency="add-remove"` a public stand-in).
        widths: side lengths of the box.
        lipschitz: G, how fast the loss of one record can change in ℓ1.
        epsilon: privacy budget.
        delta: probability with which the privacy may fail.
        draws: oracle calls m; `draws_needed` says how many suffice. May be None for the published calibration, which
            prescribes it.
        error: the oracle's additive error A in the total loss.
        adjacency: `"replace"` or `"add-remove"`.
        noise: how the noise is calibrated, if not by default.
    """
    n = check_count("n", n)
    wanted = "be a list of positive numbers, one per coordinate"
    sides = tuple(check_positive("widths", w) for w in check_items("widths", widths, wanted))
    if not sides:
        raise ValueError("widths must hold one positive number per coordinate, got none")
    lipschitz, epsilon, delta = check_positive("lipschitz", lipschitz), check_epsilon(epsilon), check_delta(delta)
    error, noise = check_between("error", error, 0), noise or SamplingNoise()
    adjacency, proved = Adjacency.of(adjacency), noise.calibration is Calibration.PROVED
    if not proved and adjacency is not Adjacency.REPLACE:
        raise ValueError("adjacency must be 'replace' for the published calibration, which is stated for it only")
    if proved and draws is None:
        raise ValueError("draws must be given: it is your budget of oracle calls, see draws_needed")
    fewest = 1 if proved else published_draws(n, sides, epsilon, delta)
    m = fewest if draws is None else check_count("draws", draws)
    if m < fewest:
        raise ValueError(f"draws must be at least {fewest} for the published calibration, got {m}")
    given = n, sides, lipschitz, epsilon
    plan = SamplingPlan(*given, delta, m, adjacency, error, noise.centred and proved, proved)
    if proved:
        plan = plan.at_rate(noise.sigma or _best_sigma(plan))
    else:
        plan = plan.at_rate(noise.sigma or published_sigma(*given))
        plan = replace(plan, sensitivity=published_sensitivity(*given, plan.sigma, error=error))
    # by default the largest power of two that is at most λ/(128·d)
    step = noise.grid or 2.0 ** (frexp(plan.sensitivity / (GRID_SHARE * plan.dim))[1] - 1)
    if step > min(sides):
        raise ValueError(f"grid must be at most the smallest width of the box, {min(sides):g}, got {step:g}")
    plan = replace(plan, grid=step)
    if plan.scale_steps > LARGEST_SCALE:
        raise ValueError(f"grid={step:g} is too fine for epsilon={epsilon:g}: use a coarser grid")
    return plan


def draws_needed(
    n: int,
    widths: Sequence[float],
    lipschitz: float,
    epsilon: float,
    delta: float,
    *,
    slack: float = 0.25,
    error: float = 0.0,
    adjacency: Adjacency | str = Adjacency.REPLACE,
    centred: bool = True,
) -> int:
    """The fewest oracle calls whose bound on the excess loss is within `1 + slack` of that of unlimited calls."""
    slack = check_positive("slack", slack)

    def excess(draws: int) -> float:
        noise = SamplingNoise(centred=centred)
        given = n, widths, lipschitz, epsilon, delta, draws
        return plan_opsamp(*given, error=error, adjacency=adjacency, noise=noise).excess

    target = (1 + slack) * excess(_MANY_DRAWS)
    high = 1  # the bound falls with the number of calls: bisect to about one part in a hundred
    while excess(high) > target:
        high *= 2
    low = high // 2
    while high - low > 1 + high // 100:
        middle = (low + high) // 2
        low, high = (low, middle) if excess(middle) <= target else (middle, high)
    return high


def _best_sigma(plan: SamplingPlan) -> float:
    """The σ of the smallest bound on the excess loss. A choice of accuracy only: privacy holds for every σ."""
    change = loss_change(plan.lipschitz, plan.adjacency)

    def excess(log_sigma: float) -> float:
        return plan.at_rate(exp(log_sigma)).excess

    # beyond the upper end λ is the whole box; below the lower end the bias bound is
    root = fsum(sqrt(w) for w in plan.widths)
    upper = log(plan.diameter**2 / (4 * plan.diameter + 12 * plan.error / change) / (change * root**2))
    lower = min(log(1e-3 / (plan.n * plan.lipschitz)), upper - 1.0)
    steps = 64
    points = [lower + (upper - lower) * k / steps for k in range(steps + 1)]
    best = min(range(steps + 1), key=lambda k: excess(points[k]))
    bounds = points[max(best - 1, 0)], points[min(best + 1, steps)]
    return exp(float(minimize_scalar(excess, bounds=bounds, method="bounded", options={"xatol": 1e-4}).x))
