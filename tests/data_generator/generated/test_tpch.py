"""lineitem: the specification's rows, types and values, however the program returns them."""

import datetime
import decimal
from pathlib import Path

import pyarrow as pa
import pytest

from data_generator.catalogue import resolve
from data_generator.errors import DataError
from data_generator.generated import tpch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (Path(tpch.sysconfig.get_path("scripts")) / "tpchgen-cli").exists(), reason="needs tpchgen-cli"
    ),
]


@pytest.fixture(scope="module")
def batches() -> list[pa.RecordBatch]:
    """Return several blocks. The program takes 1.5 s of CPU time even for few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tpch, "BATCH_ROWS", 25_000)
        patch.setattr(tpch, "_BLOCKS", tpch.csv.ReadOptions(block_size=1_000_000))
        return list(resolve("tpch-lineitem", {"scale": "0.01"}).batches())


@pytest.fixture
def lineitem(batches: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches)


def test_the_whole_table_has_the_specifications_rows_in_even_batches(
    lineitem: pa.Table, batches: list[pa.RecordBatch]
) -> None:
    assert [batch.num_rows for batch in batches] == [25_000, 25_000, 10_175]
    lineitem.validate(full=True)
    assert lineitem.num_rows == resolve("tpch-lineitem", {"scale": "0.01"}).rows == 60_175
    assert lineitem["l_orderkey"].to_pylist() == sorted(lineitem["l_orderkey"].to_pylist())
    assert sum(column.null_count for column in lineitem.columns) == 0


def test_the_first_row_is_the_one_that_everyone_knows(lineitem: pa.Table) -> None:
    """As dbgen writes it at scale factor 0.01, except for the comment, which the specification leaves to chance."""
    row = lineitem.slice(0, 1).to_pylist()[0]
    assert row.pop("l_comment") == "egular courts above the"
    assert row == {
        "l_orderkey": 1,
        "l_partkey": 1552,
        "l_suppkey": 93,
        "l_linenumber": 1,
        "l_quantity": decimal.Decimal("17.00"),
        "l_extendedprice": decimal.Decimal("24710.35"),
        "l_discount": decimal.Decimal("0.04"),
        "l_tax": decimal.Decimal("0.02"),
        "l_returnflag": "N",
        "l_linestatus": "O",
        "l_shipdate": datetime.date(1996, 3, 13),
        "l_commitdate": datetime.date(1996, 2, 12),
        "l_receiptdate": datetime.date(1996, 3, 22),
        "l_shipinstruct": "DELIVER IN PERSON",
        "l_shipmode": "TRUCK",
    }
    assert lineitem.schema.field("l_tax").type == pa.decimal128(15, 2)
    assert lineitem.schema.field("l_shipdate").type == pa.date32()


def test_rows_limit_it_and_the_size_of_the_blocks_changes_nothing(lineitem: pa.Table) -> None:
    dataset = resolve("tpch-lineitem", {"scale": "0.01"}, rows=54_321)
    assert dataset.rows == 54_321
    assert pa.Table.from_batches(dataset.batches()).equals(lineitem.slice(0, 54_321))
    assert resolve("tpch-lineitem", {"scale": "0.01"}, rows=10**9).rows == 60_175


def test_a_program_that_fails_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "tpchgen-cli"
    program.write_text("#!/bin/sh\necho 'no space left' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(tpch, "_program", lambda name: str(program))
    with pytest.raises(DataError, match="no space left"):
        list(resolve("tpch-lineitem", {"scale": "0.01"}).batches())


def test_a_missing_program_is_said_with_its_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tpch.sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataError, match=r"needs tpchgen-cli(.|\n)*pip install -e '.\[tpch\]'"):
        resolve("tpch-lineitem", {})
