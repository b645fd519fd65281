"""The Dataset: engines push columns and filters into it, read less, and get the same rows as from pyarrow."""

import os
import pickle
import random
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from libraries.filters.tests.random_tables import TYPES
from libraries.filters.tests.random_tables import table as random_table
from libraries.filters.tests.test_expressions import random_expression
from libraries.near_storage.client.dataset import NearStorageDataset
from libraries.near_storage.errors import NotFoundError, RequestError
from libraries.near_storage.predicates import wire
from libraries.near_storage.tests.serving.cluster import Cluster

ROOT = Path(__file__).parents[4]

FILTERS = {
    "pushed": pc.field("key") < 700,
    "in": pc.field("key").isin([3, 1_500, None]),
    "text": pc.field("name") == "name 5",
    "null": pc.field("share").is_null(),
    "nan is null": pc.field("share").is_null(nan_is_null=True),
    "not": ~(pc.field("share") > 10),
    "or": (pc.field("share") > 100) | (pc.field("key") == 0),
    "partly pushed": (pc.field("key") >= 3_000) & (pc.utf8_length(pc.field("name")) == 7),
    "not pushed": pc.utf8_length(pc.field("name")) == 6,
    "arithmetic": pc.field("key") * 2 < pc.field("share"),
    "everything": pc.scalar(True),
    "nothing": pc.field("key") < 0,
}


@pytest.fixture
def dataset(served: Cluster) -> NearStorageDataset:
    return served.client().dataset("t")


def sent_bytes(served: Cluster) -> int:
    return sum(node.sent.batch_bytes for node in served.nodes)


def test_what_it_is(dataset: NearStorageDataset, table: pa.Table):
    assert isinstance(dataset, ds.Dataset)
    assert dataset.schema.equals(table.schema)
    assert "version 1" in repr(dataset)


def test_all_rows(dataset: NearStorageDataset, table: pa.Table):
    assert dataset.to_table().equals(table)
    assert pa.Table.from_batches(dataset.to_batches(batch_size=100)).equals(table)
    assert dataset.scanner().to_reader().read_all().equals(table)
    assert dataset.count_rows() == len(table)


@pytest.mark.parametrize("name", FILTERS)
def test_filters_are_exact(dataset: NearStorageDataset, table: pa.Table, name: str):
    wanted = FILTERS[name]
    rows = table.filter(wanted)
    assert dataset.to_table(filter=wanted).equals(rows)
    assert dataset.to_table(columns=["share"], filter=wanted).equals(rows.select(["share"]))
    assert dataset.filter(wanted).to_table(columns=["name", "key"]).equals(rows.select(["name", "key"]))
    assert dataset.count_rows(filter=wanted) == len(rows)
    assert dataset.filter(wanted).count_rows() == len(rows)
    assert dataset.head(5, filter=wanted).equals(rows.slice(0, 5))
    more = rows.filter(pc.field("key") > 200)
    assert dataset.filter(pc.field("key") > 200).to_table(filter=wanted).equals(more)
    assert dataset.filter(pc.field("key") > 200).filter(wanted).count_rows() == len(more)
    parts = [part.to_table(filter=wanted) for part in dataset.get_fragments(wanted)]
    assert pa.concat_tables([table.schema.empty_table(), *parts]).equals(rows)


def test_columns_are_names_or_expressions(dataset: NearStorageDataset, table: pa.Table):
    columns = {"twice": pc.field("key") * 2, "name": pc.field("name")}
    doubled = dataset.to_table(columns=columns, filter=FILTERS["pushed"])
    assert doubled["twice"].to_pylist() == [2 * key for key in range(700)]
    assert dataset.to_table(columns=[]).num_rows == len(table)
    assert dataset.to_table(columns=["name", "key"]).column_names == ["name", "key"]
    with pytest.raises(pa.ArrowInvalid, match="nothing"):
        dataset.to_table(columns=["nothing"])


def test_rows_by_number(dataset: NearStorageDataset, table: pa.Table):
    numbers = pa.array([3_999, 0, 1_234, 0])
    assert dataset.take(numbers).equals(table.take(numbers))
    assert dataset.scanner().take(numbers).equals(table.take(numbers))


def test_what_is_made_in_memory(dataset: NearStorageDataset, table: pa.Table):
    other = ds.dataset(pa.table({"key": [1, 2, 3], "more": ["a", "b", "c"]}))
    assert dataset.sort_by([("key", "descending")]).to_table().equals(table.sort_by([("key", "descending")]))
    assert dataset.join(other, "key", join_type="inner").to_table().num_rows == 3
    assert other.to_table().num_rows == 3
    assert dataset.join_asof(other, "key", [], -1).to_table().num_rows == len(table)


