"""JSONBench's five questions, our store and its peers: `python -m libraries.document_store.benchmarks.json_bench`.

Each store uses one thread and one open handle. Stores alternate, all reads are from warm pages, and the best of several
times counts. All answers must be equal. Stores are made in a temporary folder and removed at the end.

DuckDB keeps blocks in memory between questions, with their dictionaries. The target therefore applies to our store with
its read cache, which holds decoded columns; results without the cache are listed too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import click

from adapters.document_store import DocumentHandle, identical
from bench_runner.clock import now_ns
from bench_runner.suites.document_questions import questions_of
from document_stores.registry import DOCUMENT_STORES
from libraries.document_store.benchmarks.targets import lines_of, pieces_of
from tests.selfbench.costs import Check, least_ns, print_checks

EVENTS = "bluesky-events"
OURS, TARGET = "document-store[layout=amax,pages=kept]", "duckdb-variant"
PEERS = (
    *(OURS, "document-store[layout=amax]", "document-store[layout=vector,pages=kept]"),
    *(TARGET, "duckdb-json", "duckdb-nested"),
    *("parquet-nested[engine=duckdb,codec=zstd]", "sqlite-json"),
)


def opened(variant: str, folder: Path, lines: bytes) -> DocumentHandle:
    """Return an open store with all events, after its background work has finished."""
    engine, settings = DOCUMENT_STORES.engine(variant)
    store = engine(settings, threads=1)
    store.load_library()
    location = folder / f"{PEERS.index(variant)}{store.suffix}"
    started = now_ns()
    store.ingest(pieces_of(lines), location)
    click.echo(f"  {variant}: stored in {(now_ns() - started) / 1e9:.0f} s", err=True)
    return store.open(location)


def questions(times: int, handles: Mapping[str, DocumentHandle]) -> Iterator[Check]:
    """Yield the time of each question for each store, and how many times ours is faster than the target's."""
    for name, question in questions_of(EVENTS).items():
        for handle in handles.values():
            handle.prepare(question.plan)
        ours = handles[OURS].query(question.plan)
        for variant, handle in handles.items():
            if not identical(handle.query(question.plan), ours):
                raise click.ClickException(f"{name}: {variant} gives another answer than {OURS}")
        calls = {each: partial(one.query, question.plan) for each, one in handles.items()}
        spent = least_ns(times, calls)
        for variant, nanoseconds in spent.items():
            ratio = nanoseconds / spent[OURS]
            is_target = variant == TARGET
            yield Check(
                f"{name}: {variant}",
                f"{nanoseconds / 1e6:.1f} ms, {ratio:.2f} of ours",
                "at least 1" if is_target else "-",
                ratio >= 1 if is_target else True,
            )


@click.command()
@click.option("--rows", default=1_000_000, show_default=True, help="Events.")
@click.option("--times", default=5, show_default=True, help="Number of runs of each question on each store.")
def main(rows: int, times: int) -> None:
    """Print the times of JSONBench's questions for each store, as multiples of ours."""
    lines = lines_of(EVENTS, rows)
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="selfbench-") as name, ExitStack() as stack:
        handles = {each: stack.enter_context(closing(opened(each, Path(name), lines))) for each in PEERS}
        print_checks(f"JSONBench, {rows:,} events", questions(times, handles))


if __name__ == "__main__":
    main()
