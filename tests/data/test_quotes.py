"""Quotes in CSV files: against a reader that goes byte by byte, and one value never swallows the records of others."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privsolve.data import tables
from privsolve.data.tables import check_quotes, open_table


def is_tidy(text: str, separator: str = ",") -> bool:
    """By the definition, one character at a time."""
    at, inside = 0, False
    while at < len(text):
        if text[at] == '"' and inside and text[at + 1 : at + 2] == '"':
            at += 1
        elif text[at] == '"' and inside:
            inside = False
            if text[at + 1 : at + 2] not in ("", "\n", "\r", separator):
                return False
        elif text[at] == '"':
            inside = True
            if at > 0 and text[at - 1] not in ("\n", "\r", separator):
                return False
        elif text[at] == "\r" and not inside and text[at + 1 : at + 2] not in ("", "\n"):
            return False
        at += 1
    return not inside


@given(text=st.text('a",\n\r', max_size=30), chunk=st.integers(1, 7), header=st.booleans())
def test_what_is_refused(tmp_path_factory: pytest.TempPathFactory, text: str, chunk: int, header: bool) -> None:
    file = tmp_path_factory.mktemp("quotes") / "t.csv"
    file.write_bytes((b"x,y\n" if header else b"") + text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "CHUNK", chunk)
        if is_tidy(text):
            assert check_quotes(str(file), ",", skipped=int(header)) == ('"' in text)
        else:
            with pytest.raises(ValueError, match=r"quote|carriage return"):
                check_quotes(str(file), ",", skipped=int(header))


def test_the_line_is_named_and_compressed_files_are_read(tmp_path: Path) -> None:
    lines = ["x,y", '"a ""b""\nc",1', "e,2", '12" pipe,3']
    for name, content in (("t.csv", "\n".join(lines).encode()), ("t.csv.gz", gzip.compress("\n".join(lines).encode()))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match="line 5 has a quote inside a value"):
            check_quotes(str(tmp_path / name), ",", skipped=1)
    (tmp_path / "open.csv").write_text('x,y\n"a",1\n"\n",2\ne,"3\n4\n')
    with pytest.raises(ValueError, match="line 5 begins a value with a quote that is never closed"):
        check_quotes(str(tmp_path / "open.csv"), ",", skipped=1)
    (tmp_path / "bom.csv").write_bytes(b'\xef\xbb\xbf"a",1\n')
    check_quotes(str(tmp_path / "bom.csv"), ",", skipped=0)


def test_one_value_cannot_swallow_other_records(tmp_path: Path) -> None:
    """With the quote in line 16, a quote at the beginning of line 4 would make one record of both and all between."""
    rows = ["name,n,label"] + ["y,2,1"] * 20
    rows[15] = 'y",2,1'
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    with pytest.raises(ValueError, match="line 16 has a quote inside a value"):
        open_table(str(tmp_path / "t.csv"))
    rows[3] = '"x,2,1'  # now the quotes are in order: a value of thirteen lines, in the one record that it is
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    assert open_table(str(tmp_path / "t.csv")).count().to_pyarrow().as_py() == 8


@pytest.mark.parametrize("cell", ["\r", "\r\r\r\r", "1\r", "\r1", "1\r2"])
def test_a_carriage_return_alone_makes_no_records(tmp_path: Path, cell: str) -> None:
    """DuckDB ended a record at each, so that one line of a file was read as several records."""
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "1,1\n" * 4 + f"2,{cell},\n" + "1,0\n" * 4, encoding="utf-8", newline="")
    with pytest.raises(ValueError, match="line 6 has a carriage return without a line feed"):
        open_table(path)
    path.write_text("x,y\r\n" + "1,1\r\n" * 4 + f'2,"{cell}"\r\n' + "1,0\r\n" * 4, encoding="utf-8", newline="")
    assert open_table(path).count().to_pyarrow().as_py() == 9


def test_a_file_longer_than_what_one_thread_reads_has_every_record_once(tmp_path: Path) -> None:
    """DuckDB begins in the middle of long files: there, lines within quotes look like records."""
    path = tmp_path / "t.csv"
    quoted = '"' + "1,1\n" * 100 + '",1\n'
    for record, records in ((quoted, 30_000), ("1,1\n", 3_000_000)):
        path.write_text("x,y\n" + record * records, encoding="utf-8")
        table = open_table(path)
        found = table.aggregate(records=table.count(), least=table.x.length().min(), most=table.x.length().max())
        length = record.rindex(",") - 2 * record.count('"') // 2
        assert found.to_pyarrow().to_pylist() == [{"records": records, "least": length, "most": length}]