def test_fewer_columns_by_schema(dataset: NearStorageDataset, table: pa.Table):
    fewer = dataset.replace_schema(pa.schema([table.schema.field("name")]))
    assert fewer.to_table().equals(table.select(["name"]))
    for other in (pa.schema([("name", pa.int64())]), pa.schema([("none", pa.string())])):
        with pytest.raises(TypeError):
            dataset.replace_schema(other)


def test_partitions_are_datasets(dataset: NearStorageDataset, table: pa.Table):
    parts = list(dataset.get_fragments())
    assert len(parts) == 8
    assert parts[2].to_table().equals(table.slice(1_000, 500))
    assert len(list(dataset.get_fragments(FILTERS["pushed"]))) == 2
    assert parts[0].physical_schema.equals(table.schema)


@pytest.mark.parametrize("name", ["everything", "pushed", "text", "not pushed"])
def test_the_first_rows_of_each_partition(dataset: NearStorageDataset, table: pa.Table, name: str):
    """A partition has its own first rows, even if earlier partitions have enough."""
    for number, part in enumerate(dataset.get_fragments()):
        rows = table.slice(500 * number, 500).filter(FILTERS[name])
        assert part.head(3, filter=FILTERS[name]).equals(rows.slice(0, 3))


def test_it_is_not_pickled(dataset: NearStorageDataset):
    with pytest.raises(TypeError, match="endpoints"):
        pickle.dumps(dataset)


def test_a_table_that_is_not_there(served: Cluster):
    with pytest.raises(NotFoundError):
        served.client().dataset("none")


def test_what_bypasses_the_methods_is_an_error(dataset: NearStorageDataset, table: pa.Table, tmp_path: Path):
    for bypass in (
        lambda: ds.Scanner.from_dataset(dataset).to_table(),
        lambda: ds.UnionDataset(table.schema, [dataset]).to_table(),
        lambda: ds.dataset([dataset]).head(3),
    ):
        with pytest.raises(NotImplementedError, match="use the Dataset's scanner"):
            bypass()
    assert ds.Dataset.to_table(dataset).equals(table)


def test_it_can_be_written_elsewhere(dataset: NearStorageDataset, table: pa.Table, tmp_path: Path):
    ds.write_dataset(dataset.scanner(), tmp_path, format="parquet")
    assert ds.dataset(tmp_path).to_table().sort_by("key").equals(table)


# --- engines ---------------------------------------------------------------------------------------------


QUERIES = [
    "SELECT count(*), sum(key) FROM data WHERE key BETWEEN 100 AND 250",
    "SELECT name, avg(share) FROM data WHERE share > 50 AND name LIKE 'name 1%' GROUP BY name ORDER BY name",
    "SELECT * FROM data WHERE name IN ('name 3', 'name 4') AND share IS NULL ORDER BY key",
    "SELECT key FROM data WHERE share IS NOT NULL OR key < 5 ORDER BY key DESC LIMIT 9",
    "SELECT a.key FROM data a JOIN data b ON a.key = b.key + 1 WHERE a.key < 10 ORDER BY 1",
    "SELECT count(*) FROM data",
    "SELECT key FROM data LIMIT 3",
]


@pytest.mark.parametrize("query", QUERIES)
def test_duckdb(dataset: NearStorageDataset, table: pa.Table, query: str):
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("data", dataset)
        found = connection.sql(query).fetchall()
        connection.unregister("data")
        connection.register("data", table)
        assert found == connection.sql(query).fetchall()


@pytest.mark.parametrize(
    "query",
    [
        lambda frame: frame.filter(pl.col("key") < 700).select("name"),
        lambda frame: frame.filter(pl.col("share").is_null() & pl.col("name").is_in(["name 1", "name 2"])),
        lambda frame: frame.group_by("name").agg(pl.col("share").sum()).sort("name"),
        lambda frame: frame.filter(pl.col("key") > 100).head(4),
        lambda frame: frame.select(pl.len()),
    ],
)
def test_polars(dataset: NearStorageDataset, table: pa.Table, query):
    found = query(pl.scan_pyarrow_dataset(dataset)).collect()
    assert found.equals(query(pl.from_arrow(table).lazy()).collect())


def test_engines_read_less(served: Cluster, dataset: NearStorageDataset, table: pa.Table):
    """A query for one of eight partitions and one of three columns must receive less than a tenth of the bytes."""

    def cost(work) -> int:
        before = sent_bytes(served)
        work()
        return sent_bytes(served) - before

    whole = cost(dataset.to_table)
    with duckdb.connect() as connection:
        connection.register("data", dataset)
        assert cost(lambda: connection.sql("SELECT key FROM data WHERE key < 300").fetchall()) < whole / 10
    lazy = pl.scan_pyarrow_dataset(dataset).filter(pl.col("key") < 300).select("key")
    assert cost(lazy.collect) < whole / 10
    assert cost(lambda: dataset.to_table(columns=["key"], filter=pc.field("key") < 300)) < whole / 10
    assert cost(lambda: dataset.head(3)) < whole / 10
    assert cost(dataset.count_rows) < whole / 10


