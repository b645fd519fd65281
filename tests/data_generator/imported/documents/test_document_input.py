"""Errors for paths without documents name what documents are and what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from data_generator.errors import DataError
from data_generator.imported.documents import document_input

LINE = b'{"id": 1}\n'


@pytest.mark.parametrize(
    ("name", "content", "told", "step"),
    [
        ("a.zst", LINE, "a suffix of JSON Lines files", "Documents are read from JSON Lines"),
        ("a.jsonl", b"", "is empty (0 bytes)", "a file with documents"),
        ("a.txt", LINE, "a suffix of JSON Lines files", "Documents are read from JSON Lines"),
        ("a.csv", b"a\n1\n", "has the suffix of CSV, a format of tables", "For a table, use the suite tabular"),
        ("folder", None, "is a folder", "To merge several files"),
        ("pipe.jsonl", ..., "is not a regular file", "Documents are read from JSON Lines"),
        ("missing.jsonl", (), "o such file", "Documents are read from JSON Lines"),
    ],
)
def test_what_holds_no_documents_is_explained_in_terms_of_documents(
    name: str, content: object, told: str, step: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is None:
        path.mkdir()
    elif content is ...:
        os.mkfifo(path)
    with pytest.raises(DataError) as refused:
        document_input.find(path)
    assert told in refused.value.problem
    assert step in refused.value.next_step
    assert "A table is read from" not in str(refused.value)


@pytest.mark.parametrize("name", ["a.NDJSON", "a.json", "a.jsonl.gz", "a.JSON.ZST", "a.ndjson.bz2", "a.json.zip"])
def test_lines_are_found(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(LINE)
    found = document_input.find(tmp_path / name)
    assert [(file.name, file.size_bytes) for file in found.files] == [(name, len(LINE))]
