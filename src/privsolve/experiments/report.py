"""The results as a table, a text, figures and one page that needs nothing else."""

from __future__ import annotations

from html import escape
from pathlib import Path

from privsolve.cards.rendering import page, raised
from privsolve.experiments.adult import Results
from privsolve.experiments.figures import figure_1, figure_2, save
from privsolve.experiments.methods import EXTENDED, PRINTED
from privsolve.experiments.summary import (
    Table,
    accuracy_table,
    claims,
    opening,
    reading,
    test_table,
    time_table,
    unit_table,
)

NOTE = (
    "n is public: two data sets are neighbours if one record differs. δ = 1/n². OPDisc, OPDisc with half scale, RSPM and "
    "private LR are as the paper prints them: the noise scales of OPDisc and RSPM have no valid proof, and private LR is "
    "accounted for one record added or removed, as its accountant does. All settings of LR were tuned on the training data "
    "without privacy, as in the paper: the guarantee covers one fit, not the tuning."
)
UNITS_NOTE = (
    "The unit of capital gain is a public choice. The paper divides it by 99,999; a ball of radius √23 then allows at most 4 "
    "where logistic regression has a weight of 34."
)

CAPTIONS = {
    "figure-1": "Figure 1 of the paper: 15,682 records, 23 features.",
    "figure-2": "Proved noise, the exponential mechanism, and a baseline that was tuned hard.",
}
CSS = """
figure { margin: 1rem 0; }
figure.panel { background: #fff; }
figure svg { display: block; width: 100%; height: auto; }
figcaption { color: #566173; font-size: .9rem; margin-top: .5rem; }
th[scope=row] { color: inherit; font-weight: 400; min-width: 14rem; }
table { font-size: .85rem; }
td { white-space: nowrap; }
"""


def write_report(results: Results, out: Path) -> list[Path]:
    """Figures, table and page in the folder; their paths, the page first."""
    figures = {"figure-1": figure_1(results), "figure-2": figure_2(results)}
    paths = [path for name, figure in figures.items() for path in save(figure, out, name)]
    table = out / "table.md"
    table.write_text(markdown(results, out), encoding="utf-8")
    html = out / "report.html"
    html.write_text(html_page(results, out), encoding="utf-8")
    return [html, table, *paths]


Block = str | list[str] | tuple[str, Table] | Path
"""A paragraph, a list of sentences, a table with its heading, or a figure."""


def _blocks(results: Results, out: Path) -> list[Block]:
    """What the report says, in order."""
    return [
        out / "figure-1.svg",
        opening(results),
        (
            f"As printed: training accuracy, mean ± standard deviation over {results.plan.runs} runs",
            accuracy_table(results, PRINTED),
        ),
        "The paper's four claims:",
        claims(results),
        out / "figure-2.svg",
        ("Extended comparison: training accuracy", accuracy_table(results, EXTENDED)),
        [*reading(results), _reference_sentence(results)],
        ("Units of capital gain, exponential mechanism", unit_table(results)),
        UNITS_NOTE,
        ("Mean accuracy on the balanced test file", test_table(results)),
        ("Median seconds a run", time_table(results)),
        NOTE,
    ]


def markdown(results: Results, out: Path) -> str:
    """The sentences and the tables as Markdown."""
    parts = []
    for block in _blocks(results, out):
        if isinstance(block, tuple):
            parts += [f"{block[0]}:", _markdown_table(block[1])]
        elif isinstance(block, Path):
            parts.append(f"![{CAPTIONS[block.stem]}]({block.name})")
        else:
            parts.append(block if isinstance(block, str) else "\n".join(f"- {sentence}" for sentence in block))
    return "\n\n".join(parts) + "\n"


def html_page(results: Results, out: Path) -> str:
    """A self-contained page: the figures are in it."""
    title = "The paper's experiment on Adult"
    body = [f"<main>\n<h1>{title}</h1>"]
    for block in _blocks(results, out):
        if isinstance(block, tuple):
            body.append(_html_table(*block))
        elif isinstance(block, Path):
            body.append(_figure(block))
        elif isinstance(block, str):
            body.append(f"<p>{escape(block)}</p>")
        else:
            body.append("<ul>\n" + "\n".join(f"<li>{raised(item)}</li>" for item in block) + "\n</ul>")
    return page(title, "\n".join([*body, "</main>"]), CSS)


def _reference_sentence(results: Results) -> str:
    parts = (f"{r.label} {r.train_accuracy:.4f} (test {r.test_accuracy:.4f})" for r in results.references)
    return f"For comparison: {'; '.join(parts)}."


def _markdown_table(table: Table) -> str:
    head, rows = table
    rule = ["---" if h in ("method", "privacy", "unit") else "--:" for h in head]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *rows))


def _html_table(heading: str, table: Table) -> str:
    head, rows = table
    first = "".join(f'<th scope="col">{escape(h)}</th>' for h in head)
    lines = (
        f'<tr><th scope="row">{escape(row[0])}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:]) + "</tr>"
        for row in rows
    )
    return (
        f'<h2>{escape(heading)}</h2>\n<div class="wide"><table><thead><tr>{first}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _figure(path: Path) -> str:
    caption, drawing = CAPTIONS[path.stem], path.read_text(encoding="utf-8")
    drawing = drawing[drawing.index("<svg") :].replace("<svg ", f'<svg role="img" aria-label="{escape(caption)}" ', 1)
    for mark in ('id="', 'href="#', "url(#"):  # ids that do not clash with those of another drawing on the same page
        drawing = drawing.replace(mark, f"{mark}{path.stem}-")
    return f'<figure class="panel">{drawing}<figcaption>{escape(caption)}</figcaption></figure>'
