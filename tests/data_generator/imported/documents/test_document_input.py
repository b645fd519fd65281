"""What is told of a path at which no documents lie: of documents, with what to do."""

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
        ("a.zst", LINE, "does not say that it holds documents", "documents are taken as JSON Lines"),
        ("a.jsonl", b"", "is empty (0 bytes)", "a file with documents in it"),
        ("a.txt", LINE, "does not say that it holds documents", "documents are taken as JSON Lines"),
        ("a.csv", b"a\n1\n", "is CSV, which holds a table", "a table goes with run tabular --data PATH"),
        ("folder", None, "is a folder", "of several files make one"),
        ("pipe.jsonl", ..., "is no regular file", "documents are taken as JSON Lines"),
        ("missing.jsonl", (), "o such file", "documents are taken as JSON Lines"),
    ],
)
def test_what_holds_no_documents_is_told_in_words_of_documents(
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
    first, _, second = str(refused.value).partition("\n")
    assert told in first
    assert step in second
    assert "a table is taken as" not in str(refused.value)


@pytest.mark.parametrize("name", ["a.NDJSON", "a.json", "a.jsonl.gz", "a.JSON.ZST", "a.ndjson.bz2", "a.json.zip"])
def test_lines_are_found(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(LINE)
    found = document_input.find(tmp_path / name)
    assert [(file.name, file.size_bytes) for file in found.files] == [(name, len(LINE))]
