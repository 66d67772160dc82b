"""What every command shares: the consoles, and errors in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.markup import escape

import privsolve as ps

console = Console()
errors = Console(stderr=True)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Wrong input and failed runs end in one line that says what to do, not in a traceback."""
    try:
        yield
    except (ValueError, TypeError, OSError, ps.PrivsolveError) as error:
        errors.print(f"[bold red]error:[/bold red] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        errors.print("[bold red]interrupted:[/bold red] nothing was released", soft_wrap=True)
        raise typer.Exit(130) from None
