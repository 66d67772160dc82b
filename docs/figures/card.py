"""The picture of a card on the front page: a private scorecard of made-up hospital records, as its page shows it.

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

PEOPLE = 5000
HERE = Path(__file__).parent
BARS = 140
"""What the window has beside the page, in pixels."""


def records() -> pd.DataFrame:
    """What is known of patients who leave a hospital, and whether they came back within 30 days."""
    rng = np.random.default_rng(1)
    age, stays, drugs = rng.integers(18, 95, PEOPLE), rng.poisson(0.8, PEOPLE), rng.poisson(6, PEOPLE)
    unit = rng.choice(["surgery", "medicine", "cardiology", "other"], PEOPLE)
    alone, smokes = rng.choice(["no", "yes"], PEOPLE, p=[0.7, 0.3]), rng.choice(["no", "yes"], PEOPLE, p=[0.8, 0.2])
    odds = 0.02 * (age - 60) + 0.7 * stays + 0.12 * (drugs - 6) + 0.5 * (alone == "yes") + 0.3 * (smokes == "yes")
    odds += np.select([unit == "cardiology", unit == "surgery"], [0.6, -0.4], 0.0) - 2.6
    back = np.where(rng.random(PEOPLE) < 1 / (1 + np.exp(-odds)), "yes", "no")
    return pd.DataFrame(
        {"age": age, "stays": stays, "drugs": drugs, "unit": unit, "alone": alone, "smokes": smokes, "back": back}
    )


def schema() -> ps.Schema:
    """What is public about the records."""
    about = ps.About(
        subject="patient",
        question="Will the patient come back within 30 days?",
        positive="comes back",
        negative="stays at home",
        owner="Example Hospital",
        data="made-up records",
        date="2026",
    )
    columns = [
        ps.Bins("age", [40, 60, 75], "thresholds", whole=True),
        ps.Bins("stays", [1, 2, 3], "thresholds", whole=True),
        ps.Bins("drugs", [4, 7, 10], "thresholds", whole=True),
        ps.Categories("unit", ["medicine", "surgery", "cardiology"], other="other"),
        ps.Categories("alone", ["yes"], no="no"),
        ps.Categories("smokes", ["yes"], no="no"),
    ]
    return ps.Schema(columns, ps.Label("back", "yes", "no"), about=about)


def picture(html: str, name: str, height: int) -> None:
    """Open a page, answer all of its questions, take a picture."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars", "--force-device-scale-factor=1"):
        options.add_argument(argument)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "card.html"
        page.write_text(html, encoding="utf-8")
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        try:
            driver.set_window_size(1000, height + BARS)
            driver.get(page.as_uri())
            for question in driver.find_elements(By.CSS_SELECTOR, "fieldset"):
                question.find_elements(By.CSS_SELECTOR, "input[type=radio]")[1].click()
            driver.execute_script("window.scrollTo(0, 0)")
            driver.save_screenshot(str(HERE / name))
        finally:
            driver.quit()


def main() -> None:
    """A full scorecard at ε = 1."""
    table = records()
    model = ps.PrivateScorecard(1.0, schema=schema()).fit(table.drop(columns="back"), table["back"])
    picture(model.scorecard_.to_html(), "card.png", 900)


if __name__ == "__main__":
    main()
