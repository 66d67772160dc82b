"""A scorecard as a LaTeX table."""

from __future__ import annotations

from privsolve.cards import words
from privsolve.cards.card import Card
from privsolve.evaluation.words import quality_lines

# what LaTeX reads as a command, and signs of ours (and common in bins) that its default fonts lack
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "[": "{[}",  # at the start of a row it would be the optional argument of \\
    "]": "{]}",
    "-": "{-}",  # keeps -- from turning into a dash
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "–": "--",
    "−": "$-$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "≠": r"$\ne$",
    "≈": r"$\approx$",
    "∞": r"$\infty$",
    "×": r"$\times$",
    "÷": r"$\div$",
    "ε": r"$\varepsilon$",
    "δ": r"$\delta$",
}


def escape(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return "".join(_ESCAPES.get(character, character) for character in " ".join(text.split()))


def scorecard_latex(card: Card) -> str:
    """The card as a floating table."""
    privacy = words.privacy_words(card.guarantee)
    below = [*(f"\\textbf{{{escape(warning)}}}" for warning in (*words.problems(card), *privacy.warnings))]
    below += [escape(line) for line in (words.rule(card), " ".join(words.notes(card)), *words.facts_line(card.about))]
    if words.has_example(card):
        answers = "; ".join(map(words.example_line, card.example.lines))
        example = f"{words.made_up(card)}: {answers}. {words.verdict(card)} {words.says(card)} {card.example.decision}."
        below.append(escape(example))
    below += [escape(line) for line in quality_lines(card.evaluation) if line]
    below.append(escape(f"Privacy: {' '.join((privacy.sentence, *words.other_count(card.guarantee)))}"))
    lines = [
        r"% needs \usepackage[T1]{fontenc}, \usepackage{textcomp} and \usepackage{booktabs}",
        r"\begin{table}[tbp]",
        r"\centering",
        f"\\caption{{{escape(words.title(card))}}}",
        r"\begin{tabular}{@{}p{0.3\linewidth}p{0.45\linewidth}r@{}}",
        r"\toprule",
        r"Question & Answer & Points \\",
    ]
    for number, line in enumerate(words.answer_lines(card)):
        if line[0]:
            lines.append(r"\addlinespace" if number else r"\midrule")
        lines.append(_table_line(*line))
    if card.totals:
        heads, rows = words.total_table(card)
        lines += [r"\midrule", _table_line(*heads), r"\midrule", *(_table_line(*row) for row in rows)]
    lines += [r"\bottomrule", r"\end{tabular}", "", r"\medskip", r"\begin{minipage}{0.95\linewidth}", r"\footnotesize"]
    lines += [r"\par\smallskip" + "\n" + sentence for sentence in below]
    lines += [r"\end{minipage}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def _table_line(*cells: str) -> str:
    return " & ".join(escape(cell) for cell in cells) + r" \\"
