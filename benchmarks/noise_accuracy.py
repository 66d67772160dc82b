"""How exact are SciPy's inverse distribution functions, from which the noise is drawn? Measured with 120-digit arithmetic.

Needs SciPy and mpmath only, so it can be run on any version of SciPy in an environment of its own:

    python benchmarks/noise_accuracy.py
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import mpmath
import numpy as np
import scipy
from mpmath import mpf
from scipy import special

SHAPES = (1, 2, 3, 5, 10, 24, 60, 100, 300, 1000, 3001, 10_000, 100_000)
DEEPEST = 200
"""Probabilities are taken down to `2^-200`."""

POINTS = 60


def probabilities() -> list[float]:
    """Half, and numbers spread evenly over the binary exponents below, with random mantissas."""
    draw = random.Random(1)
    deep = [math.ldexp(1 + draw.random(), -2 - int(draw.random() ** 2 * (DEEPEST - 2))) for _ in range(POINTS)]
    return [0.5, 0.5 - 2.0**-53, *deep]


def lower_gamma(shape: int, x: float) -> mpf:
    """The share of a gamma law below x, by its series."""
    term = mpmath.exp(shape * mpmath.log(x) - x - mpmath.loggamma(shape + 1))
    total, n = term, 0
    while term > total * mpf(10) ** -110:
        n += 1
        term *= mpf(x) / (shape + n)
        total += term
    return total


def gamma_density(shape: int, x: float) -> mpf:
    """The density of a gamma law."""
    return mpmath.exp((shape - 1) * mpmath.log(x) - x - mpmath.loggamma(shape))


def relative_error(x: float, reached: mpf, wanted: float, density: mpf) -> float:
    """How far x is from the quantile, relatively: what is missing of the probability, over the density."""
    return abs(float((reached - mpf(wanted)) / (density * mpf(x))))


def gamma_lower(shape: int, p: float) -> float:
    """Of `gammaincinv`."""
    x = float(special.gammaincinv(shape, p))
    return relative_error(x, lower_gamma(shape, x), p, gamma_density(shape, x))


def gamma_upper(shape: int, p: float) -> float:
    """Of `gammainccinv`."""
    x = float(special.gammainccinv(shape, p))
    return relative_error(x, 1 - lower_gamma(shape, x), p, gamma_density(shape, x))


def normal_tail(_: int, p: float) -> float:
    """Of `ndtri` in the lower half."""
    x = float(special.ndtri(p))
    if x == 0.0:
        return 0.0  # p is one half
    return relative_error(x, mpmath.erfc(-mpf(x) / mpmath.sqrt(2)) / 2, p, mpmath.npdf(mpf(x)))


def inverse_erf(_: int, p: float) -> float:
    """Of `erfinv`."""
    x = float(special.erfinv(p))
    return relative_error(x, mpmath.erf(mpf(x)), p, 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-(mpf(x) ** 2)))


def worst(error: Callable[[int, float], float], shape: int) -> str:
    """The largest relative error, as a power of two."""
    largest = max(error(shape, p) for p in probabilities())
    return f"2^{math.log2(largest):.1f}" if largest else "0"


def main() -> None:
    """Print one row per law."""
    mpmath.mp.dps = 120
    print(f"SciPy {scipy.__version__}, NumPy {np.__version__}: largest relative error, {POINTS + 2} points each")
    for shape in SHAPES:
        print(f"gamma({shape:,}): lower half {worst(gamma_lower, shape)}, upper half {worst(gamma_upper, shape)}")
    print(f"ndtri: {worst(normal_tail, 0)}, erfinv: {worst(inverse_erf, 0)}")


if __name__ == "__main__":
    main()
