"""Types of arrays, under one name each, and arrays as JSON has them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Int64Array = NDArray[np.int64]
IntArray = NDArray[np.integer[Any]]
Words = NDArray[np.uint64]


def plain(value: Any) -> Any:
    """A value as JSON has it: lists for arrays and tuples."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [plain(entry) for entry in value] if isinstance(value, (tuple, list)) else value
