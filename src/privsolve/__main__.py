"""`python -m privsolve` is the command line."""

from privsolve.cli import run

run()
