"""Our store next to its peers: `python -m libraries.document_store.benchmarks.json_bench`.

The questions are JSONBench's five, and those of the paper about two other data sets, for which nothing was tuned. Our
store has its default settings: it keeps decoded columns in a read cache of limited size, as DuckDB keeps blocks of its
file. Both use one thread, except in the column for two threads: our store always answers a question in one thread.

Stores alternate, all files are in the page cache, and the best of several times counts. All answers must be equal.
Stores are made in a temporary folder and removed at the end.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import click

from adapters.document_store import DocumentHandle, DocumentStoreAdapter, first_difference, identical
from bench_runner.clock import now_ns
from bench_runner.machine.linux import files_below
from bench_runner.suites.document_questions import CELL, EVENTS, TWEETS, questions_of
from document_stores.registry import DOCUMENT_STORES
from libraries.document_store.benchmarks.targets import lines_of, pieces_of
from libraries.document_store.store import DocumentStore
from tests.selfbench.costs import MARKS, Check, least_ns, print_checks

OURS, TARGET = "document-store[layout=amax,pages=kept]", "duckdb-variant"
"""Our store with its default settings, and the store to compare it with."""
PEERS = (
    *("document-store[layout=amax]", "document-store[layout=vector,pages=kept]", "duckdb-json", "duckdb-nested"),
    *("parquet-nested[engine=duckdb,codec=zstd]", "sqlite-json"),
)
ROWS, NESTED = "document-store[layout=vector,pages=kept]", "duckdb-nested"
OTHERS = {CELL: 200_000, TWEETS: 10_000}
"""Data sets for which nothing was tuned, and their documents."""
KEYS = 100
"""Documents of one look-up."""
MOST, MOST_OF_OTHERS = 1.0, 1.2
"""Targets: our time over that of DuckDB."""
MOST_OF_LOOK_UP = 0.7
"""Target: 25 ms for 100 keys where DuckDB's columns take 35."""
MOST_OF_INGESTION = 1.5
INGESTED, MEMTABLE_BYTES = 10_000, 4 << 20


def adapter_of(variant: str, threads: int = 1) -> DocumentStoreAdapter:
    """Return the loaded adapter of a variant."""
    engine, settings = DOCUMENT_STORES.engine(variant)
    store = engine(settings, threads=threads)
    store.load_library()
    return store


def stored(variants: Sequence[str], folder: Path, lines: bytes) -> dict[str, Path]:
    """Store all documents in each variant; return where they are, after all background work has finished."""
    places = {}
    for number, variant in enumerate(variants):
        store = adapter_of(variant)
        places[variant] = folder / f"{number}{store.suffix}"
        started = now_ns()
        store.ingest(pieces_of(lines), places[variant])
        click.echo(f"  {variant}: stored in {(now_ns() - started) / 1e9:.0f} s", err=True)
    return places


def size_bytes(variant: str, location: Path) -> int:
    """Return the bytes of the files of a stored copy."""
    return sum(path.stat().st_size for path in files_below(adapter_of(variant).data_of(location)))


def first_ns(times: int, places: Mapping[str, Path], plan: str) -> dict[str, int]:
    """Return the best time of a question that is the first one after opening. Open once more, to import libraries."""
    least: dict[str, int] = {}
    for _ in range(times + 1):
        for variant, location in places.items():
            with closing(adapter_of(variant).open(location)) as handle:
                handle.prepare(plan)
                started = now_ns()
                handle.query(plan)
                spent = now_ns() - started
            least[variant] = min(least.get(variant, spent), spent)
    return least


def check_answers(name: str, plan: str, handles: Mapping[str, DocumentHandle]) -> None:
    """Raise an error unless all stores give the same answer."""
    for handle in handles.values():
        handle.prepare(plan)
    wanted = handles[OURS].query(plan)
    for variant, handle in handles.items():
        if not identical(handle.query(plan), wanted):
            raise click.ClickException(f"{name}: {variant} gives another answer than {OURS}")


COLUMNS = "  {:<9}{:>12}{:>12}{:>7}{:>15}{:>16}{:>18}  {}"
HEADS = ("first of ours", "first of DuckDB", "DuckDB, 2 threads")
"""The first question after opening, and what is measured next to the target."""
THREADED = "duckdb-variant with two threads"


def compared(times: int, dataset: str, places: Mapping[str, Path], most: float) -> None:
    """Print the times of our store and of DuckDB for each question about a data set. Their ratio has a target."""
    two = {variant: places[variant] for variant in (OURS, TARGET)}
    questions = questions_of(dataset)
    first = {name: first_ns(1, two, question.plan) for name, question in questions.items()}
    # DuckDB opens a file with one number of threads at a time.
    copy = shutil.copy(two[TARGET], two[TARGET].with_name(f"copy{two[TARGET].suffix}"))
    click.echo(COLUMNS.format("question", "ours", "DuckDB", "ratio", *HEADS, "").rstrip())
    with ExitStack() as stack:
        handles = {each: stack.enter_context(closing(adapter_of(each).open(place))) for each, place in two.items()}
        handles[THREADED] = stack.enter_context(closing(adapter_of(TARGET, threads=2).open(Path(copy))))
        for name, question in questions.items():
            check_answers(name, question.plan, handles)
            spent = least_ns(times, {each: partial(one.query, question.plan) for each, one in handles.items()})
            ratio = spent[OURS] / spent[TARGET]
            shown = (spent[OURS], spent[TARGET]), (first[name][OURS], first[name][TARGET], spent[THREADED])
            before, after = ([f"{each / 1e6:.1f} ms" for each in part] for part in shown)
            click.echo(COLUMNS.format(name, *before, f"{ratio:.2f}", *after, f"at most {most}: {MARKS[ratio <= most]}"))
        kept = handles[OURS]._store.stats().cached_bytes  # type: ignore[attr-defined]
    ours, theirs = (f"{size_bytes(each, place) / 1e6:.1f} MB" for each, place in two.items())
    click.echo(f"  on disk: ours {ours}, DuckDB {theirs}; in our cache: {kept / 1e6:.1f} MB")


