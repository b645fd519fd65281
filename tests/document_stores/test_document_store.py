"""Our own store keeps the contract in each of its layouts."""

import pytest

from adapters.errors import RefusedData
from document_stores.registry import DOCUMENT_STORES
from libraries.document_store import kernels
from tests.contracts.documents import DocumentStoreContract


class TestColumns(DocumentStoreContract):
    variant = "document-store[layout=amax]"


class TestRows(DocumentStoreContract):
    variant = "document-store[layout=vector,codec=none]"


@pytest.mark.slow
class TestOpenRows(DocumentStoreContract):
    variant = "document-store[layout=open,codec=snappy,sync=none]"


def test_nothing_is_measured_where_its_c_was_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python would be measured under the store's name."""
    monkeypatch.setattr(kernels, "NATIVE", False)
    with pytest.raises(RefusedData, match="the C of libraries/document_store was not built; 'make setup' builds it"):
        DOCUMENT_STORES.build("document-store[layout=amax]").load_library()
