"""A self-contained HTML page: everything inside one file, nothing from the network, the same bytes every time."""

from __future__ import annotations

import html
import json
import re
from importlib.resources import files

from privsolve.cards.words import PrivacyWords

# the browser itself refuses to load or send anything, should a page ever try
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src {scripts}; img-src data:; form-action 'none'"


def escape(text: str) -> str:
    """Text for an element or a quoted attribute."""
    return html.escape(text, quote=True)


def asset(name: str) -> str:
    """A style sheet or script that is stored beside this module."""
    return (files("privsolve.cards") / name).read_text(encoding="utf-8").rstrip("\n")


def page(title: str, body: str, css: str = "", script: str = "") -> str:
    """A page with the common style; `title` is plain text, `body` is HTML, `css` and `script` are added as they are."""
    policy = _POLICY.format(scripts="'unsafe-inline'" if script else "'none'")
    style = "\n".join(filter(None, (asset("page.css"), css)))
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<link rel="icon" href="data:,">',
        f"<title>{escape(title)}</title>",
        f"<style>\n{style}\n</style>",
        "</head>",
        "<body>",
        body,
        *([f"<script>\n{script}\n</script>"] if script else []),
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def json_data(element_id: str, value: object) -> str:
    """A value for the page's script to read by element id; no text in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{escape(element_id)}">{text}</script>'


def warning(text: str) -> str:
    """A warning that cannot be overlooked, on screen and on paper."""
    return f'<p class="warning" role="note"><strong>Warning.</strong> {escape(text)}</p>'


def bullets(items: tuple[str, ...]) -> str:
    """A list of plain sentences."""
    return "<ul>\n" + "\n".join(f"<li>{raised(item)}</li>" for item in items) + "\n</ul>"


def raised(text: str) -> str:
    """Text as HTML with its exponents raised: e^1, e^(kε) and 2^-100."""
    return re.sub(r"\^(?:\(([^()]+)\)|([-−]?[\w.]*\w))", lambda m: f"<sup>{m[1] or m[2]}</sup>", escape(text))


def head(title: str, facts: list[tuple[str, str]], badge: str) -> list[str]:
    """The title, who answers for the page, and its privacy in two words."""
    lines = [f"<span><span>{escape(name)}:</span> {escape(text)}</span>" for name, text in facts]
    return [
        "<header>",
        f"<h1>{escape(title)}</h1>",
        f'<p class="facts">{"".join(lines)}<span class="badge">{escape(badge)}</span></p>',
        "</header>",
    ]


def privacy_section(privacy: PrivacyWords, link: str | None = None) -> str:
    """What every published page says of its guarantee: one sentence, and the rest behind it."""
    more = [] if link is None else [f'<p><a href="{escape(link)}" rel="noopener">More about this</a></p>']
    parts = [
        '<section id="privacy">',
        "<h2>Privacy</h2>",
        f"<p>{raised(privacy.short)}</p>",
        "<details>",
        "<summary>What this promises, and what it does not</summary>",
        f"<p>{raised(privacy.sentence)}</p>",
        "<h3>What this promises</h3>",
        bullets(privacy.promised),
        "<h3>What it does not promise</h3>",
        bullets(privacy.not_promised),
        "</details>",
        *more,
        '<p class="quiet screen">This page works offline. What you answer stays in this window; nothing is sent or kept.</p>',
        "</section>",
    ]
    return "\n".join(parts)
