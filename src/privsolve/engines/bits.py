"""Sets of rows as bits: 64 to a word, counted by one instruction."""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray


def bit_sets(members: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Each row of zeros and ones as words of 64 bits."""
    packed = np.packbits(members, axis=1, bitorder="little")
    whole = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    whole[:, : packed.shape[1]] = packed
    return whole.view(np.uint64)


@intrinsic
def _count_ones(typing_context, word):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


ones_in: Any = _count_ones
"""The number of ones in a word of 64 bits, in compiled code."""
