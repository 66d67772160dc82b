"""Noise laws as values: what is drawn, how long it gets, which scale a shift asks for, and what that gives.

Every law is drawn by inverse CDF from uniforms of full *relative* precision, with a random sign or a random choice of tail. The
far tails are therefore really reached, and the error of a draw is relative to its size (theory, section 6).

A law is a class with a `name`. To add one, write a class and enter it in the `laws` of a geometry (`Sphere`, `Separators`): its
scale, privacy, utility bound and audit follow from what the class says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np
from scipy.special import erfinv, gammainccinv, gammaincinv, ndtri

from privsolve.arrays import Floats
from privsolve.checks import check_count, check_positive
from privsolve.noise.accuracy import check_scipy
from privsolve.noise.entropy import Randomness
from privsolve.privacy import calibration
from privsolve.privacy.guarantee import Proof

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
    check_scipy()
    u = 0.5 * rng.uniform(size)
    draws = np.where(rng.sign(size) < 0, gammaincinv(shape, u), gammainccinv(shape, u))
    return np.asarray(scale * draws, dtype=np.float64)


@dataclass(frozen=True)
class Shift:
    """How far noise must be able to move: lengths of the vectors `v_w` of the perturbation lemma (theory, section 1).

    `published` is the deviation that the paper gives the Gaussian law for `(epsilon, delta)` here, without a valid proof.
    """

    dim: int
    l1: float
    l2: float
    linf: float
    published: Callable[[float, float], float] | None = None


@dataclass(frozen=True)
class NoiseLaw(ABC):
    """A law on `R^dim` with a scale.

    Class attributes: `name`, the word in guarantees; `option`, the word that asks for it (the name unless given); `norm`,
    the one in which a pure law pays for the length of a shift; `needs_delta`; `proof`, how far the proof of the scale
    reaches: nowhere unless the class says so.
    """

    dim: int
    scale: float

    name: ClassVar[str]
    option: ClassVar[str]
    norm: ClassVar[str] = "l2"
    needs_delta: ClassVar[bool] = False
    proof: ClassVar[Proof] = Proof.NONE

    def __post_init__(self) -> None:
        check_count("dim", self.dim)
        check_positive("scale", self.scale, bounded=False)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "option" not in vars(cls) and "name" in vars(cls):
            cls.option = cls.name

    @classmethod
    def scale_for(cls, shift: Shift, epsilon: float, delta: float) -> float:
        """The scale at which moving the noise by the shift costs `epsilon` and `delta`: `‖v‖/ε` for pure laws (section 1)."""
        return float(getattr(shift, cls.norm)) / epsilon

    @abstractmethod
    def draws(self, rng: Randomness, count: int) -> Floats:
        """`count` independent noise vectors as rows."""

    def draw(self, rng: Randomness) -> Floats:
        """One noise vector."""
        return np.asarray(self.draws(rng, 1)[0])

    def l1_quantile(self, beta: float) -> float:
        """A length that `‖η‖₁` exceeds with probability at most `beta`: `√dim` times that of `‖η‖₂`, unless more is known."""
        return sqrt(self.dim) * self.l2_quantile(beta)

    @abstractmethod
    def l2_quantile(self, beta: float) -> float:
        """A length that `‖η‖₂` exceeds with probability at most `beta`."""


@dataclass(frozen=True)
class L2Gamma(NoiseLaw):
    """Density proportional to `exp(-‖η‖₂/scale)`: pure privacy at scale `‖v‖₂/ε` (theory, sections 1 and 2.1)."""

    name: ClassVar[str] = "l2-gamma"
    option: ClassVar[str] = "gamma"
    proof: ClassVar[Proof] = Proof.COMPLETE

    def draws(self, rng: Randomness, count: int) -> Floats:
        """A uniform direction times a gamma length."""
        rows = directions(rng, self.dim, count)
        return gamma(rng, self.dim, self.scale, count)[:, None] * rows

    def l2_quantile(self, beta: float) -> float:
        """That of a gamma law of shape `dim`, exactly."""
        return calibration.gamma_length(self.dim, self.scale, beta)


@dataclass(frozen=True)
class LinfGamma(NoiseLaw):
    """Density proportional to `exp(-‖η‖_∞/scale)`: pure privacy at scale `‖v‖_∞/ε` (theory, sections 1 and 3)."""

    name: ClassVar[str] = "linf-gamma"
    norm: ClassVar[str] = "linf"
    proof: ClassVar[Proof] = Proof.COMPLETE

    def draws(self, rng: Randomness, count: int) -> Floats:
        """A uniform point of the cube times a gamma length."""
        size = self.dim * count
        cube = (rng.sign(size) * rng.uniform(size)).reshape(count, self.dim)
        return gamma(rng, self.dim + 1, self.scale, count)[:, None] * cube

    def l1_quantile(self, beta: float) -> float:
        """`dim` times a bound on `‖η‖_∞`."""
        return self.dim * self._largest(beta)

    def l2_quantile(self, beta: float) -> float:
        """`√dim` times a bound on `‖η‖_∞`."""
        return sqrt(self.dim) * self._largest(beta)

    def _largest(self, beta: float) -> float:
        """`‖η‖_∞` is at most the gamma length of shape `dim + 1` that multiplies the point of the cube."""
        return calibration.gamma_length(self.dim + 1, self.scale, beta)


@dataclass(frozen=True)
class Laplace(NoiseLaw):
    """Independent Laplace coordinates: pure privacy at scale `‖v‖₁/ε` (theory, sections 1 and 3)."""

    name: ClassVar[str] = "laplace"
    norm: ClassVar[str] = "l1"
    proof: ClassVar[Proof] = Proof.COMPLETE

    def draws(self, rng: Randomness, count: int) -> Floats:
        """Coordinate by coordinate."""
        size = count * self.dim
        return (-self.scale * rng.sign(size) * np.log(rng.uniform(size))).reshape(count, self.dim)

    def l1_quantile(self, beta: float) -> float:
        """That of a gamma law of shape `dim`, exactly."""
        return calibration.gamma_length(self.dim, self.scale, beta)

    def l2_quantile(self, beta: float) -> float:
        """At most that of `‖η‖₁`."""
        return self.l1_quantile(beta)


@dataclass(frozen=True)
class Gaussian(NoiseLaw):
    """Independent normal coordinates with the deviation that section 1 proves for `(ε, δ)` in this dimension."""

    name: ClassVar[str] = "gaussian"
    proof: ClassVar[Proof] = Proof.COMPLETE
    needs_delta: ClassVar[bool] = True

    @classmethod
    def scale_for(cls, shift: Shift, epsilon: float, delta: float) -> float:
        """The smallest proved σ for `‖v‖₂`."""
        return calibration.gaussian_sigma(shift.dim, shift.l2, epsilon, delta)

    def draws(self, rng: Randomness, count: int) -> Floats:
        """Coordinate by coordinate."""
        return self.scale * standard_normal(rng, self.dim * count).reshape(count, self.dim)

    def l2_quantile(self, beta: float) -> float:
        """That of σχ, exactly."""
        return calibration.gaussian_length(self.dim, self.scale, beta)


@dataclass(frozen=True)
class PublishedGaussian(Gaussian):
    """The Gaussian law at the published scale, which has no valid proof: for reproducing the paper."""

    name: ClassVar[str] = "gaussian-published"
    proof: ClassVar[Proof] = Proof.NONE

    @classmethod
    def scale_for(cls, shift: Shift, epsilon: float, delta: float) -> float:
        """The published σ, where one was published."""
        if shift.published is None:
            raise ValueError(f"noise={cls.option!r} was not published for this mechanism: use noise='gaussian'")
        return shift.published(epsilon, delta)
