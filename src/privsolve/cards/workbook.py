"""A scorecard as a workbook for spreadsheets: choose the answers, see total and decision. Its formulas are exact."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from privsolve.cards import words
from privsolve.cards.rows import ChoicePoints, QuantityPoints, Row
from privsolve.errors import from_extra

if TYPE_CHECKING:
    from privsolve.cards.scorecard import Scorecard

LARGEST_TOTAL = 10**15
"""Spreadsheets calculate with 15 digits."""

FONT = "Calibri"

FIRST = 6
"""The row of the first question on the sheet to fill in."""

_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def scorecard_workbook(card: Scorecard) -> bytes:
    """The bytes of an .xlsx file with a sheet to fill in, the points, and what privacy is promised."""
    with from_extra("excel"):
        from openpyxl import Workbook

    _check(card)
    book = Workbook()
    sheet = book.active
    sheet.title = "Card"
    places = _points_sheet(book.create_sheet("Points"), card)
    _card_sheet(sheet, card, places)
    _privacy_sheet(book.create_sheet("Privacy"), card)
    for found in book:
        found.page_setup.fitToHeight = 0
        found.sheet_properties.pageSetUpPr.fitToPage = True
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def _check(card: Scorecard) -> None:
    if max(abs(card.minimum), abs(card.maximum), abs(card.threshold)) >= LARGEST_TOTAL:
        raise ValueError("the card has totals of more than 15 digits, which spreadsheets round: use the page instead")


def _card_sheet(sheet: Any, card: Scorecard, places: dict[int, tuple[int, int]]) -> None:
    from openpyxl.styles import Alignment, Border, Font, PatternFill, Side
    from openpyxl.worksheet.datavalidation import DataValidation

    thin = Side(style="thin", color="8A94A6")
    _write(sheet["A1"], words.title(card), Font(name=FONT, bold=True, size=16))
    _write(sheet["A2"], " ".join(words.facts_line(card.about)) or words.badge(card.guarantee))
    _write(sheet["A3"], f"Choose or type an answer in every blue cell. {words.rule(card)}")
    for column, head in zip("ABC", ("Question", "Answer", "Points"), strict=True):
        _write(sheet[f"{column}{FIRST - 1}"], head, Font(name=FONT, bold=True))
    for i, row in enumerate(card.rows):
        at = FIRST + i
        _write(sheet[f"A{at}"], row.asked)
        sheet[f"A{at}"].alignment = Alignment(wrap_text=True, vertical="top")
        answer = sheet[f"B{at}"]
        answer.fill = PatternFill("solid", fgColor="E6F0FB")
        answer.border = Border(thin, thin, thin, thin)
        sheet[f"C{at}"] = _points_formula(row, at, places.get(i))
        rule = _validation(DataValidation, row, places.get(i))
        rule.add(answer.coordinate)
        sheet.add_data_validation(rule)
        if isinstance(row, ChoicePoints):
            answer.number_format = "@"  # "1-2" is an answer, not a date
    _result(sheet, card)
    for column, width in zip("ABC", (44, 34, 16), strict=True):
        sheet.column_dimensions[column].width = width
    for line in ("A2", "A3"):
        sheet.merge_cells(f"{line}:C{line[1:]}")
        sheet[line].alignment = Alignment(wrap_text=True, vertical="top")
    sheet.row_dimensions[2].height = 32
    sheet.row_dimensions[3].height = 64


def _result(sheet: Any, card: Scorecard) -> None:
    from openpyxl.styles import Alignment, Font

    last = FIRST + len(card.rows) - 1
    total = last + 2
    answered = f"COUNT(C{FIRST}:C{last})={len(card.rows)}" if card.rows else "TRUE"
    added = f"SUM(C{FIRST}:C{last})" if card.rows else "0"
    lines = [("Total", f'=IF({answered},{added},"answer every question")')]
    if card.risk_scale is not None:
        score = f"(C{total}-({card.risk_scale.half!r}))"
        lines.append(("Risk", f'=IF(ISNUMBER(C{total}),1/(1+EXP(-({card.risk_scale.log_odds!r})*{score})),"")'))
    yes, no = _quoted(card.positive), _quoted(card.negative)
    lines.append(("Decision", f'=IF(ISNUMBER(C{total}),IF(C{total}>={card.threshold},{yes},{no}),"")'))
    if card.bands is not None:
        shown = _quoted(card.bands.names[0])
        for start, name in zip(card.band_starts, card.bands.names[1:], strict=True):
            shown = f"IF(C{total}>={start},{_quoted(name)},{shown})"
        lines.append(("Band", f'=IF(ISNUMBER(C{total}),{shown},"")'))
    for k, (name, formula) in enumerate(lines):
        _write(sheet[f"A{total + k}"], name, Font(name=FONT, bold=True))
        words_here = name in ("Decision", "Band")  # may be long
        cell = sheet[f"{'B' if words_here else 'C'}{total + k}"]
        cell.value, cell.font = formula, Font(name=FONT, bold=True)
        if name == "Risk":
            cell.number_format = "0.0%"
        if words_here:
            sheet.merge_cells(f"B{total + k}:C{total + k}")
            cell.alignment = Alignment(wrap_text=True, vertical="top", horizontal="right")
            sheet.row_dimensions[total + k].height = 32


def _points_formula(row: Row, at: int, place: tuple[int, int] | None) -> str:
    if isinstance(row, QuantityPoints):
        clipped = f"MIN(MAX(B{at},{row.low!r}),{row.high!r})"
        return f'=IF(ISNUMBER(B{at}),INT({clipped}/{row.step!r}+0.5)*{row.points},"")'
    assert place is not None
    texts, points = (f"Points!${c}${place[0]}:${c}${place[1]}" for c in "BC")
    # EXACT, because a look-up would take * and ? for wildcards and upper case for lower
    return f'=IF(B{at}="","",IF(SUMPRODUCT(--EXACT({texts},B{at}))=0,"?",SUMPRODUCT(EXACT({texts},B{at})*{points})))'


def _validation(kind: Any, row: Row, place: tuple[int, int] | None) -> Any:
    if place is not None:
        found = kind(type="list", formula1=f"Points!$B${place[0]}:$B${place[1]}", allow_blank=True)
        found.error = "Choose one of the answers in the list."
    else:
        found = kind(type="decimal", operator="between", formula1="-1E+300", formula2="1E+300", allow_blank=True)
        assert isinstance(row, QuantityPoints)
        found.prompt, found.showInputMessage = words.sentence(words.interval(row))[:255], True
        found.error = "Type a number."
    found.showErrorMessage = True
    return found


def _points_sheet(sheet: Any, card: Scorecard) -> dict[int, tuple[int, int]]:
    """All answers with their points; the rows of each question that has answers to choose from."""
    from openpyxl.styles import Font

    for column, head in zip("ABC", ("Question", "Answer", "Points"), strict=True):
        _write(sheet[f"{column}1"], head, Font(name=FONT, bold=True))
    places, at = {}, 2
    for i, row in enumerate(card.rows):
        if isinstance(row, QuantityPoints):
            for column, text in zip("ABC", (row.asked, words.interval(row), words.multiplier(row)), strict=True):
                _write(sheet[f"{column}{at}"], text)
            at += 1
            continue
        places[i] = at, at + len(row.options) - 1
        for option in row.options:
            _write(sheet[f"A{at}"], row.asked)
            _write(sheet[f"B{at}"], option.text)
            sheet[f"C{at}"] = option.points
            at += 1
    for column, width in zip("ABC", (44, 34, 16), strict=True):
        sheet.column_dimensions[column].width = width
    return places


def _privacy_sheet(sheet: Any, card: Scorecard) -> None:
    from openpyxl.styles import Alignment, Font

    said = words.privacy_words(card.guarantee)
    lines = [("Warning", True), *((text, False) for text in said.warnings)] if said.warnings else []
    lines += [("Privacy", True), (said.sentence, False), ("What this promises", True)]
    lines += [(text, False) for text in said.promised]
    lines += [("What it does not promise", True), *((text, False) for text in said.not_promised)]
    for at, (text, bold) in enumerate(lines, 1):
        _write(sheet[f"A{at}"], text, Font(name=FONT, bold=bold))
        sheet[f"A{at}"].alignment = Alignment(wrap_text=True, vertical="top")
    sheet.column_dimensions["A"].width = 100


def _write(cell: Any, text: str, font: Any = None) -> None:
    """A text that is never taken for a formula."""
    cell.value = _NOT_XML.sub("�", text)
    cell.data_type = "s"
    if text[:1] in "=+-@":
        cell.quotePrefix = True
    if font is not None:
        cell.font = font


def _quoted(text: str) -> str:
    """A text inside a formula, in pieces that are short enough."""
    safe = _NOT_XML.sub("�", text)
    pieces = [safe[i : i + 100].replace('"', '""') for i in range(0, len(safe), 100)]
    return "&".join(f'"{piece}"' for piece in pieces) or '""'
