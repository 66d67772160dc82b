"""HiGHS, an open mixed-integer solver, as SciPy brings it."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Thread
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from privsolve.arrays import Int64Array
from privsolve.engines.coordinates.minimise import POLL_SECONDS
from privsolve.oracles.catalogue import TRUSTED, Solver
from privsolve.oracles.mip import End, MipOracle, Model, Outcome, Watch
from privsolve.problems.perturbation import UNIT

ENDS = {0: End.DONE, 1: End.TIME_LIMIT}
"""By the status of `scipy.optimize.milp`; every other one is a failure."""


@dataclass(frozen=True)
class HighsOracle(MipOracle):
    """Minimum within the tolerance by HiGHS, trusting its dual bound.

    SciPy's interface has no number of threads, no start and no news of the search. An interrupt is heard at once (SciPy 1.15 or
    later); the search itself then ends with the process or at its time limit.
    """

    about: ClassVar[Solver] = Solver("highs", "MIT", TRUSTED, "part of SciPy", "scipy.optimize", "scipy")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threads is not None:
            raise ValueError("threads must be None for oracle 'highs': SciPy does not let it be chosen")

    def _solve(self, solver: ModuleType, model: Model, start: Int64Array, watch: Watch) -> Outcome:
        matrix, low, high = model.big_m()
        options: dict[str, Any] = {"mip_rel_gap": self.tolerance / 2 / max(model.largest / UNIT, 1.0)}
        if watch.left is not None:
            options["time_limit"] = watch.left
        found: list[Any] = []

        def search() -> None:
            try:
                found.append(
                    solver.milp(
                        model.cost / UNIT,
                        integrality=np.ones(model.columns),
                        bounds=solver.Bounds(model.low, model.high),
                        constraints=solver.LinearConstraint(matrix, low, high),
                        options=options,
                    )
                )
            except Exception as error:
                found.append(error)

        thread = Thread(target=search, daemon=True)  # so that Ctrl-C is heard: SciPy lets other threads run
        thread.start()
        while thread.is_alive():
            thread.join(POLL_SECONDS)
        (result,) = found
        if isinstance(result, Exception):
            raise result
        bound = result.mip_dual_bound
        return Outcome(
            ENDS.get(result.status, End.FAILED),
            result.x,
            None if bound is None else self._lower(bound),
            int(result.mip_node_count or 0),
        )
