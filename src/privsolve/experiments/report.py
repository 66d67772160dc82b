"""The results as a table, a text, figures and one page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from privsolve.cards.page import bullets, escape, page
from privsolve.experiments.adult import Results
from privsolve.experiments.figures import accuracy_figure, save, time_figure
from privsolve.experiments.summary import reading, table_rows, test_rows, time_rows

NOTE = (
    "Adjacency: one record changed (n is public). δ = 1/n² where there is one. The settings of the logistic regression "
    "baselines were tuned on the training data without privacy, as in the paper: their guarantee covers one fit, not the "
    "tuning. The other methods have nothing tuned. As published: the noise scale has no valid proof. "
    "Capital gain in 5,000s: the same data with another public unit for one column, because the paper's unit would need a "
    "weight of 34 where its ball allows 4."
)

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
    names = ("accuracy", "accuracy-test", "seconds")
    figures = (accuracy_figure(results), accuracy_figure(results, test=True), time_figure(results))
    paths = [path for name, figure in zip(names, figures, strict=True) for path in save(figure, out, name)]
    table = out / "table.md"
    table.write_text(markdown(results), encoding="utf-8")
    html = out / "report.html"
    html.write_text(html_page(results, out), encoding="utf-8")
    return [html, table, *paths]


def markdown(results: Results) -> str:
    """The tables and the reading as Markdown."""
    parts = [
        f"Training accuracy, mean ± standard deviation over {results.plan.runs} runs:",
        _markdown_table(("method", "privacy", *_heads(results)), table_rows(results), left=2),
        "Accuracy on the balanced test file, mean:",
        _markdown_table(("method", *_heads(results)), test_rows(results), left=1),
        "Seconds a run, median:",
        _markdown_table(("method", *_heads(results)), time_rows(results), left=1),
        _reference_sentence(results),
        NOTE,
        "\n".join(f"- {sentence}" for sentence in reading(results)),
    ]
    return "\n\n".join(parts) + "\n"


def html_page(results: Results, out: Path) -> str:
    """A self-contained page: the figures are in it."""
    title = "Private classification of the Adult data"
    body = [
        "<main>",
        f"<h1>{title}</h1>",
        f"<p>15,682 records, 23 features. Every method at the same privacy, {results.plan.runs} runs each.</p>",
        "<section>",
        "<h2>Who wins where</h2>",
        bullets(tuple(reading(results))),
        _figure(out, "accuracy", "Training accuracy against ε. Bars are standard deviations over the runs."),
        _html_table("Training accuracy", ("method", "privacy", *_heads(results)), table_rows(results)),
        f"<p>{escape(_reference_sentence(results))}</p>",
        f'<p class="quiet">{escape(NOTE)}</p>',
        "</section>",
        "<section>",
        _figure(out, "accuracy-test", "Accuracy on the balanced test file."),
        _html_table("Accuracy on the test file", ("method", *_heads(results)), test_rows(results)),
        "</section>",
        "<section>",
        _figure(out, "seconds", "How long one run takes, for each family of methods."),
        _html_table("Median seconds a run", ("method", *_heads(results)), time_rows(results)),
        "</section>",
        "</main>",
    ]
    return page(title, "\n".join(body), CSS)


def _heads(results: Results) -> list[str]:
    return [f"ε = {epsilon:g}" for epsilon in results.plan.epsilons]


def _reference_sentence(results: Results) -> str:
    parts = (f"{r.label} {r.train_accuracy:.4f} (test {r.test_accuracy:.4f})" for r in results.references)
    return f"For comparison: {'; '.join(parts)}."


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    rule = ["---"] * left + ["--:"] * (len(head) - left)
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *rows))


def _html_table(heading: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    first = "".join(f'<th scope="col">{escape(h)}</th>' for h in head)
    lines = (
        f'<tr><th scope="row">{escape(row[0])}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:]) + "</tr>"
        for row in rows
    )
    return (
        f'<h2>{escape(heading)}</h2>\n<div class="wide"><table><thead><tr>{first}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _figure(out: Path, name: str, caption: str) -> str:
    drawing = (out / f"{name}.svg").read_text(encoding="utf-8")
    drawing = drawing[drawing.index("<svg") :].replace("<svg ", f'<svg role="img" aria-label="{escape(caption)}" ', 1)
    return f'<figure class="panel">{_own_ids(drawing, name)}<figcaption>{escape(caption)}</figcaption></figure>'


def _own_ids(drawing: str, prefix: str) -> str:
    """Ids that do not clash with those of another drawing on the same page."""
    for mark in ('id="', 'href="#', "url(#"):
        drawing = drawing.replace(mark, f"{mark}{prefix}-")
    return drawing
