"""What the site needs beyond the Markdown files of this folder, which GitHub shows as they are."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
OUTSIDE = re.compile(r"\]\(((?:\.\./)+(?:examples/[\w/]+\.py|CHANGELOG\.md))\)")
FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
LIST = re.compile(r"^(?!(?:[-*+] |\d+\. |>|#|\|))(\S.*)\n(?=(?:[-*+]|\d+\.) )", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the changelog and the examples, which live beside this folder."""
    files.append(File.generated(config, "changelog.md", abs_src_path=str(ROOT / "CHANGELOG.md")))
    for example in sorted((ROOT / "examples").rglob("*.py")):
        path = example.relative_to(ROOT)
        text = f"# {path.name}\n\n```python\n{example.read_text(encoding='utf-8')}```\n"
        files.append(File.generated(config, path.with_suffix(".md").as_posix(), content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Links to those files, and lists that follow a line of text, as GitHub understands them."""
    here = posixpath.dirname(page.file.src_uri)

    def inside(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", here, link[1]))
        target = "changelog.md" if target == "CHANGELOG.md" else f"{target.removesuffix('.py')}.md"
        return f"]({posixpath.relpath(target, here or '.')})"

    parts, last = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [LIST.sub(r"\1\n\n", markdown[last : fence.start()]), fence[0]]
        last = fence.end()
    return OUTSIDE.sub(inside, "".join([*parts, LIST.sub(r"\1\n\n", markdown[last:])]))
