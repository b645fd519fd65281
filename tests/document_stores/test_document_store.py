"""Our own store keeps the contract in each of its layouts."""

import pytest

from tests.contracts.documents import DocumentStoreContract


class TestColumns(DocumentStoreContract):
    variant = "document-store[layout=amax]"


class TestRows(DocumentStoreContract):
    variant = "document-store[layout=vector,codec=none]"


@pytest.mark.slow
class TestOpenRows(DocumentStoreContract):
    variant = "document-store[layout=open,codec=snappy,sync=none]"
