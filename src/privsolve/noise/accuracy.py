"""Whether this SciPy is as exact as the proofs assume: a few values, compared once with 120-digit arithmetic.

`benchmarks/noise_accuracy.py` measures many more; docs/theory/06-randomness.md says what it found and on which versions.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import scipy
from scipy import special

from privsolve.errors import PrivsolveError

LOWER, UPPER = 2.0**-46, 2.0**-48
"""Relative errors that are allowed for: below the median of a gamma law, and everywhere else."""


class Value(NamedTuple):
    """What `scipy.special.<function>(*arguments)` must be, up to a relative error."""

    function: str
    arguments: tuple[float, ...]
    exact: float
    allowed: float


VALUES = (
    Value("gammaincinv", (1, 0.25), 0.2876820724517809, LOWER),
    Value("gammaincinv", (2, 2.0**-40), 1.348699758678785e-06, LOWER),
    Value("gammaincinv", (24, 2.0**-100), 0.558165775312536, LOWER),
    Value("gammaincinv", (1000, 2.0**-60), 747.3246245099959, LOWER),
    Value("gammaincinv", (3001, 0.25), 2963.871073867383, LOWER),
    Value("gammainccinv", (1, 0.25), 1.3862943611198906, UPPER),
    Value("gammainccinv", (2, 2.0**-40), 31.197784880036405, UPPER),
    Value("gammainccinv", (24, 2.0**-100), 129.82303325776059, UPPER),
    Value("gammainccinv", (1000, 2.0**-60), 1303.2776811369906, UPPER),
    Value("gammainccinv", (3001, 0.25), 3037.7655604491047, UPPER),
    Value("ndtri", (0.375,), -0.31863936396437514, UPPER),
    Value("ndtri", (2.0**-30,), -6.009353565530744, UPPER),
    Value("ndtri", (2.0**-101,), -11.544294491872357, UPPER),
    Value("erfinv", (0.125,), 0.11123545184094996, UPPER),
    Value("erfinv", (2.0**-60,), 7.686793263128236e-19, UPPER),
    Value("erfinv", (2.0**-300,), 4.35057080851103e-91, UPPER),
    Value("expit", (0.5,), 0.6224593312018546, UPPER),
    Value("expit", (-3.25,), 0.03732688734412946, UPPER),
    Value("expit", (17.0,), 0.9999999586006245, UPPER),
    Value("expit", (-30.0,), 9.357622968839299e-14, UPPER),
)


class InexactNoise(PrivsolveError):
    """The installed SciPy computes noise less exactly than the proofs assume: none is drawn from it."""


@cache
def check_scipy() -> None:
    """Raise `InexactNoise` if SciPy misses one of the values; called before a release with such noise is paid for."""
    for value in VALUES:
        found = float(getattr(special, value.function)(*value.arguments))
        if not abs(found - value.exact) <= value.allowed * abs(value.exact):
            raise InexactNoise(
                f"SciPy {scipy.__version__} gives {value.function}{value.arguments} = {found!r} instead of "
                f"{value.exact!r}: noise drawn with it would not be that of the proof. Nothing was drawn; install "
                "another version of SciPy (1.11.0 and 1.17.1 are known to be exact enough)"
            )
