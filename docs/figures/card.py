"""The picture of a card on the front page: a private card of made-up screening records, as its page shows it.

    python docs/figures/card.py      # needs chromium and chromedriver; writes docs/figures/card.png

The records are made up, so that any draw may be shown; the noise is fresh each time.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from selenium import webdriver
from selenium.webdriver.common.by import By

import privsolve as ps

PEOPLE = 3000
HERE = Path(__file__).parent
BARS = 140
"""What the window has beside the page, in pixels."""


def records() -> pd.DataFrame:
    """Age and two scores of a form, and whether the mass was malignant."""
    rng = np.random.default_rng(1)
    age, shape, margin = rng.integers(20, 90, PEOPLE), rng.integers(1, 5, PEOPLE), rng.integers(1, 6, PEOPLE)
    chance = 1 / (1 + np.exp(6.5 - 0.04 * age - 0.5 * shape - 0.7 * margin))
    malignant = np.where(rng.random(PEOPLE) < chance, "yes", "no")
    return pd.DataFrame({"age": age, "shape": shape, "margin": margin, "malignant": malignant})


def card() -> ps.Scorecard:
    """A risk score at ε = 1."""
    about = ps.About(
        subject="mass", question="Is the mass malignant?", positive="malignant", negative="benign",
        owner="Example Hospital", data="made-up records", date="2026",
    )  # fmt: skip
    columns = [
        ps.Bins("age", [35, 50, 65], whole=True),
        ps.Bins("shape", [2, 3, 4], whole=True),
        ps.Bins("margin", [2, 3, 4, 5], whole=True),
    ]
    schema = ps.Schema(columns, ps.Label("malignant", "yes", "no"), about=about)
    table = records()
    model = ps.PrivateShortCard(1.0, objective="risk", max_features=4, schema=schema)
    return model.fit(table.drop(columns="malignant"), table["malignant"]).scorecard_


def main() -> None:
    """Fit, open the page, answer all questions, take the picture."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars", "--force-device-scale-factor=1"):
        options.add_argument(argument)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "card.html"
        page.write_text(card().to_html(), encoding="utf-8")
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        try:
            driver.set_window_size(1000, 590 + BARS)
            driver.get(page.as_uri())
            for question in driver.find_elements(By.CSS_SELECTOR, "fieldset")[:3]:
                question.find_elements(By.CSS_SELECTOR, "input[type=radio]")[-1].click()
            driver.save_screenshot(str(HERE / "card.png"))
        finally:
            driver.quit()


if __name__ == "__main__":
    main()
