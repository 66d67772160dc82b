"""The pictures of `docs/which-model.md`: three models of the same made-up records at ε = 1.

python docs/figures/three_models.py      # needs chromium and chromedriver; writes three pictures beside this file
"""

from __future__ import annotations

from card import picture, records, schema

import privsolve as ps


def main() -> None:
    """Fit each model and take a picture of its page."""
    table = records()
    X, y = table.drop(columns="back"), table["back"]
    models = {
        "full-card.png": (ps.PrivateScorecard(1.0, schema=schema()), 900),
        "short-card.png": (ps.PrivateShortCard(1.0, schema=schema()), 620),
        "tree.png": (ps.PrivateTreeClassifier(epsilon=1.0, depth=3, schema=schema()), 620),
    }
    for name, (model, height) in models.items():
        picture(model.fit(X, y).release_.card().to_html(), name, height)


if __name__ == "__main__":
    main()
