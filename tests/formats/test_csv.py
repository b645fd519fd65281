"""CSV keeps the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.csv import CsvDuckdb
from tests.contracts.streams import TABLES, PlantedFault, fed
from tests.contracts.tabular import SettingContract, TabularFormatContract, WholeTableContract


class TestCsv(TabularFormatContract):
    variant = "csv[engine=pandas]"


class TestCsvGzip(SettingContract):
    variant = "csv[engine=pandas,codec=gzip,level=1]"


@pytest.mark.slow
class TestCsvKeepingWords(WholeTableContract):
    variant = "csv[engine=pandas,keep_default_na=false]"


@pytest.mark.slow
class TestCsvParsedByPyarrow(TabularFormatContract):
    variant = "csv[engine=pandas,parser=pyarrow]"


class TestCsvByPyarrow(TabularFormatContract):
    variant = "csv[engine=pyarrow]"


class TestCsvByPolars(TabularFormatContract):
    variant = "csv[engine=polars]"


class TestCsvByDask(TabularFormatContract):
    variant = "csv[engine=dask]"


class TestCsvByDuckdb(TabularFormatContract):
    variant = "csv[engine=duckdb]"

    def test_no_copy_is_stopped_halfway_by_its_source(self, adapter: CsvDuckdb, place: Path) -> None:
        """A source that stops DuckDB causes an `InvalidInputException`, or an endless wait."""
        table = TABLES["many rows"]
        with pytest.raises(PlantedFault):
            adapter.save_stream(table.schema, fed(adapter, table, 300, 15), place / "stream.csv")
        assert list(place.iterdir()) == []
