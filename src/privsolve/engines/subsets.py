"""Sets as bits: rows, 64 to a word, the columns of a cell, and inclusion-exclusion over subsets (the Möbius transform).

The *moment* of a set of columns is a sum over the rows that have all of them, the *cell* of a set the sum over the rows that
have exactly these of the columns at hand. Bit i of an index is column i.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privsolve.compiled import compiled, helper, inlined, overload


def bit_sets(members: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Each row of zeros and ones as words of 64 bits."""
    packed = np.packbits(members, axis=1, bitorder="little")
    whole = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    whole[:, : packed.shape[1]] = packed
    return whole.view(np.uint64)


def ones_in(word):
    """The number of ones in a word of 64 bits; one instruction in compiled code."""
    return int(word).bit_count()


def lowest_one(word):
    """The position of the lowest one of a word that is not 0; one instruction in compiled code."""
    return (int(word) & -int(word)).bit_length() - 1


@overload(ones_in)
def _ones_in_compiled(word):
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def counted(context: Any, word: Any) -> Any:
        return types.int64(types.uint64), lambda context, builder, signature, args: builder.ctpop(args[0])

    return lambda word: counted(word)  # type: ignore[call-arg]


@overload(lowest_one)
def _lowest_one_compiled(word):
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def lowest(context: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.cttz(args[0], context.get_constant(types.boolean, True))

        return types.int64(types.uint64), generate

    return lambda word: lowest(word)  # type: ignore[call-arg]


@helper
def ones(c):
    """Number of columns in cell c."""
    count = 0
    while c:
        c &= c - 1
        count += 1
    return count


@inlined
def invert(moments, n_cells):
    """Moments to cells in place, one column at a time; a constant number of cells becomes straight vector code."""
    half = 1
    while half < n_cells:
        for block in range(0, n_cells, 2 * half):
            for c in range(block, block + half):
                moments[c] -= moments[c + half]
        half *= 2


@compiled
def invert_rows(rows):
    """The same for many sets of cells side by side: `rows[c]` holds cell c of each."""
    half = 1
    while half < len(rows):
        for c in range(len(rows)):
            if c & half == 0:
                without, having = rows[c], rows[c + half]
                for k in range(len(without)):
                    without[k] -= having[k]
        half *= 2
