"""Sets as bits: rows, 64 to a word, and the columns of a cell."""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from privsolve.compiled import helper


def bit_sets(members: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Each row of zeros and ones as words of 64 bits."""
    packed = np.packbits(members, axis=1, bitorder="little")
    whole = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    whole[:, : packed.shape[1]] = packed
    return whole.view(np.uint64)


def _count(context: Any, word: Any) -> Any:
    return types.int64(types.uint64), lambda context, builder, signature, args: builder.ctpop(args[0])


def _lowest(context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], context.get_constant(types.boolean, True))

    return types.int64(types.uint64), generate


_ones_in: Any = intrinsic(_count)
_lowest_one: Any = intrinsic(_lowest)


def ones_in(word):
    """The number of ones in a word of 64 bits; one instruction in compiled code."""
    return int(word).bit_count()


def lowest_one(word):
    """The position of the lowest one of a word that is not 0; one instruction in compiled code."""
    return (int(word) & -int(word)).bit_length() - 1


@overload(ones_in)
def _ones_in_compiled(word):
    return lambda word: _ones_in(word)


@overload(lowest_one)
def _lowest_one_compiled(word):
    return lambda word: _lowest_one(word)


@helper
def ones(c):
    """Number of columns in cell c."""
    count = 0
    while c:
        c &= c - 1
        count += 1
    return count
