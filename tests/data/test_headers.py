"""Headers as spreadsheets write them: read, or refused with a sentence that helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from privsolve.data.tables import open_table


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("age;salary, in EUR, gross, per year;y", ["age", "salary, in EUR, gross, per year", "y"]),
        ('"salary, gross, EUR";age', ["salary, gross, EUR", "age"]),
        ("a, b, c", ["a", "b", "c"]),
        ("a\tb; c", ["a", "b; c"]),
    ],
)
def test_the_separator_is_not_what_stands_in_names(header: str, names: list[str], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"{header}\n")
    assert list(open_table(str(tmp_path / "t.csv")).columns) == names


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('age;"salary\n(EUR)";y\n1;2;3\n', "a line break in it: write the header in one line"),
        ("sep=;\na;b\n1;2\n", "delete it"),
        ("a,b\r1,2\r", "ordinary line ends"),
    ],
)
def test_what_is_no_header_is_refused_in_words(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(text.encode())
    with pytest.raises(ValueError, match=words):
        open_table(str(tmp_path / "t.csv"))
