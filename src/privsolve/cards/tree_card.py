"""A released decision tree in every form a person may want it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from privsolve.cards.document import Document, Lines, privacy_blocks, quality_blocks
from privsolve.cards.pages import tree_html
from privsolve.cards.tree_picture import Picture, tree_picture
from privsolve.cards.words import facts_line, privacy_warnings, privacy_words
from privsolve.data.constraints import About
from privsolve.evaluation import Evaluation
from privsolve.evaluation.words import HELP, useless
from privsolve.models.tree import DecisionTree, leaf_paths, tree_sql
from privsolve.notebooks import panel
from privsolve.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class TreeCard:
    """A tree and what is promised for it. It is made from the release alone, so it may be published with it."""

    tree: DecisionTree
    guarantee: Guarantee
    evaluation: Evaluation | None = None
    version: str = ""

    @property
    def _problems(self) -> list[str]:
        """What makes the tree useless, if anything."""
        said = {text for _, text in rules(self.tree)}
        if len(said) == 1:
            return [f"This tree is of no use: it says “{said.pop()}” of everybody. {HELP}"]
        return list(filter(None, [useless(self.evaluation)]))

    @property
    def title(self) -> str:
        """What the tree is about."""
        schema = self.tree.schema
        if self.about.question:
            return self.about.question
        predicted = None if schema is None else schema.predicted
        return "Decision tree" if predicted is None else f"Decision tree: {predicted}"

    @property
    def about(self) -> About:
        """What the schema says of the tree in words."""
        return About() if self.tree.schema is None else self.tree.schema.about

    def to_text(self, width: int = 80) -> str:
        """The tree for a terminal of the given width."""
        return self._document(full=False).to_text(width)

    def to_markdown(self) -> str:
        """The tree as Markdown."""
        return self._document(full=True).to_markdown()

    def _document(self, *, full: bool) -> Document:
        warnings = (*self._problems, *privacy_warnings(self.guarantee))
        privacy = privacy_blocks(self.guarantee, "tree", full=full)
        body = [Lines(self.tree.describe()), *quality_blocks(self.evaluation), *privacy]
        return Document(self.title, warnings, facts_line(self.about), body)

    def to_sql(self, dialect: str = "duckdb") -> str:
        """The prediction as one SQL expression on the columns of a table, with the schema's meaning of every value."""
        return tree_sql(self.tree, dialect)

    def to_html(self, date: str | None = None) -> str:
        """One self-contained page that asks one question at a time, with the whole tree as a picture.

        Args:
            date: the day to print on it, where the schema states none.
        """
        return tree_html(self, self._problems, date)

    def plot(self) -> Picture:
        """The tree as a picture, which notebooks show by themselves."""
        return tree_picture(self.tree)

    def _repr_html_(self) -> str:
        privacy = privacy_words(self.guarantee, "tree")
        notes = [*facts_line(self.about), f"Privacy: {privacy.sentence}"]
        return self.plot().svg + panel(self.title, notes=notes, warnings=(*self._problems, *privacy.warnings))


def rules(tree: DecisionTree) -> Iterator[tuple[str, str]]:
    """One line per leaf: the answers that lead to it, and what it says."""
    return ((path, tree.says(value)) for path, value in leaf_paths(tree))
