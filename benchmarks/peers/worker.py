"""Runs in a competitor's own environment: reads jobs from standard input, one JSON per line, and answers each with one.

`python -m peers.worker NAME` serves the module `peers.runners.NAME`, which has `fit(data, job)` and `version()`.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
import traceback
import warnings
from types import ModuleType
from typing import Any, TextIO

import numpy as np

from peers.exchange import Exchange
from peers.jobs import Job


def serve(runner: ModuleType, answers: TextIO) -> None:
    """Answer every job; an error is an answer as well."""
    for line in sys.stdin:
        job = Job(**json.loads(line))
        try:
            reply = run(runner, job)
        except Exception as error:
            traceback.print_exc()
            reply = {"status": "error", "note": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(reply | {"version": runner.version()}), file=answers, flush=True)


def run(runner: ModuleType, job: Job) -> dict[str, Any]:
    """Fit, and leave the predictions in the job's file; only the fit is timed."""
    data = Exchange.load(job.exchange)
    reset_peak()
    clock, cpu = time.perf_counter(), time.process_time()
    fitted = runner.fit(data, job)
    spent = {"seconds": time.perf_counter() - clock, "cpu_seconds": time.process_time() - cpu, "memory_mb": peak_mb()}
    labels, scores, risks = fitted.predict()
    found = {"labels": np.asarray(labels).astype(np.int8), "scores": np.asarray(scores, dtype=float)}
    np.savez(job.predictions, **found, **({} if risks is None else {"risks": risks}))
    return {"status": "ok", "numbers": int(fitted.numbers)} | {k: round(v, 3) for k, v in spent.items()} | fitted.notes


def reset_peak() -> None:
    """Let the peak of memory start anew, where the system can."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def peak_mb() -> float:
    """The largest memory of the process since then, the interpreter and its libraries included."""
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    mine = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a competitor prints goes to the log
    warnings.simplefilter("ignore")
    serve(importlib.import_module(f"peers.runners.{sys.argv[1]}"), mine)
