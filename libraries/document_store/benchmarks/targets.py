"""Ratios, power cuts and kills of the document store: `python -m libraries.document_store.benchmarks.targets`.

Each ratio compares the best of several alternating calls of one run, so that load on the machine affects both sides.
Stores are made in a temporary folder and removed at the end. All reads are from warm pages.
"""

from __future__ import annotations

import random
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import click
import duckdb

from adapters.errors import RefusedData
from bench_runner.clock import now_ns
from bench_runner.machine.linux import files_below
from data_generator.catalogue import resolve
from document_stores.registry import DOCUMENT_STORES
from libraries.document_queries import (
    Aggregate,
    Compare,
    Constant,
    Count,
    Filter,
    GroupBy,
    Named,
    Order,
    Plan,
    TopK,
    field,
)
from libraries.document_store.json_text import rows_of
from libraries.document_store.layouts import LAYOUTS, LayoutName
from libraries.document_store.schema import Schema
from libraries.document_store.shredding import shred
from libraries.document_store.store import DocumentStore
from libraries.document_store.tests.store import cuts, kills
from libraries.document_store.values import ValueKind
from tests.selfbench.costs import Check, least_ns, print_checks

PIECE_BYTES = 1_000_000
"""Bytes of JSON per call."""
TWEET_BYTES = 2_900
"""Approximate JSON size of a document of `tweets-2016`."""
SENSOR_DOCUMENTS = 5_000
SHREDDED_DOCUMENTS = 2_000
OURS = "document-store[layout=amax]"
NESTED = ("parquet-nested[engine=duckdb,codec=zstd]", "parquet-nested[engine=pyarrow,codec=zstd]")
SIZED = {
    "cell": (200_000, "id"),
    "sensors": (10_000, "id"),
    "tweets": (5_000, "id"),
    "wos": (3_000, "UID"),
    "tweets-2016": (30_000, "id"),
    "bluesky-events": (100_000, "id"),
}
"""Documents to compare with nested Parquet, and their key."""
EVENTS = 200_000
EVENT_FIELDS = ("did", "time_us", "commit.collection")
EVENT_SQL = "SELECT commit.collection AS what, count(*) AS n FROM docs GROUP BY commit.collection"
INDEXES = ("user.id", "timestamp_ms")
KEY = re.compile(rb'^\{"id":(\d+)', re.MULTILINE)

TWO_COLUMNS = Plan(
    (
        GroupBy((Named("language", field("lang")),), (Aggregate("most", "max", field("retweet_count")),)),
        TopK((Order("most", descending=True),), 10),
    )
)
"""Reads 2 of about 275 columns."""


def lines_of(name: str, rows: int) -> bytes:
    """Return a generated data set as JSON Lines."""
    return b"".join(bytes(batch.column(0).buffers()[2]) for batch in resolve(name, {}, rows=rows).batches())


def pieces_of(lines: bytes) -> list[bytes]:
    """Split into pieces of whole lines, about PIECE_BYTES each."""
    pieces = []
    start = 0
    while start < len(lines):
        end = lines.find(b"\n", start + PIECE_BYTES) + 1 or len(lines)
        pieces.append(lines[start:end])
        start = end
    return pieces


def with_updates(lines: bytes) -> bytes:
    """Return the same documents, but give every other one the key of an earlier one."""
    chance = random.Random(1)
    earlier: list[bytes] = []

    def key(found: re.Match[bytes]) -> bytes:
        if earlier and chance.random() < 0.5:
            return b'{"id":' + chance.choice(earlier)
        earlier.append(found[1])
        return found[0]

    return KEY.sub(key, lines)


def ingested(folder: Path, layout: LayoutName, pieces: Sequence[bytes], indexes: Sequence[str]) -> tuple[int, int]:
    """Return the nanoseconds until everything is flushed, and until merges are done and the store is closed."""
    shutil.rmtree(folder, ignore_errors=True)
    store = DocumentStore.open(folder, layout=layout)
    for path in indexes:
        store.index(path)
    started = now_ns()
    for piece in pieces:
        store.upsert(piece)
    store.flush()
    flushed = now_ns()
    store.close()
    return flushed - started, now_ns() - started


