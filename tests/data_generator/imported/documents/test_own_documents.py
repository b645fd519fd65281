"""The user's own documents: read once, unchanged; lines that are not documents are refused with their number."""

import codecs
import gzip
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from data_generator import cache
from data_generator.catalogue import resolve
from data_generator.dataset import Dataset
from data_generator.documents import json_lines, key_of
from data_generator.errors import DataError
from data_generator.imported import byte_stream
from data_generator.imported.documents import document_import, document_input, document_worker
from data_generator.imported.documents.line_check import MAX_DEPTH
from data_generator.imported.documents.line_check import key_of as key_in
from data_generator.imported.refusal import Refused
from tests.data_generator.imported import packed
from tests.data_generator.imported.refused import two_lines
from tests.data_generator.imported.tables.table_files import answers

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes lines, given as text, bytes or objects, to a file."""

    def write(*lines: Any) -> Path:
        texts = [line if isinstance(line, bytes | str) else json.dumps(line) for line in lines]
        path = tmp_path / "own.jsonl"
        path.write_bytes(b"\n".join(text.encode() if isinstance(text, str) else text for text in texts))
        return path

    return write


def own(path: Path, rows: int | None = None, key: str = "") -> Dataset:
    return resolve("documents", {"key": key}, rows=rows, source=path)


def refusal(path: Path) -> str:
    """Return the text with which the reading process refuses the file, without that process."""
    task = {**asdict(document_input.find(path)), "path": str(path), "rows": 1_000_000, "key": ""}
    return two_lines(answers(document_import.READER, task))


def text(dataset: Dataset) -> bytes:
    return b"".join(json_lines(batch) for batch in dataset.batches())


@pytest.mark.usefixtures("own_process")
def test_lines_are_kept_as_they_stand_and_empty_ones_are_none(write: Write) -> None:
    path = write('{"id": 1, "a": 1.0}', "", ' {"a":-0.0,"id":2}\r', b'{"id":3,"b":"\xe6\x97\xa5"}')
    dataset = own(path)
    assert text(dataset).splitlines() == [b'{"id": 1, "a": 1.0}', b'{"a":-0.0,"id":2}', '{"id":3,"b":"日"}'.encode()]
    assert (dataset.rows, key_of(dataset.schema), dataset.remarks) == (3, "id", ())


@pytest.mark.parametrize("ending", packed.ENDINGS)
def test_compressed_documents_are_those_of_the_file(ending: str, tmp_path: Path) -> None:
    dataset = own(packed.write(b'{"id": 1}\r\n\n{"id": 2, "a": [1.0]}', tmp_path / f"own.jsonl{ending}"))
    assert text(dataset) == b'{"id": 1}\n{"id": 2, "a": [1.0]}\n'
    path = packed.write(b'{"id": 1}\n{"id": }', tmp_path / f"broken.jsonl{ending}")
    assert "line 2: is not JSON" in refusal(path)


def test_documents_in_utf16_are_read_where_a_mark_says_so(tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_bytes('{"id": 1, "a": "日"}'.encode("utf-16"))
    assert text(own(tmp_path / "own.jsonl")) == '{"id": 1, "a": "日"}\n'.encode()


def test_a_byte_order_mark_before_the_first_line_is_skipped(write: Write) -> None:
    """As programs on Windows write it."""
    dataset = own(write(codecs.BOM_UTF8 + b'{"id": 1}', {"id": 2}))
    assert text(dataset) == b'{"id": 1}\n{"id": 2}\n'
    assert dataset.remarks == ()


def test_the_key_is_the_named_field(write: Write) -> None:
    dataset = own(write({"name": "x", "id": 1}, {"name": "y", "id": 1}), key="name")
    assert (dataset.name, key_of(dataset.schema)) == ("documents[key=name]", "name")


def test_documents_without_the_usual_key_are_numbered_and_the_user_is_warned(write: Write) -> None:
    dataset = own(write({"a": 1}, "", "{ }"))
    assert text(dataset).splitlines() == [b'{"id":1,"a": 1}', b'{"id":3}']
    assert "line numbers are used as keys" in dataset.remarks[0]


def test_of_a_large_file_it_is_a_sample(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = own(write(*({"id": number} for number in range(500))), rows=32)
    numbers = [json.loads(line)["id"] for line in text(dataset).splitlines()]
    assert (len(numbers), numbers[0], numbers[-1]) == (32, 0, 499)
    assert "a sample of 32 of 500" in dataset.remarks[0]


def test_it_is_read_once_and_again_when_the_file_changes(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write({"id": 1}, {"id": 2})
    before = own(path)
    stored = cache.prepare(before, cache.default_folder())
    with monkeypatch.context() as closed:
        closed.setattr(document_worker, "COMMAND", ("/nowhere",))
        assert own(path).source == before.source
        assert cache.prepare(own(path), cache.default_folder()).digest == stored.digest
    write({"id": 1}, {"id": 2}, {"id": 3})
    assert own(path).rows == 3


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (({"id": 1}, "", '{"id": }'), "own.jsonl, line 3: is not JSON: Expecting"),
        (({"id": 1}, "5"), "line 2: is JSON, but not an object"),
        (({"id": 1}, '{"id": 2} {"id": 3}'), "line 2: is not JSON: Extra data"),
        (({"id": 1}, '{"id": 2, "a": {"b": 1, "b": 2}}'), "line 2: has the field 'b' twice"),
        (({"id": 1}, '{"id": 2, "a": NaN}'), "line 2: has NaN"),
        (({"id": 1}, '{"id": 2, "a": 9223372036854775808}'), "line 2: has an integer outside the signed 64-bit range"),
        (({"id": 1}, '{"id": 2, "a": ' + "9" * 5000 + "}"), "line 2: has an integer outside the signed 64-bit range"),
        (({"id": 1}, '{"id": 2, "a": 1e999}'), "line 2: has a number that is too large for a double"),
        (({"id": 1}, '{"id": 2, "a": "\\ud800"}'), "line 2: has an unpaired surrogate"),
        (({"id": 1}, b'{"id": 2, "a": "\xe9"}'), "line 2: byte 0xe9 in a is not UTF-8"),
        (({"id": 1}, b'{"id": 2, "a": {"b": ["x", {"c": "\xe6\x97"}]}}'), "line 2: byte 0xe6 in a.b[1].c is not UTF-8"),
        (({"id": 1}, b'{"id": 2, "a": {"\xff": 1}}'), "line 2: byte 0xff in the name of a field of a is not UTF-8"),
        (({"id": 1}, b'{"id": 2, \xff"a": 1}'), "line 2: byte 0xff is not UTF-8"),
        (({"id": 1}, '{"id": 2, "a": ' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}"), "line 2: is nested more than"),
        (({"id": 1}, '{"id": 2, "a": ' + "[" * 1_000_000), "line 2: is nested more than"),
        (({"id": 1}, {"a": 1}), "line 2: has no field 'id'"),
        (({"id": 1}, {"id": True}), "line 2: the value of its key 'id' is neither an integer nor a text"),
        (({"id": 1}, {"id": "1"}), "line 2: its key is a text, unlike the key of line 1"),
        (({"id": 1}, "", {"id": 1}), "line 3: repeats the key '1' of line 1"),
        (({"a": 1}, {"id": 1}), "line 2: has a field 'id', which other documents lack"),
        (('[{"id": 1}]',), "line 1: begins with '['"),
        (("", " "), "holds no documents"),
        (("{", '"id": 1', "}"), "line 1: begins with an object over several"),
        ((gzip.compress(b'{"id": 1}'),), "is compressed (gz), but its name does not end with .gz"),
    ],
)
def test_lines_other_than_documents_are_refused_with_its_line(lines: tuple[Any, ...], told: str, write: Write) -> None:
    assert told in refusal(write(*lines))


def test_refusals_begin_with_the_file(write: Write) -> None:
    path = write({"id": 1}, "5")
    with pytest.raises(DataError) as caught:
        own(path)
    problem, step = refusal(path).split("\n  ")
    assert (caught.value.problem, caught.value.next_step) == (f"{problem}.", step)


def test_what_looks_like_a_fault_and_is_none_is_taken(write: Write) -> None:
    largest = {"id": 1, "a": (1 << 63) - 1, "b": -(1 << 63), "c": 1e308, "d": "9" * 30 + "1e999"}
    others = ['{"id": 2, "a": "\\ud83d\\ude02"}', '{"id": 3, "a": "' + "[" * 100 + '\\"["}']
    deep = '{"id": 4, "a": ' + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1) + "}"
    assert own(write(largest, *others, deep)).rows == 4


def test_a_line_that_is_too_long_is_refused_before_it_is_in_memory(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_stream, "BLOCK_BYTES", 1 << 10)
    path = write({"id": 1}, {"id": 2, "a": "x" * 5_000})
    file = {"path": str(path), "size_bytes": path.stat().st_size}
    task = {"path": str(path), "files": [file], "rows": 10, "key": ""}

    class Nowhere:
        def at(self, where: str) -> None:
            self.where = where

    with pytest.raises(Refused) as caught:
        list(document_import.frames(task, Nowhere()))  # type: ignore[arg-type]
    assert "is longer than" in caught.value.reason
    assert caught.value.where.endswith("line 2")


def test_inputs_other_than_files_of_lines_are_refused(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("id\n1\n")
    with pytest.raises(DataError, match="has the suffix of CSV, a format of tables"):
        own(tmp_path / "table.csv")
    with pytest.raises(DataError, match="needs data"):
        resolve("documents", {})


def test_a_worker_that_says_what_makes_no_sense_is_not_believed(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write({"id": 1}, {"id": 2})
    honest = document_worker.Import.__init__

    def lying(self: document_worker.Import, *arguments: Any) -> None:
        honest(self, *arguments)
        self.facts = document_worker.DocumentFacts(3, 3, 1, "id", False)

    monkeypatch.setattr(document_worker.Import, "__init__", lying)
    with pytest.raises(DataError, match="2 documents of the sample were read, but 3"):
        own(path)


def test_a_key_is_taken_unchanged() -> None:
    assert key_in(b'{"k": "9", "v": 1}', "k") == "9"
