"""The card of a release: the one place that knows which model has which."""

from __future__ import annotations

from privsolve.cards.scorecard import Published, Scorecard
from privsolve.cards.tree_card import TreeCard
from privsolve.models.linear import LinearRule
from privsolve.models.tree import DecisionTree

ModelCard = Scorecard | TreeCard


def has_card(release: Published) -> bool:
    """Whether there is a card of the release's model."""
    return isinstance(release.model, DecisionTree | LinearRule)


def card_of(release: Published) -> ModelCard:
    """The release in the form that people use: a tree card for a decision tree, a scorecard for a linear rule."""
    if isinstance(release.model, DecisionTree):
        return TreeCard(release.model, release.total, release.evaluation, release.version)
    return Scorecard.of(release)
