"""JSONBench's five questions of our store beside its peers: `python -m libraries.document_store.benchmarks.json_bench`.

One thread each, and one open handle each, asked in turns, of warm pages; the best of several times counts. Answers have
to be the same. Stores are made in a temporary folder and removed at the end.

DuckDB keeps blocks in memory from one question to the next, and reads them with their dictionaries. So the target is of
ours with what it reads kept, columns decoded; ours that reads and decodes anew for each question stands beside it.
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
    """A store with all of the events, open, and what lies behind its writes done."""
    engine, settings = DOCUMENT_STORES.engine(variant)
    store = engine(settings, threads=1)
    store.load_library()
    location = folder / f"{PEERS.index(variant)}{store.suffix}"
    started = now_ns()
    store.ingest(pieces_of(lines), location)
    click.echo(f"  {variant}: stored in {(now_ns() - started) / 1e9:.0f} s", err=True)
    return store.open(location)


def questions(times: int, handles: Mapping[str, DocumentHandle]) -> Iterator[Check]:
    """The time of each question by each store, and how often the target's time goes into ours."""
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
@click.option("--times", default=5, show_default=True, help="How often each question is asked of each store.")
def main(rows: int, times: int) -> None:
    """Print what each store takes for JSONBench's questions, as multiples of what ours takes."""
    lines = lines_of(EVENTS, rows)
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="selfbench-") as name, ExitStack() as stack:
        handles = {each: stack.enter_context(closing(opened(each, Path(name), lines))) for each in PEERS}
        print_checks(f"JSONBench, {rows:,} events", questions(times, handles))


if __name__ == "__main__":
    main()
