"""What a fit has given, in a few lines."""

from __future__ import annotations

from privsolve.cards.words import badge, privacy_warnings
from privsolve.evaluation.words import rare_line, records_in_words, useless
from privsolve.models.linear import decision_words
from privsolve.releases import Release


def summary(release: Release) -> list[str]:
    """What the model is, how good it is, and what it cost; warnings come first."""
    lines = [f"WARNING: {text}" for text in privacy_warnings(release.total)]
    evaluation = release.evaluation
    if evaluation is not None and (bad := useless(evaluation)) is not None:
        lines.append(bad)
    schema = release.schema
    assert schema is not None
    yes, _ = decision_words(schema)
    asked = "1 question" if len(schema.columns) == 1 else f"{len(schema.columns)} questions"
    lines.append(f"Full scorecard for {yes}: {asked}, points for every answer, a risk for every total.")
    if evaluation is not None:
        lines.append(
            f"How good it is, on {records_in_words(evaluation)} that were held out: area under the ROC curve "
            f"{evaluation.auc.percent()}, decisions that are right {evaluation.accuracy.percent()}."
        )
        if (rare := rare_line(evaluation)) is not None:
            lines.append(rare)
    lines.append(f"Privacy of all of it: {badge(release.total)}, {release.total.adjacency.words}.")
    return lines