def ingestion(folder: Path, times: int, lines: bytes) -> Iterator[Check]:
    """Measure inserts, then half updates with two indexes; layouts alternate."""
    for what, data, indexes, target in (
        ("inserts", lines, (), 0.75),
        ("half updates, two indexes", with_updates(lines), INDEXES, 0.65),
    ):
        pieces = pieces_of(data)
        best: dict[LayoutName, tuple[int, int]] = {}
        for _ in range(times):
            for layout in LAYOUTS:
                spent = ingested(folder / layout, layout, pieces, indexes)
                before = best.get(layout, spent)
                best[layout] = min(spent[0], before[0]), min(spent[1], before[1])
        for layout, (flushed, ended) in best.items():
            speeds = f"{len(data) * 1e3 / flushed:.1f}, {len(data) * 1e3 / ended:.1f} MB/s"
            is_target = layout == "amax" and not indexes
            met = len(data) * 1e3 / flushed >= 40 and len(data) * 1e3 / ended >= 20
            target_speeds = "40, 20" if is_target else "-"
            yield Check(f"{what}: {layout}, before and after merges", speeds, target_speeds, met)
        ratio = best["vector"][1] / best["amax"][1]
        yield Check(f"{what}: amax rate over vector's", f"{ratio:.2f}", f"at least {target}", ratio >= target)


def shredder(times: int, lines: bytes) -> Iterator[Check]:
    """Compare the C shredder with the Python one."""
    rows = rows_of(lines)[:SHREDDED_DOCUMENTS]
    schema = Schema.new("id", ValueKind.INTEGER)
    calls = {native: (lambda native=native: shred(rows, schema, use_native=native)) for native in (True, False)}
    spent = least_ns(times, calls)
    ratio = spent[False] / spent[True]
    yield Check("C shredder over the Python one, rate", f"{ratio:.1f} times", "at least 10", ratio >= 10)


def queries(folder: Path, times: int) -> Iterator[Check]:
    """Query the stores that `ingestion` left, and measure what they read."""
    with DocumentStore.open(folder / "amax") as amax, DocumentStore.open(folder / "vector") as vector:
        count = Plan((Count(),))
        amax.query(count)
        before = amax.stats().bytes_read
        amax.query(count)
        share = (amax.stats().bytes_read - before) / amax.stats().component_bytes
        yield Check("count(*) over amax, share of its bytes read", f"{share:.2%}", "-", None)
        ways = {
            "columns": lambda: amax.query(TWO_COLUMNS, "generated-columns"),
            "rows": lambda: vector.query(TWO_COLUMNS, "generated-rows"),
            "interpreted": lambda: amax.query(TWO_COLUMNS, "columns"),
        }
        assert ways["columns"]() == ways["rows"]() == ways["interpreted"]()
        spent = least_ns(times, ways)
    ratio = spent["rows"] / spent["columns"]
    yield Check("2 of 275 columns, generated: vector's time over amax's", f"{ratio:.1f}", "at least 8", ratio >= 8)
    ratio = spent["interpreted"] / spent["columns"]
    yield Check("interpreted columns over generated code", f"{ratio:.1f}", "at least 5", ratio >= 5)


