"""Documents are stored as lines, and stay the same lines in every part of a table."""

from __future__ import annotations

import pyarrow as pa
import pytest

from data_generator import documents

LINES = [b'{"id":1}\n', b'{"id":22,"t":"\xc3\xa9"}\n', b'{"id":3}\n', b"{}\n"]


def test_a_batch_has_a_row_for_each_line() -> None:
    batch = documents.batch(b"".join(LINES), "id")
    assert documents.lines_of(batch) == LINES
    assert documents.json_lines(batch) == b"".join(LINES)
    assert documents.key_of(batch.schema) == "id"
    assert documents.is_documents(batch.schema)
    assert documents.batch(b"", "id").num_rows == 0


@pytest.mark.parametrize(("start", "rows"), [(0, 2), (1, 1), (1, 3), (3, 1), (2, 0)])
def test_a_part_is_the_lines_of_its_rows(start: int, rows: int) -> None:
    batch = documents.batch(b"".join(LINES), "id").slice(start, rows)
    wanted = b"".join(LINES[start : start + rows])
    assert documents.json_lines(batch) == wanted
    assert documents.json_lines(pa.Table.from_batches([batch, batch])) == wanted * 2


def test_a_last_line_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="The last document has no line end"):
        documents.batch(b'{"id":1}\n{"id":2}', "id")


def test_documents_come_in_batches_of_about_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "BATCH_BYTES", 20)
    texts = [line.decode().removesuffix("\n") for line in LINES * 3]
    found = list(documents.batches(texts, "id"))
    assert b"".join(map(documents.json_lines, found)) == b"".join(LINES * 3)
    assert len(found) > 3


def test_other_tables_are_no_documents() -> None:
    schema = pa.schema([("line", pa.large_binary())])
    assert not documents.is_documents(schema)
    with pytest.raises(ValueError, match="not the schema of documents with a key"):
        documents.key_of(schema)
