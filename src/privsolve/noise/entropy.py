"""Where the random bits come from: uniform words, and uniforms and integers of full precision made from them.

A plain 53-bit uniform has bounded support: noise made from it would turn a pure guarantee into one with a delta. Uniforms here
have full *relative* precision, so that far tails are really reached (theory, section 6).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from hashlib import shake_256
from numbers import Integral
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from privsolve.arrays import Floats, Words
from privsolve.errors import PrivsolveError

_BLOCK = 1024  # words fetched from the operating system at a time
_MANTISSA_BITS = 52
_EXPONENT_BITS = 64 - _MANTISSA_BITS
_SMALLEST_EXPONENT = -1022  # of a normal float64


class _SystemWords(threading.local):
    """Operating system entropy, buffered in blocks.

    No word may ever be used twice, so a buffer is not shared with another thread (`threading.local`), with
    a forked process (the pid is checked) or with a copy (pickling and copying give an empty buffer).
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._buffer: Words = np.empty(0, dtype=np.uint64)

    def __call__(self, size: int) -> Words:
        if self._pid != os.getpid() or self._buffer.size < size:
            self._pid = os.getpid()
            self._buffer = np.frombuffer(os.urandom(8 * (size + _BLOCK)), dtype=np.uint64)
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    def __reduce__(self) -> tuple[type[_SystemWords], tuple[()]]:
        return _SystemWords, ()


class _ExpandedWords:
    """The words that a secret key of 32 bytes is expanded to: SHAKE-256 of the key and a counter (theory, section 18.2)."""

    def __init__(self, key: bytes) -> None:
        self._key, self._owner = key, (os.getpid(), threading.get_ident())
        self._blocks = 0
        self._buffer: Words = np.empty(0, dtype=np.uint64)

    def __call__(self, size: int) -> Words:
        if self._owner != (os.getpid(), threading.get_ident()):
            raise PrivsolveError("the words of a sealed run belong to the thread that opened it: draw there")
        parts = [self._buffer]
        while sum(map(len, parts)) < size:
            counter, self._blocks = self._blocks.to_bytes(8), self._blocks + 1
            block = shake_256(b"privsolve words" + self._key + counter).digest(8 * _BLOCK)
            parts.append(np.frombuffer(block, dtype="<u8").astype(np.uint64))
        whole = np.concatenate(parts)
        taken, self._buffer = whole[:size], whole[size:]
        return taken

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("the words of a sealed run cannot be copied: two copies would draw the same ones")


