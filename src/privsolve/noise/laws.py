"""Noise laws as values: what is drawn, how long it gets, which scale a shift asks for, and what that gives.

A law is a class with a `name`. To add one, write a class and offer it to a mechanism in one line (`PerturbedMechanism.offer`):
its scale, privacy and utility bound, and its place in `fit`, `plan` and `audit`, follow from what the class says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from privsolve.arrays import Floats
from privsolve.noise import draws
from privsolve.noise.entropy import Randomness
from privsolve.privacy import calibration
from privsolve.privacy.guarantee import Proof
from privsolve.privacy.profiles import Profile, profile_of


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

    Class attributes: `name`, the word in guarantees; `option`, the word that asks for it (the name unless given);
    `needs_delta`; `proof`, how far the proof of the scale reaches.
    """

    dim: int
    scale: float

    name: ClassVar[str]
    option: ClassVar[str]
    needs_delta: ClassVar[bool] = False
    proof: ClassVar[Proof] = Proof.COMPLETE

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "option" not in vars(cls) and "name" in vars(cls):
            cls.option = cls.name

    @classmethod
    @abstractmethod
    def scale_for(cls, shift: Shift, epsilon: float, delta: float) -> float:
        """The scale at which moving the noise by the shift costs `epsilon` and `delta`."""

    @classmethod
    def profile(cls, epsilon: float, delta: float) -> Profile:
        """What a release with noise of that scale promises."""
        return profile_of(epsilon, delta)

    @abstractmethod
    def draws(self, rng: Randomness, count: int) -> Floats:
        """`count` independent noise vectors as rows."""

    def draw(self, rng: Randomness) -> Floats:
        """One noise vector."""
        return np.asarray(self.draws(rng, 1)[0])

    @abstractmethod
    def l1_quantile(self, beta: float) -> float:
        """A length that `‖η‖₁` exceeds with probability at most `beta`."""

    @abstractmethod
    def l2_quantile(self, beta: float) -> float:
        """A length that `‖η‖₂` exceeds with probability at most `beta`."""


@dataclass(frozen=True)
class L2Gamma(NoiseLaw):
    """Density proportional to `exp(-‖η‖₂/scale)`: pure privacy at scale `‖v‖₂/ε` (theory, sections 1 and 2.1)."""

    name: ClassVar[str] = "l2-gamma"
    option: ClassVar[str] = "gamma"

    @classmethod
    def scale_for(cls, shift: Shift, epsilon: float, delta: float) -> float:
        """`‖v‖₂/ε`."""
        return calibration.gamma_scale(shift.l2, epsilon)

    def draws(self, rng: Randomness, count: int) -> Floats:
        """A uniform direction times a gamma length."""
        return draws.l2_gamma(rng, self.dim, self.scale, count)

    def l1_quantile(self, beta: float) -> float:
        """`√dim` times that of `‖η‖₂`."""
        return sqrt(self.dim) * self.l2_quantile(beta)

    def l2_quantile(self, beta: float) -> float:
        """That of a gamma law of shape `dim`, exactly."""
        return calibration.gamma_length(self.dim, self.scale, beta)


@dataclass(frozen=True)
class LinfGamma(NoiseLaw):
    """Density proportional to `exp(-‖η‖_∞/scale)`: pure privacy at scale `‖v‖_∞/ε` (theory, sections 1 and 3)."""

    name: ClassVar[str] = "linf-gamma"

    @classmethod
    def scale_for(cls, shift: Shift, epsilon: float, delta: float) -> float:
        """`‖v‖_∞/ε`."""
        return calibration.gamma_scale(shift.linf, epsilon)

    def draws(self, rng: Randomness, count: int) -> Floats:
        """A uniform point of the cube times a gamma length."""
        return draws.linf_gamma(rng, self.dim, self.scale, count)

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

    @classmethod
    def scale_for(cls, shift: Shift, epsilon: float, delta: float) -> float:
        """`‖v‖₁/ε`."""
        return calibration.gamma_scale(shift.l1, epsilon)

    def draws(self, rng: Randomness, count: int) -> Floats:
        """Coordinate by coordinate."""
        return draws.laplace(rng, self.scale, count * self.dim).reshape(count, self.dim)

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
    needs_delta: ClassVar[bool] = True

    @classmethod
    def scale_for(cls, shift: Shift, epsilon: float, delta: float) -> float:
        """The smallest proved σ for `‖v‖₂`."""
        return calibration.gaussian_sigma(shift.dim, shift.l2, epsilon, delta)

    def draws(self, rng: Randomness, count: int) -> Floats:
        """Coordinate by coordinate."""
        return draws.gaussian(rng, self.dim, self.scale, count)

    def l1_quantile(self, beta: float) -> float:
        """`√dim` times that of `‖η‖₂`."""
        return sqrt(self.dim) * self.l2_quantile(beta)

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
