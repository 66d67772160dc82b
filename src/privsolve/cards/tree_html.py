"""A decision tree as a page: one question at a time, the path so far, and the whole tree as a picture."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from privsolve.cards import words
from privsolve.cards.page import asset, head, json_data, page, privacy_section, warning
from privsolve.cards.quality_html import quality_section
from privsolve.cards.tree_picture import tree_picture
from privsolve.data.about import About
from privsolve.evaluation import Evaluation
from privsolve.models.tree import DecisionTree, Leaf, Node
from privsolve.privacy.guarantee import Guarantee


def tree_html(tree: DecisionTree, guarantee: Guarantee, title: str, evaluation: Evaluation | None = None) -> str:
    """The page; equal trees give equal bytes."""
    privacy = tree_privacy(guarantee)
    about = About() if tree.schema is None else tree.schema.about
    body = [
        "<main>",
        *head(title, words.facts(about), words.badge(guarantee)),
        *(warning(text) for text in privacy.warnings),
        f'<p class="rule screen">Answer the questions one by one: at most {tree.depth}.</p>',
        '<section class="panel asking screen" id="asking" aria-live="polite">',
        '<p class="quiet" id="step"></p>',
        '<p class="question" id="question"></p>',
        '<div class="buttons"><button type="button" id="yes">Yes</button><button type="button" id="no">No</button></div>',
        '<p class="says" id="says" hidden></p>',
        '<ol class="path" id="path"></ol>',
        '<div class="buttons"><button type="button" id="back">Back</button>'
        '<button type="button" id="over">Start over</button><button type="button" id="print">Print</button></div>',
        '<noscript><p class="warning">Without JavaScript nothing is asked: follow the picture below.</p></noscript>',
        "</section>",
        "<section>",
        "<h2>The whole tree</h2>",
        f'<div class="wide picture">{tree_picture(tree, style="").svg}</div>',
        "</section>",
        *quality_section(evaluation),
        privacy_section(privacy, about.link),
        "</main>",
        json_data("tree", _data(tree, tree.root)),
    ]
    return page(title, "\n".join(body), f"{asset('tree.css')}\n{asset('quality.css')}", asset("tree.js"))


def tree_privacy(guarantee: Guarantee) -> words.PrivacyWords:
    """What is promised, in the words of a tree."""
    said = words.privacy_words(guarantee)
    return replace(
        said, promised=tuple(map(_of_a_tree, said.promised)), not_promised=tuple(map(_of_a_tree, said.not_promised))
    )


def _of_a_tree(sentence: str) -> str:
    return sentence.replace("The points were", "The tree was").replace("scorecard", "tree")


def _data(tree: DecisionTree, node: Node) -> dict[str, Any]:
    if isinstance(node, Leaf):
        return {"says": tree.leaves.text(node.value)}
    sides = {"y": _data(tree, node.yes), "n": _data(tree, node.no)}
    return {"asks": f"{tree.features[node.question]}?", **sides}
