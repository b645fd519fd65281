"""The table `lineitem` of TPC-H, made by the tpchgen-cli package: decimals, dates and short texts.

tpchgen-cli writes CSV to a pipe, from which the rows are read. Nothing is written to disk, and the first rows arrive
immediately.
"""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from data_generator.dataset import BATCH_ROWS, Dataset
from data_generator.errors import DataError

VERSION = 1

ROWS: Mapping[str, int] = {"0.01": 60_175, "0.1": 600_572, "1": 6_001_215, "10": 59_986_052}
"""Scale factor -> number of rows of lineitem. The specification of TPC-H (4.2.5.1, table 3) states the numbers for the
scale factors from 1 on."""

_DECIMAL = pa.decimal128(15, 2)
SCHEMA = pa.schema(
    [
        ("l_orderkey", pa.int64()),
        ("l_partkey", pa.int64()),
        ("l_suppkey", pa.int64()),
        ("l_linenumber", pa.int32()),
        ("l_quantity", _DECIMAL),
        ("l_extendedprice", _DECIMAL),
        ("l_discount", _DECIMAL),
        ("l_tax", _DECIMAL),
        ("l_returnflag", pa.string()),
        ("l_linestatus", pa.string()),
        ("l_shipdate", pa.date32()),
        ("l_commitdate", pa.date32()),
        ("l_receiptdate", pa.date32()),
        ("l_shipinstruct", pa.string()),
        ("l_shipmode", pa.string()),
        ("l_comment", pa.string()),
    ]
)
"""Names and types as in the specification. Columns are nullable, as in the other data sets, but have no nulls."""

_TYPES = csv.ConvertOptions(column_types=SCHEMA)
_BLOCKS = csv.ReadOptions(block_size=1 << 24)


def build(name: str, rows: int | None, parameters: Mapping[str, str]) -> Dataset:
    """Return the first `rows` rows (default: all) of lineitem at the scale factor `scale`.

    Raises DataError if tpchgen-cli is not installed.
    """
    scale = parameters["scale"]
    count = ROWS[scale] if rows is None else min(rows, ROWS[scale])
    program = _program(name)
    return Dataset(name, count, SCHEMA, VERSION, lambda: _batches(program, name, scale, count))


def _program(name: str) -> str:
    beside_python = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    program = str(beside_python) if beside_python.exists() else shutil.which("tpchgen-cli")
    if program is None:
        raise DataError(f"{name} needs tpchgen-cli, which is not installed.", "Run: pip install -e '.[tpch]'")
    return program


def _batches(program: str, name: str, scale: str, rows: int) -> Iterator[pa.RecordBatch]:
    command = [program, "csv", "--scale-factor", scale, "--tables", "lineitem", "--stdout"]
    shown = " ".join(command)
    made = 0
    with tempfile.TemporaryFile() as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as maker:
        try:
            for batch in _evened(csv.open_csv(maker.stdout, convert_options=_TYPES, read_options=_BLOCKS)):
                part = batch.slice(0, rows - made)
                made += part.num_rows
                yield part
                if made == rows:
                    return
        except pa.ArrowInvalid as error:
            errors.seek(0)
            said = errors.read()[-300:].decode(errors="replace").strip()
            raise DataError(f"{name}: {shown} failed after {made:,} rows: {said or error}") from error
        finally:
            maker.kill()
    raise DataError(f"{name}: {shown} ended after {made:,} of {rows:,} rows.")


def _evened(blocks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the blocks in batches of BATCH_ROWS rows. The last batch may be shorter."""
    waiting = SCHEMA.empty_table()
    for block in blocks:
        waiting = pa.concat_tables([waiting, pa.Table.from_batches([block])])
        while waiting.num_rows >= BATCH_ROWS:
            yield from waiting.slice(0, BATCH_ROWS).combine_chunks().to_batches()
            waiting = waiting.slice(BATCH_ROWS)
    yield from waiting.combine_chunks().to_batches()
