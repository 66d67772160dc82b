"""One harness that measures privsolve beside what people would use instead: run as `python -m peers.harness`."""
