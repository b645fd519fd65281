"""While a store answers a timed call, no code of the project runs except the store's adapter and the timed
operation."""

from __future__ import annotations

import gc
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.document_store import DocumentStoreAdapter
from bench_runner.clock import Laps
from bench_runner.operations import operation_of
from bench_runner.operations.documents.ask import Ask
from bench_runner.operations.documents.derived import USUAL
from bench_runner.operations.operation import OperationContext
from bench_runner.operations.targets import Target
from bench_runner.suites.document_questions import CELL, EVENTS, questions_of
from bench_runner.variants import is_raw_io
from data_generator.cache import prepare
from data_generator.catalogue import resolve
from data_generator.documents import json_lines
from document_stores.registry import DOCUMENT_STORES

ROOT = Path(__file__).parents[4]

OPERATION = ("bench_runner/operations/documents/", "bench_runner/clock.py")
SHARED_BY_STORES = ("document_stores/shared/", "document_stores/sql/")
OURS = ("libraries/document_store/", "libraries/document_queries/", "libraries/durable/")
"""Our own store's code."""
READS_ALL = ("libraries/document_queries/", "data_generator/documents.py")
"""Code of the fallback, which interprets the query over all documents. Figures from it are marked."""

STORES = {
    f"{name}[engine={engine.engine}]" if engine.engine else name: engine
    for name in DOCUMENT_STORES
    if not is_raw_io(name)
    for engine in DOCUMENT_STORES.engines(name)
}


def allowed(engine: type[DocumentStoreAdapter]) -> tuple[str, ...]:
    """Return the files and folders whose code may run while an engine answers."""
    own = Path(inspect.getfile(engine)).relative_to(ROOT).as_posix()
    if engine.format == "document-store":
        return (*OPERATION, own, *OURS)
    return (*OPERATION, own, *SHARED_BY_STORES, *(() if engine.offers.operators else READS_ALL))


def files_that_run(call: Callable[[], Any]) -> set[str]:
    """Return the files of the project whose functions are called."""
    seen: set[str] = set()
    # otherwise a generator that another test left would be closed during the call, which runs its function
    gc.collect()
    sys.setprofile(lambda frame, event, _: seen.add(frame.f_code.co_filename) if event == "call" else None)
    try:
        call()
    finally:
        sys.setprofile(None)
    below = {Path(name).relative_to(ROOT) for name in seen - {__file__} if Path(name).is_relative_to(ROOT)}
    # The checkout may contain a folder of installed libraries.
    return {path.as_posix() for path in below if "site-packages" not in path.parts}


@pytest.mark.parametrize("variant", STORES)
def test_nothing_else_of_the_project_runs_while_a_store_answers(variant: str, tmp_path: Path) -> None:
    engine = STORES[variant]
    if missing := DOCUMENT_STORES.availability(engine).missing:
        # The extra `all`, which CI installs, leaves chdb out.
        required = os.environ.get("CI") == "true" and "chdb" not in missing
        (pytest.fail if required else pytest.skip)(f"not installed: {', '.join(missing)}")
    # Stores without operators get documents that every store accepts. Stores with operators get richer documents.
    dataset = EVENTS if engine.offers.operators else CELL
    stored = prepare(resolve(dataset, {}, rows=300), tmp_path / "cache")
    store: Any = DOCUMENT_STORES.build(variant)
    store.load_library()
    asked = OperationContext(store, Target("documents"), stored.path, stored.digest, stored.rows, dataset)
    location = tmp_path / f"stored{store.suffix}"
    store.begin(location)
    store.ingest([json_lines(asked.table(asked.rows))], location)
    for question in (*questions_of(dataset), USUAL):
        operation = operation_of(f"ask[query={question}]")
        assert isinstance(operation, Ask)
        (plan,) = operation.inputs(asked, asked.rows, 1)
        operation.run(asked, plan, location, Laps())  # primed
        handle: Any = operation.open(asked, location)
        operation.make_ready(asked, handle, [plan])
        # Reopen the store, as the harness does before a cold call.
        handle = operation.open_again(asked, handle, location)
        laps, given = Laps(), []
        laps.start()
        ran = files_that_run(lambda: given.append(operation.call(asked, handle, plan, location, laps)))  # noqa: B023
        handle.close()
        others = {file for file in ran if not file.startswith(allowed(engine))}
        assert (question, others) == (question, set())
        assert operation.difference(asked, plan, given[0], store.losses) is None
    store.end(location)


def test_another_module_inside_the_clock_is_seen() -> None:
    ran = files_that_run(lambda: questions_of(EVENTS)["q1"].plan)
    assert {"bench_runner/suites/document_questions.py", "libraries/document_queries/json_form.py"} <= ran