class Randomness:
    """A stream of independent uniform 64-bit words, and the elementary draws made from it.

    `Randomness.system()` is for releases. `Randomness.seeded(seed)` is for tests and experiments: whoever
    knows the seed knows the noise, so a guarantee must say that it was used (theory, section 6).
    """

    def __init__(self, draw: Callable[[int], Words], *, seeded: bool) -> None:
        self._draw = draw
        self._seeded = seeded

    @classmethod
    def system(cls) -> Randomness:
        """Randomness from the operating system's entropy."""
        return cls(_SystemWords(), seeded=False)

    @classmethod
    def seeded(cls, seed: int | np.random.SeedSequence) -> Randomness:
        """Reproducible randomness, for tests and experiments only."""
        return cls(np.random.PCG64(seed).random_raw, seeded=True)

    @classmethod
    def expanded(cls, key: bytes) -> Randomness:
        """Randomness from a secret key of 32 bytes, for runs that are resumed (theory, section 18)."""
        return cls(_ExpandedWords(key), seeded=False)

    @property
    def is_seeded(self) -> bool:
        """Whether the draws can be reproduced from a seed."""
        return self._seeded

    def __repr__(self) -> str:
        return f"Randomness(seeded={self._seeded})"

    def words(self, size: int) -> Words:
        """`size` independent uniform 64-bit words."""
        return self._draw(size)

    def uniform(self, size: int) -> Floats:
        """Uniforms on (0, 1) of full relative precision: never 0, never 1 or more.

        The binary exponent is geometric and the 52 bits of the mantissa are uniform, which is the law of a
        real uniform rounded down to a float64. One word serves both, but for one draw in 4096.
        """
        words = self.words(size)
        mantissa = 1.0 + (words & np.uint64(2**_MANTISSA_BITS - 1)) * 2.0**-_MANTISSA_BITS
        exponents = self._exponents(words >> np.uint64(_MANTISSA_BITS))
        return np.asarray(np.ldexp(mantissa, exponents), dtype=np.float64)

    def _exponents(self, head: Words) -> npt.NDArray[np.int32]:
        """-1 - (number of zero bits before the first one bit), with new words while all bits are zero."""
        # frexp(x)[1] is the bit length of an integer x < 2^53, and 0 at x = 0.
        exponents = np.frexp(head.astype(np.float64))[1] - (_EXPONENT_BITS + 1)
        open_ended = np.flatnonzero(head == 0)
        exponents[open_ended] += 1  # so far _EXPONENT_BITS zeros and no one bit
        while open_ended.size:
            head = self.words(open_ended.size) >> np.uint64(_EXPONENT_BITS)
            exponents[open_ended] += np.frexp(head.astype(np.float64))[1] - (_MANTISSA_BITS + (head != 0))
            # Below the smallest normal float (probability 2^-1022) the exponent is cut off.
            open_ended = open_ended[(head == 0) & (exponents[open_ended] > _SMALLEST_EXPONENT)]
        return np.asarray(np.maximum(exponents, _SMALLEST_EXPONENT), dtype=np.int32)

    def complement(self, uniforms: Floats) -> Floats:
        """`1 - u` of full relative precision, for uniforms of at least 1/2, which are known to `2^-53` only.

        `u` is a real uniform rounded down to a multiple of `2^-53`; what was cut off is uniform and drawn now.
        """
        steps = (1.0 - uniforms) * 2.0**53  # whole numbers of at least 1, exactly
        return np.asarray((steps - 1.0 + self.uniform(uniforms.size).reshape(uniforms.shape)) * 2.0**-53)

    def sign(self, size: int) -> Floats:
        """Independent fair signs, -1.0 or 1.0 (64 to a word)."""
        bits = np.unpackbits(self.words(-(-size // 64)).view(np.uint8), count=size)
        return 2.0 * bits.astype(np.float64) - 1.0

    def integer_below(self, n: int) -> int:
        """A uniform integer in `range(n)`, exact for an `n` of any size (by rejection)."""
        if n < 1:
            raise ValueError(f"n must be at least 1, got {n}")
        bits = (n - 1).bit_length()
        size = -(-bits // 64)
        while True:
            candidate = int.from_bytes(self.words(size).tobytes(), "little") >> (64 * size - bits)
            if candidate < n:
                return candidate

    def integers_below(self, n: int, size: int) -> npt.NDArray[np.int64]:
        """Independent uniform integers in `range(n)`, exact for an `n` of at most `2^62` (by rejection)."""
        if not 1 <= n <= 2**62:
            raise ValueError(f"n must be at least 1 and at most 2^62, got {n}")
        shift = np.uint64(64 - max(1, (n - 1).bit_length()))
        found = np.empty(0, dtype=np.int64)
        while len(found) < size:
            candidates = (self.words(size - len(found)) >> shift).astype(np.int64)
            found = np.concatenate([found, candidates[candidates < n]])
        return found


def as_randomness(random_state: int | np.random.SeedSequence | Randomness | None) -> Randomness:
    """None gives the operating system's entropy, a seed gives seeded randomness, a Randomness is kept."""
    if random_state is None:
        return Randomness.system()
    if isinstance(random_state, Randomness):
        return random_state
    if isinstance(random_state, np.random.SeedSequence):
        return Randomness.seeded(random_state)
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state must not be negative, got {random_state}")
        return Randomness.seeded(int(random_state))
    raise TypeError(
        "random_state must be None (operating system entropy, for releases), an int, a "
        f"numpy.random.SeedSequence or a Randomness, not {type(random_state).__name__}"
    )
