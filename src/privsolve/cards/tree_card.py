"""A released decision tree in every form a person may want it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from privsolve.cards.markdown import escape as markdown
from privsolve.cards.markdown import privacy_markdown
from privsolve.cards.pages import tree_html
from privsolve.cards.tree_picture import Picture, tree_picture
from privsolve.cards.words import facts_line, privacy_words
from privsolve.evaluation import Evaluation
from privsolve.evaluation.words import HELP, quality_lines, quality_markdown, useless
from privsolve.models.tree import DecisionTree, Leaf, Node, Split, leaf_paths
from privsolve.models.tree_sql import tree_sql
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
        if schema is not None and schema.about.question:
            return schema.about.question
        predicted = None if schema is None else schema.predicted
        return "Decision tree" if predicted is None else f"Decision tree: {predicted}"

    @property
    def _facts(self) -> list[str]:
        return [] if self.tree.schema is None else facts_line(self.tree.schema.about)

    def to_text(self, width: int = 80) -> str:
        """The tree for a terminal of the given width."""
        privacy = privacy_words(self.guarantee, "tree")
        parts = [f"WARNING: {warning}" for warning in (*self._problems, *privacy.warnings)]
        wrapped = [line for part in parts for line in textwrap.wrap(part, width)]
        sentence = textwrap.wrap(f"Privacy: {privacy.sentence}", width)
        quality = [line for part in quality_lines(self.evaluation) for line in textwrap.wrap(part, width) or [""]]
        return "\n".join([*wrapped, self.title, *self._facts, "", self.tree.describe(), *quality, "", *sentence]) + "\n"

    def to_markdown(self) -> str:
        """The tree as a nested list."""
        privacy = privacy_words(self.guarantee, "tree")
        lines = [f"## {markdown(self.title)}", ""]
        lines += [part for line in self._facts for part in (markdown(line), "")]
        for warning in (*self._problems, *privacy.warnings):
            lines += [f"> **Warning:** {markdown(warning)}", ""]
        lines += [*_items(self.tree, self.tree.root, 0), "", *quality_markdown(self.evaluation, markdown)]
        return "\n".join([*lines, *privacy_markdown(privacy)]) + "\n"

    def to_sql(self, dialect: str = "duckdb") -> str:
        """The prediction as one SQL expression on the columns of a table, with the schema's meaning of every value."""
        return tree_sql(self.tree, dialect)

    def to_html(self, date: str | None = None) -> str:
        """One self-contained page that asks one question at a time, with the whole tree as a picture.

        Args:
            date: the day to print on it, where the schema states none.
        """
        return tree_html(self.tree, self.guarantee, self.title, self.evaluation, self._problems, date, self.version)

    def plot(self) -> Picture:
        """The tree as a picture, which notebooks show by themselves."""
        return tree_picture(self.tree)

    def _repr_html_(self) -> str:
        privacy = privacy_words(self.guarantee, "tree")
        notes = [*self._facts, f"Privacy: {privacy.sentence}"]
        return self.plot().svg + panel(self.title, notes=notes, warnings=(*self._problems, *privacy.warnings))


def rules(tree: DecisionTree) -> Iterator[tuple[str, str]]:
    """One line per leaf: the answers that lead to it, and what it says."""
    return ((path, tree.says(value)) for path, value in leaf_paths(tree))


def _items(tree: DecisionTree, node: Node, level: int) -> Iterator[str]:
    if isinstance(node, Leaf):
        yield f"- **{markdown(tree.says(node.value))}**"
        return
    for child, word in ((node.yes, "yes"), (node.no, "no")):
        ending = "" if isinstance(child, Split) else f" → **{markdown(tree.says(child.value))}**"
        yield f"{'  ' * level}- {markdown(tree.features[node.question])}: {word}{ending}"
        if isinstance(child, Split):
            yield from _items(tree, child, level + 1)
