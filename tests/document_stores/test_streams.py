"""Files of documents keep the contract, and other programs for their format can read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from document_stores.json_lines import JsonLines
from document_stores.shared.streams import READ_BYTES
from tests.contracts.documents import DocumentStoreContract


@pytest.mark.slow
class TestJsonLines(DocumentStoreContract):
    variant = "json-lines[engine=msgspec]"


class TestJsonLinesZstd(DocumentStoreContract):
    variant = "json-lines[engine=msgspec,codec=zstd,level=1]"


class TestMessagePack(DocumentStoreContract):
    variant = "messagepack[engine=msgspec]"


@pytest.mark.slow
class TestMessagePackZstd(DocumentStoreContract):
    variant = "messagepack[engine=msgspec,codec=zstd]"


class TestBson(DocumentStoreContract):
    variant = "bson[engine=pymongo]"


@pytest.mark.slow
class TestBsonZstd(DocumentStoreContract):
    variant = "bson[engine=pymongo,codec=zstd,level=9]"


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_lines_longer_than_what_is_read_at_a_time_come_back(codec: str, tmp_path: Path) -> None:
    documents = [{"id": number, "text": letter * length} for number, letter, length in LONG]
    adapter = JsonLines({"codec": codec})
    adapter.load_library()
    adapter.ingest([documents], tmp_path / "t")
    handle = adapter.open(tmp_path / "t")
    assert handle.count() == len(documents)
    assert [document for batch in handle.scan() for document in batch] == documents


LONG = ((0, "a", 1), (1, "b", 2 * READ_BYTES + 7), (2, "c", 3), (3, "d", READ_BYTES), (4, "e", 3 * READ_BYTES))
"""Key, letter, and number of letters."""
