"""Types of arrays, under one name each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Int64Array = NDArray[np.int64]
IntArray = NDArray[np.integer[Any]]
Words = NDArray[np.uint64]