# --- no attribute ends the process -----------------------------------------------------------------------


WALK = """
import sys
import pyarrow as pa, pyarrow.compute as pc, pyarrow.dataset as ds
from libraries.near_storage.client.connection import connect

name = sys.argv[3]
client = connect(sys.argv[1], sys.argv[2])
dataset = client.dataset("t")
other = ds.dataset(pa.table({"key": [1, 2]}))
expression = pc.field("key") < 5
ARGUMENTS = {
    "head": [3], "take": [pa.array([1])], "filter": [expression], "sort_by": ["key"], "join": [other, "key"],
    "join_asof": [other, "key", [], 1], "replace_schema": [dataset.schema], "_get_fragments": [expression],
    "_scanner_options": [{}], "__setstate__": [()], "__getattribute__": ["schema"], "__setattr__": ["x", 1],
    "__delattr__": ["x"], "__format__": [""], "__reduce_ex__": [2],
    **{name: [dataset] for name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")},
}
for arguments in (ARGUMENTS.get(name, []), [], [None], [dataset], [expression]):
    try:
        found = getattr(dataset, name)
        if callable(found):
            found = found(*arguments)
        if hasattr(found, "__next__"):
            found = list(found)
        repr(found)
    except Exception as error:
        print(type(error).__name__)
    else:
        print("answered")
"""


def test_no_attribute_ends_the_process(served: Cluster):
    """Walk several attributes in one process, which prints the one it dies in; one process each would take minutes."""
    names = [name for name in dir(ds.UnionDataset) if name not in ("__class__", "__init__", "__new__", "__doc__")]
    assert {"to_table", "children", "_scan_options", "schema", "__reduce__"} <= set(names)
    script = WALK.replace("name = sys.argv[3]\n", "").replace(
        "for arguments", "for name in sys.argv[3].split():\n  print(name, flush=True)\n  for arguments"
    )
    head, loop = script.split("  for arguments", 1)
    loop = "  for arguments" + loop.replace("\n", "\n  ")
    done = subprocess.run(
        [sys.executable, "-c", head + loop, served.uri, served.token, " ".join(names)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, (done.stdout.split("\n")[-10:], done.stderr[-2_000:])
    lines = done.stdout.split("\n")
    for name in ("to_table", "head", "count_rows", "filter", "join", "take", "get_fragments", "schema", "sort_by"):
        assert lines[lines.index(name) + 1] == "answered"
    assert lines[lines.index("__reduce__") + 1] == "TypeError"


def test_random_filters_of_random_tables(served: Cluster):
    """The Dataset returns what Arrow filters in memory, row by row, wherever it is filtered; `long_runs` has more."""
    rng, client, compared = random.Random(7), served.client(), 0
    for number in range(6):
        types = [type for type in rng.choices(TYPES, k=3) if not pa.types.is_null(type)]
        rows = random_table(rng, [pa.int64(), *types], 9).remove_column(0)
        data = pa.table([range(9), *rows.columns], names=["row", *rows.column_names])
        try:
            client.put(f"random{number}", data, rows_per_partition=4)
        except RequestError:
            continue
        found = client.dataset(f"random{number}")
        for _ in range(9 if types else 0):
            expression = random_expression(rng, data, rng.choice((0, 1, 2)))
            try:
                expected = data.filter(expression)["row"].to_pylist()
            except pa.ArrowException:
                continue
            assert found.to_table(columns=["row"], filter=expression)["row"].to_pylist() == expected, expression
            assert found.count_rows(expression) == len(expected), expression
            compared += 1
    assert compared > 24


def test_what_arrow_refuses_to_compare_is_answered(served: Cluster):
    """Arrow narrows an integer compared with a fraction to float32, and cannot filter string views."""
    data = pa.table({"id": [20_000_001, 3, None], "l": pa.array([["a"], ["b"], []], pa.list_(pa.string_view()))})
    client = served.client()
    client.put("refused", data)
    found = client.dataset("refused")
    assert found.to_table(filter=pc.field("id") > 0.5)["id"].to_pylist() == [20_000_001, 3]
    assert found.to_table(filter=pc.field("id") == 3)["l"].to_pylist() == [["b"]]


def test_a_list_that_is_too_long_to_send_is_filtered_here(dataset: NearStorageDataset, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(wire, "MOST_BYTES", wire.MOST_BYTES // 10)
    names = [f"name {number:0120}" for number in range(900)] + ["name 7"]
    assert dataset.to_table(filter=pc.field("name").isin(names)).num_rows > 0
    listed = ", ".join(f"'{name}'" for name in names)
    assert duckdb.sql(f"SELECT count(*) FROM dataset WHERE name IN ({listed})").fetchall()[0][0] > 0
