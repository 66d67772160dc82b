"""`privsolve fit` without a schema: a private draft comes first, and can be resumed on its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape

from privsolve.cli.common import console
from privsolve.cli.drafting import PrivateOptions, Use
from privsolve.cli.engine import engine_at_work
from privsolve.cli.schema import drafted_privately
from privsolve.data import About
from privsolve.data.private import DRAFT_SHARE
from privsolve.safety.signals import Stop

SCHEMA = "schema.toml"
"""The drafted schema in the curator's folder. It may be published: the release holds it too."""


@dataclass(frozen=True)
class DraftFirst:
    """What is said on the command line about a table without a schema."""

    data: str
    header: str | None
    label: str | None
    positive: str | None
    negative: str | None
    leave_out: tuple[str, ...]
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    adjacency: str
    seed: int | None

    def draft(self, place: Path, epsilon: float | None, ledger: Path | None, stop: Stop, resume: bool) -> bool:
        """Draft the schema into its place, unless an interrupted run has done so.

        Args:
            place: of the schema file.
            epsilon: the budget of everything; a public share of it pays for the draft.
            ledger: the ledger file that pays, if there is one.
            stop: from `stoppable`.
            resume: whether an interrupted run goes on.

        Returns:
            Whether the fit after it is to be resumed.

        Raises:
            ValueError: if the label, its positive value or the budget is not stated.
        """
        if self.label is None or self.positive is None:
            raise ValueError(
                "--label and --positive: name the column to predict and its positive value, for example --label died "
                "--positive yes; or give --schema"
            )
        if epsilon is None:
            raise ValueError("--epsilon: state the privacy budget of everything, for example --epsilon 1")
        if place.exists():
            if resume:
                return place.with_name("run.sealed").exists()
            raise ValueError(
                f"{place} is there from an earlier draft of these records, which was paid for: use it with --schema {place}, "
                "or delete it"
            )
        use = Use.of(None, self.leave_out, self.numbers, self.texts, None)
        options = PrivateOptions.of(
            None, epsilon, None, self.positive, self.negative, None, [], use, ".", self.adjacency, ledger, self.seed
        )
        console.print(
            f"Plan: {DRAFT_SHARE:.0%} of epsilon {epsilon:g} drafts a schema; the rest fits the model and "
            "measures it on records that are held out.",
            soft_wrap=True,
        )
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with engine_at_work("reading", self.data):
            found = drafted_privately(self.data, self.header, self.label, options, About(), place, stop, resume)
        for name, reason in found.left_out.items():
            console.print(f"Left out {escape(name)}: {escape(reason)}", soft_wrap=True)
        return False
