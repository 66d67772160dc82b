"""Processes that start quickly: forks of one server, which has imported and compiled what they need.

There is one server for all tests of a process, so what it prepares is said here alone.
"""

from __future__ import annotations

import multiprocessing
import os
import sys

os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # where the server looks for the modules that it imports
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["prepared_server"])
