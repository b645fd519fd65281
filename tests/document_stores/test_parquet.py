"""Documents in Parquet keep the contract, as columns and as VARIANT."""

import pytest

from tests.contracts.documents import DocumentStoreContract


class TestNestedByPyarrow(DocumentStoreContract):
    variant = "parquet-nested[engine=pyarrow,codec=zstd]"


@pytest.mark.slow
class TestNestedByDuckdb(DocumentStoreContract):
    variant = "parquet-nested[engine=duckdb]"


class TestVariant(DocumentStoreContract):
    variant = "parquet-variant[engine=duckdb,codec=zstd]"
