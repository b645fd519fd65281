"""Our own store keeps the contract in each of its layouts."""

from pathlib import Path

import pytest

from adapters.errors import RefusedData
from document_stores.registry import DOCUMENT_STORES
from libraries.document_store import kernels
from libraries.document_store.store import DocumentStore
from tests.contracts.documents import DocumentStoreContract


class TestColumns(DocumentStoreContract):
    variant = "document-store[layout=amax]"


class TestRows(DocumentStoreContract):
    variant = "document-store[layout=vector,codec=none]"


@pytest.mark.slow
class TestOpenRows(DocumentStoreContract):
    variant = "document-store[layout=open,codec=snappy,sync=none]"


@pytest.mark.parametrize(("flushes", "waits"), [(1, False), (2, True)])
def test_late_merges_show_nothing_where_none_waits(flushes: int, waits: bool, tmp_path: Path) -> None:
    late, soon = (DOCUMENT_STORES.build(f"document-store[layout=vector,merges={word}]") for word in ("late", "soon"))
    with DocumentStore.open(tmp_path / "stored", layout="vector", merges="late") as store:
        for flush in range(flushes):
            store.upsert([{"id": number, "flush": flush} for number in range(100)])
            store.flush()
    for adapter in (late, soon):
        adapter.load_library()
    told = late.shows_nothing(tmp_path / "stored")
    assert (told is None) == waits
    assert waits or "no merge waits" in str(told)
    assert soon.shows_nothing(tmp_path / "stored") is None


def test_nothing_is_measured_where_its_c_was_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python would be measured under the store's name."""
    monkeypatch.setattr(kernels, "NATIVE", False)
    with pytest.raises(RefusedData, match="the C of libraries/document_store was not built; 'make setup' builds it"):
        DOCUMENT_STORES.build("document-store[layout=amax]").load_library()
