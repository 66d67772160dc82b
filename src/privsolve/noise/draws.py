"""Draws of one number or vector at a time from uniform words: the algorithms behind the continuous laws (theory, section 6).

Every law is drawn by inverse CDF from uniforms of full *relative* precision, with a random sign or a random choice
of tail. The far tails are therefore really reached, and the error of a draw is relative to its size.
"""

from __future__ import annotations

import numpy as np
from scipy.special import erfinv, gammainccinv, gammaincinv, ndtri

from privsolve.arrays import Floats
from privsolve.checks import check_above_zero
from privsolve.noise.accuracy import check_scipy
from privsolve.noise.entropy import Randomness

__all__ = [
    "directions",
    "gamma",
    "gaussian",
    "l2_gamma",
    "laplace",
    "linf_gamma",
    "standard_normal",
]


SHORT = 0.25  # the length below which a normal vector is drawn with more bits


def standard_normal(rng: Randomness, size: int) -> Floats:
    """Independent N(0, 1): a random sign, and the modulus from its survival function.

    The error is relative to `max(|z|, 1)`: near 0 it is absolute, as suits noise that is added up.
    """
    check_scipy()
    return np.asarray(-rng.sign(size) * ndtri(0.5 * rng.uniform(size)), dtype=np.float64)


def directions(rng: Randomness, dim: int, count: int) -> Floats:
    """Independent uniform unit vectors as rows: normal vectors over their lengths, with an error of about `2^-50`.

    A normal vector much shorter than 1 must be known relative to its length, so more bits are drawn for it. That
    happens to one vector in 33 for `dim = 2` and hardly ever for more. Taking another vector instead would not be
    exact: which ones are too short would be decided by rounded lengths.
    """
    check_scipy()
    signs = rng.sign(count * dim).reshape(count, dim)
    u = rng.uniform(count * dim).reshape(count, dim)
    modulus = -ndtri(0.5 * u)
    short = np.linalg.norm(modulus, axis=1) < SHORT
    if short.any():  # every |z| is below 1/4, so every u is above 0.8
        exact = erfinv(rng.complement(u[short]))
        modulus[short] = exact / exact.max(axis=1, keepdims=True)  # its squares could underflow
    return np.asarray(signs * modulus / np.linalg.norm(modulus, axis=1, keepdims=True))


def gamma(rng: Randomness, shape: float, scale: float, size: int) -> Floats:
    """Independent Gamma(shape, scale): a fair choice between the two halves, each drawn from its own tail."""
    check_above_zero("shape", shape)
    check_above_zero("scale", scale)
    check_scipy()
    u = 0.5 * rng.uniform(size)
    draws = np.where(rng.sign(size) < 0, gammaincinv(shape, u), gammainccinv(shape, u))
    return np.asarray(scale * draws, dtype=np.float64)


def laplace(rng: Randomness, scale: float, size: int) -> Floats:
    """Independent Laplace noise, density proportional to `exp(-|x|/scale)`."""
    check_above_zero("scale", scale)
    return -scale * rng.sign(size) * np.log(rng.uniform(size))


def l2_gamma(rng: Randomness, dim: int, scale: float, count: int | None = None) -> Floats:
    """A vector with density proportional to `exp(-|x|_2/scale)` on R^dim, or `count` as rows (theory, section 2.1)."""
    _check_dim(dim)
    rows = directions(rng, dim, count or 1)
    return _one_or_all(gamma(rng, dim, scale, count or 1)[:, None] * rows, count)


def linf_gamma(rng: Randomness, dim: int, scale: float, count: int | None = None) -> Floats:
    """A vector with density proportional to `exp(-|x|_inf/scale)` on R^dim, or `count` as rows (theory, section 3)."""
    _check_dim(dim)
    size = dim * (count or 1)
    cube = (rng.sign(size) * rng.uniform(size)).reshape(-1, dim)
    return _one_or_all(gamma(rng, dim + 1, scale, count or 1)[:, None] * cube, count)


def gaussian(rng: Randomness, dim: int, sigma: float, count: int | None = None) -> Floats:
    """A vector of N(0, sigma^2 I) on R^dim, or `count` as rows (theory, section 2.2)."""
    _check_dim(dim)
    check_above_zero("sigma", sigma)
    return _one_or_all(sigma * standard_normal(rng, dim * (count or 1)).reshape(-1, dim), count)


def _one_or_all(rows: Floats, count: int | None) -> Floats:
    return rows[0] if count is None else rows


def _check_dim(dim: int) -> None:
    if dim < 1:
        raise ValueError(f"dim must be at least 1, got {dim}")
