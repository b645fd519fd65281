"""Compare the sizes of F3 files with Parquet's, and the time to write them: part of `make selfbench-f3`."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench_runner.clock import cpu_ns
from bench_runner.results.statistics import ratio_interval
from data_generator.catalogue import resolve
from libraries import f3
from tests.selfbench.costs import Check, told, within

DISTINCT = (500, 1000, 2000, 5000, 20_000, 100_000)
WIDTHS = (4, 8, 16, 36, 108, 400)
TABLES = ("core", "bi", "classic", "geo", "log", "ml")
_WORDS = (
    "the", "of", "and", "new", "best", "cheap", "buy", "summer", "winter", "red", "blue", "camera", "phone", "house",
    "garden", "car", "review", "price", "guide", "how", "make", "travel", "city", "hotel", "flight", "music", "video",
    "game", "book", "recipe", "health", "sport", "news", "today", "world", "market", "free", "online",
)  # fmt: skip
MODULE_BYTES = 84_000
"""Every file holds the decoder, which is not the size of the data. Wide texts of few rows would hide it."""


def of_distinct_values(rows: int) -> Iterator[Check]:
    """Yield, for each width of values, the largest ratio to uncompressed Parquet over numbers of distinct values.

    Values are random, shuffled or sorted, and in wide columns fewer, so that a column has up to 100 MB.
    """
    rng = np.random.default_rng(1)
    for width in WIDTHS:
        found: dict[str, float] = {}
        for distinct in DISTINCT:
            values = _values(width, distinct, rng)
            places = rng.integers(0, distinct, rows if width <= 36 else rows // 4)
            for order, chosen in (("shuffled", places), ("sorted", np.sort(places))):
                table = pa.table({"a": values.take(pa.array(chosen))})
                ours, _ = _written_f3(table)
                theirs, _ = _written_parquet(table, "none")
                found[f"{distinct:,} {order}"] = (ours - MODULE_BYTES) / theirs
        worst = max(found, key=lambda name: found[name])
        what = f"column of {width}-byte values, {worst}, the worst: F3/Parquet"
        yield Check(what, f"{found[worst]:.3f}", "at most 1.1", found[worst] <= 1.1)


def of_tables(rows: int, rounds: int) -> Iterator[Check]:
    """Yield sizes of realistic tables, and the CPU time of writing them, compared with Parquet with zstd."""
    tables = {name: pa.Table.from_batches(resolve(name, {}, rows=rows).batches()) for name in TABLES}
    tables["lineitem"] = lineitem()
    tables["URLs and titles"] = _urls(rows)
    for name, table in tables.items():
        ours: dict[int, float] = {}
        theirs: dict[int, float] = {}
        for number in range(-1, rounds):
            size, spent = _written_f3(table)
            other, theirs_spent = _written_parquet(table, "zstd")
            if number >= 0:
                ours[number], theirs[number] = spent, theirs_spent
        ratio = (size - MODULE_BYTES) / other
        yield Check(f"size of {name}: F3/Parquet zstd", f"{ratio:.3f}", "at most 1.05", ratio <= 1.05)
        time = ratio_interval(ours, theirs)
        met = None if time is None else within(time, 0, 1.0)
        yield Check("  CPU time of writing it", "no figure" if time is None else told(time), "at most 1", met)


def lineitem() -> pa.Table:
    """Return TPC-H's lineitem of scale factor 0.1."""
    return pa.Table.from_batches(resolve("tpch-lineitem", {"scale": "0.1"}).batches())


def _values(width: int, distinct: int, rng: np.random.Generator) -> pa.Array:
    if width <= 8:
        return pa.array(rng.integers(0, 1 << (8 * width - 2), distinct).astype(f"i{width}"))
    letters = rng.integers(33, 127, (distinct, width)).astype(np.uint8)
    return pa.array([bytes(row).decode() for row in letters])


def _urls(rows: int) -> pa.Table:
    rng = np.random.default_rng(5)
    places, ends = ("shop", "news", "travel", "market", "photo", "garden"), ("com", "de", "co.uk", "ru")
    hosts = np.array([f"www.{place}{extra}.{end}" for place in places for extra in ("", "world", "24") for end in ends])
    words = np.array(_WORDS)
    host = hosts[rng.zipf(1.5, rows) % len(hosts)]
    chosen = words[rng.integers(0, len(words), (rows, 7))]
    lengths, numbers = rng.integers(2, 7, rows), rng.integers(10_000, 9_999_999, rows)
    urls, titles = [], []
    for name, some, length, number in zip(host, chosen, lengths, numbers, strict=True):
        urls.append(f"https://{name}/{some[0]}/{'-'.join(some[:length])}-{number}.html?ref={number % 977}")
        titles.append(f"{' '.join(some[:length]).title()} | {name.split('.')[1].title()}")
    return pa.table({"url": urls, "title": titles, "id": numbers})


def _written_f3(table: pa.Table) -> tuple[int, int]:
    out = io.BytesIO()
    started = cpu_ns()
    f3.write(table, out)
    return out.tell(), cpu_ns() - started


def _written_parquet(table: pa.Table, codec: str) -> tuple[int, int]:
    out = io.BytesIO()
    started = cpu_ns()
    pq.write_table(table, out, compression=codec)
    return out.tell(), cpu_ns() - started
