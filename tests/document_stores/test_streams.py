"""Files of documents keep the contract; their bytes are what other programs of the format read."""

import pytest

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
    variant = "bson[engine=pymongo,codec=zstd,level=19]"
