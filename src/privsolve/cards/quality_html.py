"""How good a model is, as a section of its page: figures, two small plots, and a table by total or leaf."""

from __future__ import annotations

from collections.abc import Sequence

from privsolve.cards.page import escape
from privsolve.cards.quality import figure_cells, main_figures, where
from privsolve.evaluation import Evaluation, Figure

SIZE, LEFT, TOP, WIDE, HIGH = (380, 300), 52, 12, 312, 236
"""Width and height of a plot; where its square of data begins, and how large it is."""

INTERVALS = (
    "Each interval holds the true figure 95 times out of 100. The first is for people of the same kind: it covers both the "
    "noise and the luck of which records were measured. The second is for these very records, and covers the noise alone."
)


def quality_section(evaluation: Evaluation | None) -> list[str]:
    """The section, or nothing; equal evaluations give equal bytes."""
    if evaluation is None:
        return []
    return [
        '<section class="quality">',
        "<h2>How good it is</h2>",
        f"<p>{escape(where(evaluation))}</p>",
        _figures(evaluation),
        f'<p class="quiet">{INTERVALS}</p>',
        '<div class="plots">',
        _calibration_plot(evaluation),
        _roc_plot(evaluation),
        "</div>",
        _outcome_table(evaluation),
        *_groups(evaluation),
        "</section>",
    ]


def _row(cells: Sequence[str], head: bool = False) -> str:
    tag = 'th scope="col"' if head else "td"
    end = "th" if head else "td"
    kinds = ["", *[' class="number"'] * (len(cells) - 1)]
    marked = [f"<{tag}{kind}>{escape(cell)}</{end}>" for kind, cell in zip(kinds, cells, strict=True)]
    return f"<tr>{''.join(marked)}</tr>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    body = "\n".join(_row(row) for row in rows)
    return (
        f'<div class="wide"><table>\n<thead>{_row(heads, head=True)}</thead>\n<tbody>\n{body}\n</tbody>\n</table></div>'
    )


def _figures(evaluation: Evaluation) -> str:
    rows = [(name, *figure_cells(figure)) for name, figure in main_figures(evaluation.cells, evaluation.labels)]
    return _table(("Figure", "Value", "95% interval", "Noise alone"), rows)


def _outcome_table(evaluation: Evaluation) -> str:
    cells = evaluation.cells
    no, yes = evaluation.labels
    name = evaluation.kind[:1].upper() + evaluation.kind[1:]
    stated = ("Stated",) if cells.states_risks else ()
    rows = []
    for o, (outcome, figure, risk) in enumerate(
        zip(evaluation.outcomes, cells.calibration(), cells.risks(), strict=True)
    ):
        value, wide, _ = figure_cells(figure)
        records = f"{max(0, int(evaluation.counts[:, o].sum())):,}"
        states = (f"{100 * outcome.risk:.3g}%",) if stated and outcome.risk is not None else ()
        rows.append(
            (outcome.text, yes if outcome.positive else no, records, value, wide, *states, f"{100 * risk:.3g}%")
        )
    heads = (name, "Decision", "Records", f"Share of {yes}", "95% interval", *stated, "Made monotone")
    return f"<h3>By {escape(evaluation.kind)}</h3>\n" + _table(heads, rows)


def _groups(evaluation: Evaluation) -> list[str]:
    if evaluation.by is None:
        return []
    no, yes = evaluation.labels
    rows = []
    for name in evaluation.groups:
        cells = evaluation.of_group(name)
        figures = (cells.accuracy(), cells.false_positives(), cells.false_negatives(), cells.chosen())
        rows.append((name, f"{max(0, cells.records()):,}", *(figure.percent() for figure in figures)))
    heads = (evaluation.by, "Records", "Right", f"{no}, decided {yes}", f"{yes}, decided {no}", f"Decided {yes}")
    return [f"<h3>By {escape(evaluation.by)}</h3>", _table(heads, rows)]