def peers(times: int, places: Mapping[str, Path]) -> Iterator[Check]:
    """Yield the time of each of JSONBench's questions for each store, as a multiple of ours."""
    with ExitStack() as stack:
        handles = {each: stack.enter_context(closing(adapter_of(each).open(place))) for each, place in places.items()}
        for name, question in questions_of(EVENTS).items():
            check_answers(name, question.plan, handles)
            spent = least_ns(times, {each: partial(one.query, question.plan) for each, one in handles.items()})
            for variant, nanoseconds in spent.items():
                shown = f"{nanoseconds / 1e6:.1f} ms, {nanoseconds / spent[OURS]:.2f} of ours"
                yield Check(f"{name}: {variant}", shown, "-", True)


def look_ups(times: int, places: Mapping[str, Path], rows: int) -> Iterator[Check]:
    """Compare look-ups of documents by their keys."""
    variants = (OURS, "document-store[layout=amax]", ROWS, NESTED)
    with ExitStack() as stack:
        handles = {each: stack.enter_context(closing(adapter_of(each).open(places[each]))) for each in variants}
        every = [document["id"] for batch in handles[OURS].scan([("id",)]) for document in batch]
        assert len(every) == rows
        keys = random.Random(1).sample(every, KEYS)
        wanted = handles[OURS].get(keys)
        assert [document and document["id"] for document in wanted] == keys
        for variant, handle in handles.items():
            found = [document for document in handle.get(keys) if document is not None]
            difference = first_difference(
                [each for each in wanted if each is not None], found, adapter_of(variant).losses
            )
            if difference:
                raise click.ClickException(f"{variant}: {difference}")
        spent = least_ns(times, {each: partial(handle.get, keys) for each, handle in handles.items()})
    for variant in variants:
        yield Check(f"{KEYS} keys: {variant}", f"{spent[variant] / 1e6:.1f} ms", "-", True)
    ratio = spent[OURS] / spent[NESTED]
    yield Check(f"{KEYS} keys: amax over DuckDB's columns", f"{ratio:.2f}", f"at most {MOST_OF_LOOK_UP}",
                ratio <= MOST_OF_LOOK_UP)  # fmt: skip
    yield Check(f"{KEYS} keys: amax over vector", f"{spent[OURS] / spent[ROWS]:.2f}", "-", True)


def ingestion(times: int, folder: Path) -> Iterator[Check]:
    """Compare storing wide documents through a small memtable, until all merges are done."""
    pieces = pieces_of(lines_of(TWEETS, INGESTED))

    def store(layout: str) -> None:
        shutil.rmtree(folder / "ingested", ignore_errors=True)
        with DocumentStore.open(folder / "ingested", layout=layout, memtable_bytes=MEMTABLE_BYTES) as store:  # type: ignore
            for piece in pieces:
                store.upsert(piece)

    spent = least_ns(times, {layout: partial(store, layout) for layout in ("amax", "vector")})
    ratio = spent["amax"] / spent["vector"]
    what = f"{INGESTED:,} wide tweets, memtable of {MEMTABLE_BYTES >> 20} MiB: amax over vector"
    yield Check(what, f"{ratio:.2f}", f"at most {MOST_OF_INGESTION}", ratio <= MOST_OF_INGESTION)


@click.command()
@click.option("--rows", default=(200_000, 1_000_000), show_default=True, multiple=True, help="Events; may be repeated.")
@click.option("--times", default=5, show_default=True, help="Number of runs of each question on each store.")
@click.option("--with-peers/--without-peers", default=True, show_default=True, help="Also measure other stores.")
def main(rows: Sequence[int], times: int, with_peers: bool) -> None:
    """Print our store's times for questions, look-ups and writes, and their ratios to those of other stores."""
    for number, count in enumerate(rows):
        with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="selfbench-") as name:
            chosen = [OURS, TARGET]
            if number == 0:
                chosen += PEERS if with_peers else [each for each in PEERS if each in (PEERS[0], ROWS, NESTED)]
            places = stored(chosen, Path(name), lines_of(EVENTS, count))
            click.echo(f"JSONBench, {count:,} events")
            compared(times, EVENTS, places, MOST)
            if number == 0:
                print_checks(f"look-ups, {count:,} events", look_ups(times, places, count))
            if number == 0 and with_peers:
                print_checks(f"JSONBench, {count:,} events, all stores", peers(times, places))
    for dataset, count in OTHERS.items():
        with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="selfbench-") as name:
            places = stored((OURS, TARGET), Path(name), lines_of(dataset, count))
            click.echo(f"{dataset}, {count:,} documents, for which nothing was tuned")
            compared(times, dataset, places, MOST_OF_OTHERS)
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="selfbench-") as name:
        print_checks("ingestion", ingestion(times, Path(name)))


if __name__ == "__main__":
    main()
