"""The documentation site builds without a warning, holds together offline, and its code does what it shows."""

import importlib.util
import inspect
import itertools
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from selenium.webdriver.support.ui import WebDriverWait
from typer.testing import CliRunner

import privsolve as ps
from browser import Browser, browser_fixture  # noqa: F401
from privsolve.cli import app
from privsolve.data.columns import KINDS
from privsolve.safety import sealed

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {page.relative_to(DOCS).as_posix(): page for folder in (DOCS, DOCS / "guides") for page in folder.glob("*.md")}
TOLD = {"paper.md", "guides/solvers.md"}
"""Their code takes minutes, or goes on with a problem of the reader."""
EXECUTED = sorted(n for n, page in PAGES.items() if re.search("^```(python|console)", page.read_text(), re.M))
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$(?:\n\n```\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
LOADING = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
WIDTHS = (1200, 390)
START = ("index", "quickstart", "which-model", "faq", "glossary", "architecture")
GUIDES = ("guides/schema", "guides/budgets", "guides/choosing-a-mechanism")
MORE = ("theory/index", "theory/guarantees", "experiments/audit", "experiments/peers", "reference/mechanisms")


def trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


@pytest.mark.parametrize("name", sorted(set(EXECUTED) - TOLD))
def test_code_prints_what_the_page_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("privsolve.cli.common.console._width", 100)  # it may have been made in a narrower window
    monkeypatch.setattr("privsolve.engines.trees.sampler.cores", lambda: 2)  # on every machine
    keys = defaultdict(
        lambda: itertools.count(1)
    )  # in place of the operating system's entropy: a page passes always or never
    monkeypatch.setattr(sealed.secrets, "token_hex", lambda size=32: f"{next(keys[size]):0{2 * size}x}")
    text = (DOCS / name).read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```python") + text.count("```console") > 0
    scope: dict[str, object] = {"__name__": name}
    if "is made in the [quick start]" in " ".join(text.split()):
        exec(BLOCK.findall((DOCS / "quickstart.md").read_text(encoding="utf-8"))[0][1], {})  # its patients.csv
    for kind, code, shown in blocks:
        if kind == "console":
            check_console(code)
            continue
        exec(compile(code, name, "exec", dont_inherit=True), scope)  # as a reader would run it
        assert trimmed(capsys.readouterr().out) == trimmed(shown)


def check_console(block: str) -> None:
    """Every `$ command` succeeds and prints what follows it; nothing has to follow."""
    for part in filter(None, re.split(r"^\$ ", block.replace("\\\n", ""), flags=re.MULTILINE)):
        command, _, shown = part.partition("\n")
        program, *arguments = shlex.split(command)
        assert program == "privsolve"
        result = CliRunner().invoke(app, arguments, env={"COLUMNS": "100"})
        assert result.exit_code == 0, result.output
        if shown.strip():
            assert trimmed(result.stdout) == trimmed(shown), command


def test_the_schema_file_on_its_page_can_be_read() -> None:
    text = (DOCS / "guides" / "schema.md").read_text(encoding="utf-8")
    schema = ps.Schema.from_toml("\n".join(re.findall(r"^```toml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)))
    assert {column.key for column in schema.columns} == set(KINDS)
    assert schema.about.question


@dataclass
class Html(HTMLParser):
    """What a page links to, loads, and can be linked to."""

    file: Path
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value is not None}
        if "id" in found:
            self.anchors.add(found["id"])
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if LOADING.get(tag) in found and found.get("rel") != "canonical":
            self.loads.append(found[LOADING[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("material") is None or importlib.util.find_spec("mkdocstrings") is None:
        pytest.skip("mkdocs-material is not installed: pip install 'privsolve[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Html]:
    found = {file: Html(file) for file in sorted(site.rglob("*.html")) if file.name != "404.html"}
    sources = [*DOCS.rglob("*.md"), *(ROOT / "examples").rglob("*.py"), ROOT / "CHANGELOG.md"]
    assert len(found) == len(sources)
    return found


def local_targets(page: Html, addresses: list[str]) -> Iterator[tuple[Path, str]]:
    for address in addresses:
        parts = urlsplit(address)
        if parts.scheme in ("", "file"):
            yield (page.file.parent / unquote(parts.path)).resolve() if parts.path else page.file, parts.fragment


def test_every_link_leads_somewhere(pages: dict[Path, Html]) -> None:
    broken = []
    for page in pages.values():
        for target, anchor in local_targets(page, page.links):
            if not target.is_file() or (anchor and target in pages and unquote(anchor) not in pages[target].anchors):
                broken.append(f"{page.file.name}: {target}#{anchor}")
    assert not broken


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Html]) -> None:
    loads = [address for page in pages.values() for address in page.loads]
    assert loads
    assert not [address for address in loads if urlsplit(address).scheme or urlsplit(address).netloc]
    for page in pages.values():
        assert not [target for target, _ in local_targets(page, page.loads) if not target.is_file()]
    for file in site.rglob("*.html"):  # nor is a machine told of
        assert str(ROOT) not in file.read_text(encoding="utf-8")
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.findall(r"@import|url\(\s*['\"]?(?:https?:)?//", text), style


def test_every_public_name_is_in_the_reference(pages: dict[Path, Html]) -> None:
    anchors = {anchor for file, page in pages.items() if file.parent.name == "reference" for anchor in page.anchors}
    modules = ["privsolve", *(f"privsolve.{name}" for name in ps.__all__ if inspect.ismodule(getattr(ps, name)))]
    for name in ps.__all__:
        home = getattr(getattr(ps, name), "__module__", "privsolve")
        shown = anchors & {f"{module}.{name}" for module in (*modules, home)}
        assert shown, f"{name}: add ::: privsolve.{name} to a page of docs/reference"


@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_the_window(site: Path, browser: Browser, width: int) -> None:
    for name in (*START, *GUIDES, *MORE):
        browser.open(site / f"{name}.html", width)
        wide = browser.run("return document.documentElement.scrollWidth")
        assert wide <= width, name
        assert not browser.errors(), name
        assert not [address for address in browser.requests() if not address.startswith("file:")], name


def test_search_finds_a_page_without_a_server(site: Path, browser: Browser) -> None:
    browser.open(site / "index.html")
    box = browser.all("input[name=query]")[0]
    box.click()
    box.send_keys("deniability")
    WebDriverWait(browser.driver, 20).until(lambda _: browser.all("a.md-search-result__link"))
    found = [link.get_attribute("href") for link in browser.all("a.md-search-result__link")]
    assert any("guides/choosing-epsilon.html" in address for address in found)
    assert not browser.errors()