def _calibration_plot(evaluation: Evaluation) -> str:
    """The share of positive records at every outcome, with both intervals, and what the model states."""
    figures = evaluation.cells.calibration()
    count = len(figures)
    risks = evaluation.cells.risks()
    parts = []
    for i, (figure, outcome) in enumerate(zip(figures, evaluation.outcomes, strict=True)):
        x = LEFT + WIDE * (i + 0.5) / count
        parts.append(_whisker(x, figure))
        if outcome.risk is not None:
            parts.append(f'<path class="stated" d="M{x - 5:.1f} {_y(outcome.risk):.1f}h10"/>')
        if figure.value is not None:
            parts.append(f'<circle class="dot" cx="{x:.1f}" cy="{_y(figure.value):.1f}" r="3"/>')
    steps = " ".join(
        f"{'M' if i == 0 else 'L'}{LEFT + WIDE * i / count:.1f} {_y(r):.1f}H{LEFT + WIDE * (i + 1) / count:.1f}"
        for i, r in enumerate(risks)
    )
    every = max(1, -(-count // 8))
    texts = [o.text if evaluation.kind == "total" else str(i + 1) for i, o in enumerate(evaluation.outcomes)]
    ticks = [
        f'<text class="tick" text-anchor="middle" x="{LEFT + WIDE * (i + 0.5) / count:.1f}" y="{TOP + HIGH + 16}">'
        f"{escape(texts[i].split(' to ')[0])}</text>"
        for i in range(0, count, every)
    ]
    yes = evaluation.labels[1]
    title = f"Share of {yes} by {evaluation.kind}"
    return _plot(title, evaluation.kind, f'<path class="steps" d="{steps}"/>', *parts, *ticks)


def _whisker(x: float, figure: Figure) -> str:
    if figure.value is None:
        return ""
    thin = f'<path class="thin" d="M{x:.1f} {_y(figure.low):.1f}V{_y(figure.high):.1f}"/>'
    return thin + f'<path class="thick" d="M{x:.1f} {_y(figure.noise_low):.1f}V{_y(figure.noise_high):.1f}"/>'


def _roc_plot(evaluation: Evaluation) -> str:
    """True against false positives at every threshold; the model's own is ringed."""
    points = evaluation.cells.threshold_points()
    places = [
        (p.false_positives.value, 1 - p.false_negatives.value)
        for p in points
        if p.false_positives.value is not None and p.false_negatives.value is not None
    ]
    own = evaluation.cells.false_positives().value, evaluation.cells.false_negatives().value
    line = " ".join(f"{_x(a):.1f},{_y(b):.1f}" for a, b in places)
    dots = [f'<circle class="dot" cx="{_x(a):.1f}" cy="{_y(b):.1f}" r="2.5"/>' for a, b in places]
    if own[0] is not None and own[1] is not None:
        dots.append(f'<circle class="own" cx="{_x(own[0]):.1f}" cy="{_y(1 - own[1]):.1f}" r="6"/>')
    ticks = [
        f'<text class="tick" text-anchor="middle" x="{_x(k / 4):.1f}" y="{TOP + HIGH + 16}">{25 * k}%</text>'
        for k in range(5)
    ]
    diagonal = f'<path class="half" d="M{_x(0):.1f} {_y(0):.1f}L{_x(1):.1f} {_y(1):.1f}"/>'
    no, yes = evaluation.labels
    title = f"ROC curve: {yes} found, against {no} decided wrongly"
    foot = f"{no}, decided wrongly; the ring is the rule"
    return _plot(title, foot, diagonal, f'<polyline points="{line}"/>', *dots, *ticks)


def _plot(title: str, below: str, *parts: str) -> str:
    width, height = SIZE
    grid = [
        f'<path class="grid" d="M{LEFT} {_y(k / 4):.1f}h{WIDE}"/><text class="tick" text-anchor="end" x="{LEFT - 6}" '
        f'y="{_y(k / 4) + 4:.1f}">{25 * k}%</text>'
        for k in range(5)
    ]
    foot = f'<text class="tick" text-anchor="middle" x="{LEFT + WIDE / 2}" y="{height - 16}">{escape(below)}</text>'
    svg = [
        f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}">',
        *grid,
        *filter(None, parts),
        foot,
        "</svg></figure>",
    ]
    return "\n".join(svg)


def _x(share: float) -> float:
    return LEFT + WIDE * share


def _y(share: float) -> float:
    return TOP + HIGH * (1 - share)
