"""A real browser for tests: headless Chromium that opens local files, and what can go wrong on a page."""

from __future__ import annotations

import base64
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHROMEDRIVER = shutil.which("chromedriver")

# quiet, and with no reason to go online
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
)

# elements whose text or controls stick out of the window, and neighbours in the flow of the page that overlap
LAYOUT_PROBLEMS = """
const problems = [];
const wide = document.documentElement.scrollWidth;
if (wide > innerWidth) problems.push(`the page is ${wide} px wide in a window of ${innerWidth} px`);
const shown = (e) => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== "hidden";
for (const e of document.querySelectorAll("body *")) {
  if (!shown(e) || e.closest(".wide")) continue;
  const box = e.getBoundingClientRect();
  if (box.right > innerWidth + 1 || box.left < -1) problems.push(`${e.tagName}.${e.className} leaves the window`);
}
const inFlow = (e) => {
  const style = getComputedStyle(e);
  return ["static", "relative"].includes(style.position) && style.display !== "inline" && style.float === "none";
};
for (const parent of document.querySelectorAll("main, section, form, fieldset, fieldset *, aside, table")) {
  const boxes = [...parent.children]
    .filter((e) => shown(e) && inFlow(e))
    .map((e) => [e, e.getBoundingClientRect()]);
  boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
    const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
    const down = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
    if (across > 1 && down > 1) problems.push(`${a.tagName}.${a.className} and ${b.tagName}.${b.className} overlap`);
  }));
}
return problems;
"""


@dataclass(frozen=True)
class Browser:
    """One Chromium window, driven by selenium; `driver` is there for what has no method."""

    driver: webdriver.Chrome

    def open(self, file: Path, width: int = 1200, height: int = 900) -> None:
        """Open a local file in a window of the given inner size."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.get(file.resolve().as_uri())

    def media(self, name: str, dark: bool = False) -> None:
        """Show the page as on "print" or "screen", in light or dark colours."""
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": name, "features": [feature]})

    def run(self, script: str, *arguments: object) -> Any:
        """The value of a script that ends in `return`."""
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str) -> list[Any]:
        """The elements that match a CSS selector."""
        return list(self.driver.find_elements("css selector", selector))

    def click(self, element: Any) -> None:
        """Click an element with the mouse, scrolled to the middle as a person would do under a sticky bar."""
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()
        self.settle()

    def press(self, keys: str) -> None:
        """Type into what has the focus."""
        self.driver.switch_to.active_element.send_keys(keys)
        self.settle()

    def settle(self) -> None:
        """Wait until the page has done what it has put off: two frames, and the timers that were due before them."""
        self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 5)))"
        )

    def text(self, selector: str) -> str:
        """The visible text of the first element that matches."""
        return str(self.driver.find_element("css selector", selector).text)

    def errors(self) -> list[str]:
        """What the console has complained about since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self) -> list[str]:
        """Addresses that the page has loaded beside itself."""
        return list(self.run("return performance.getEntriesByType('resource').map((entry) => entry.name)"))

    def layout_problems(self) -> list[str]:
        """What sticks out of the window or overlaps."""
        return list(self.run(LAYOUT_PROBLEMS))

    def screenshot(self, file: Path) -> None:
        """A picture of the whole page."""
        picture = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
        file.write_bytes(base64.b64decode(picture["data"]))


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser with an empty profile; the test is skipped where there is none."""
    if CHROMIUM is None or CHROMEDRIVER is None:
        pytest.skip(
            f"{'chromium' if CHROMIUM is None else 'chromedriver'} is not installed: apt install chromium-driver"
        )
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for argument in (*ARGUMENTS, f"--user-data-dir={profile}"):
            options.add_argument(argument)
        # the path of the driver is given, so selenium does not look for one online
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=CHROMEDRIVER))
        try:
            yield Browser(driver)
        finally:
            driver.quit()


@pytest.fixture(scope="module", name="browser")
def browser_fixture() -> Iterator[Browser]:
    """One browser for the tests of a module: `from browser import browser_fixture  # noqa: F401`."""
    with chromium() as browser:
        yield browser
