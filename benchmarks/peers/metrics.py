"""What is measured of predictions on test records."""

from __future__ import annotations

import numpy as np
from sklearn import metrics

CLIP = 1e-6
"""Probabilities are moved this far from 0 and 1 for the log loss, so that one certain mistake does not decide it."""

BINS = 10


def measure(
    labels: np.ndarray, predicted: np.ndarray, scores: np.ndarray, risks: np.ndarray | None
) -> dict[str, float | None]:
    """All figures; those that need a probability are None for models that give none."""
    found = {
        "accuracy": metrics.accuracy_score(labels, predicted),
        "balanced_accuracy": metrics.balanced_accuracy_score(labels, predicted),
        "auc": metrics.roc_auc_score(labels, scores),
        "brier": None,
        "log_loss": None,
        "calibration_error": None,
    }
    if risks is not None:
        found["brier"] = metrics.brier_score_loss(labels, risks)
        found["log_loss"] = metrics.log_loss(labels, np.clip(risks, CLIP, 1 - CLIP))
        found["calibration_error"] = calibration_error(labels, risks)
    return {name: None if value is None else round(float(value), 6) for name, value in found.items()}


def calibration_error(labels: np.ndarray, risks: np.ndarray) -> float:
    """Expected calibration error: mean distance of risk and frequency over ten bins of equal width, weighted by records."""
    places = np.minimum((risks * BINS).astype(int), BINS - 1)
    gaps = np.bincount(places, weights=risks - labels, minlength=BINS)
    return float(np.abs(gaps).sum() / len(labels))
