"""The yardstick of documents keeps the contract and writes only the text."""

from pathlib import Path

from bench_runner.registries import build_loaded
from tests.contracts.documents import DocumentStoreContract


class TestRawIO(DocumentStoreContract):
    variant = "documents-raw-io[engine=read]"


def test_the_text_is_written_and_read_as_it_is(tmp_path: Path) -> None:
    store = build_loaded("documents-raw-io")
    store.ingest([b'{"id": 1,  "a":1.0}\n', b'{"id":2}\n'], tmp_path / "data.raw")
    assert (tmp_path / "data.raw").read_bytes() == b'{"id": 1,  "a":1.0}\n{"id":2}\n'
    assert store.text(tmp_path / "data.raw") == b'{"id": 1,  "a":1.0}\n{"id":2}\n'