def as_arrow(folder: Path, times: int) -> Iterator[Check]:
    """Compare fields as Arrow, filtered scans and SQL with a DuckDB file of the same events."""
    name = "bluesky-events"
    lines, file = lines_of(name, EVENTS), folder / "events.jsonl"
    file.write_bytes(lines)
    ingested(folder / "events", "amax", pieces_of(lines), ())
    with DocumentStore.open(folder / "events") as store, duckdb.connect(folder / "events.duckdb") as tables:
        tables.execute(f"CREATE TABLE docs AS SELECT * FROM read_json('{file}', sample_size = -1)")
        tables.execute("CHECKPOINT")
        low, high = tables.execute("SELECT min(time_us), max(time_us) FROM docs").fetchall()[0]
        one_percent = Compare(field("time_us"), "<", Constant(low + (high - low) // 100))
        fields = "SELECT " + ", ".join(f'{path} AS "{path}"' for path in EVENT_FIELDS) + " FROM docs"
        where = f" WHERE time_us < {low + (high - low) // 100}"
        calls = {
            "arrow": lambda: store.to_arrow(EVENT_FIELDS),
            "DuckDB": lambda: tables.sql(fields).to_arrow_table(),
            "some": lambda: store.to_arrow(EVENT_FIELDS, where=one_percent),
            "some of DuckDB": lambda: tables.sql(fields + where).to_arrow_table(),
            "scan": lambda: list(store.scan(where=one_percent)),
            "query": lambda: store.query(Plan((Filter(one_percent),))),
            "sql": lambda: store.sql(EVENT_SQL),
            "sql of DuckDB": lambda: tables.sql(EVENT_SQL).to_arrow_table(),
        }
        for ours, theirs in (("arrow", "DuckDB"), ("some", "some of DuckDB"), ("sql", "sql of DuckDB")):
            assert sorted(map(str, calls[ours]().to_pylist())) == sorted(map(str, calls[theirs]().to_pylist()))
        assert calls["scan"]() == calls["query"]()
        spent = least_ns(2 * times + 1, calls)
    ratio = spent["arrow"] / spent["DuckDB"]
    yield Check(f"to_arrow of 3 fields of {EVENTS:,} events over DuckDB", f"{ratio:.1f}", "at most 2", ratio <= 2)
    ratio = spent["scan"] / spent["query"]
    yield Check("scan(where) of 1 % over query of the same", f"{ratio:.2f}", "at most 1.2", ratio <= 1.2)
    for what, ours, theirs in (
        ("to_arrow(where) of 1 % over DuckDB", "some", "some of DuckDB"),
        ("SQL: groups of one field over DuckDB", "sql", "sql of DuckDB"),
    ):
        yield Check(what, f"{spent[ours] / spent[theirs]:.1f}", "-", None)


def sizes(folder: Path) -> Iterator[Check]:
    """Compare the size of sensors as columns and as rows with the same codec."""
    pieces = pieces_of(lines_of("sensors", SENSOR_DOCUMENTS))
    size = {}
    for layout in LAYOUTS:
        ingested(folder / "sensors", layout, pieces, ())
        size[layout] = sum(path.stat().st_size for path in (folder / "sensors").iterdir())
    ratio = size["open"] / size["amax"]
    yield Check("sensors: size of open over amax, zstd", f"{ratio:.1f}", "at least 5", ratio >= 5)


def stored_bytes(variant: str, location: Path, pieces: Sequence[bytes], key: str) -> int | None:
    """Return the bytes that a variant stores the documents in; None if it cannot store them."""
    engine, settings = DOCUMENT_STORES.engine(variant)
    store = engine(settings, threads=1)
    store.load_library()
    try:
        store.ingest(pieces, location, key)
    except RefusedData:
        return None
    return sum(path.stat().st_size for path in files_below(store.data_of(location)))


def beside_parquet(folder: Path) -> Iterator[Check]:
    """Compare each data set with the smallest nested Parquet that can store it, all with zstd."""
    for name, (rows, key) in SIZED.items():
        pieces = pieces_of(lines_of(name, rows))
        sizes = {
            variant: stored_bytes(variant, folder / f"{name}-{place}", pieces, key)
            for place, variant in enumerate((OURS, *NESTED))
        }
        ours, held = sizes.pop(OURS), [size for size in sizes.values() if size is not None]
        assert ours is not None
        ratio = ours / min(held) if held else None
        told = f"{ratio:.2f}" if ratio else "none holds it"
        yield Check(f"{name}: size over nested Parquet, zstd", told, "at most 1.2", ratio is None or ratio <= 1.2)


@click.command()
@click.option("--megabytes", default=1000, show_default=True, help="Size of `tweets-2016` as JSON.")
@click.option("--times", default=3, show_default=True, help="Number of measurements of each call.")
@click.option("--lives", default=1000, show_default=True, help="Number of power cuts; 0 for none.")
@click.option("--killed", default=300, show_default=True, help="Number of killed processes; 0 for none.")
def main(megabytes: int, times: int, lives: int, killed: int) -> None:
    """Print the figures of the document store and their targets."""
    lines = lines_of("tweets-2016", max(1, megabytes * 1_000_000 // TWEET_BYTES))
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="selfbench-") as name:
        folder = Path(name)
        print_checks("shredding", shredder(times, lines))
        print_checks("ingestion", ingestion(folder, times, lines))
        print_checks("queries", queries(folder, times))
        print_checks("as Arrow", as_arrow(folder, times))
        print_checks("sizes", chain(sizes(folder), beside_parquet(folder)))
    if lives:
        cuts.main(lives)
    if killed:
        click.echo(f"{killed} kills; {kills.main(killed)} operations were acknowledged, and all are present")


if __name__ == "__main__":
    main()
