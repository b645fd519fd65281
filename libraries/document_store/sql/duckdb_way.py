"""Answer a query with DuckDB over Arrow columns of the fields that the query reads.

The SQL may come from anywhere. DuckDB therefore has no access to files, the network, extensions and Python variables.
Its configuration is locked, and its memory is limited.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from importlib import import_module
from threading import Event
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from libraries.document_queries.paths import Path
from libraries.document_queries.plan import Plan
from libraries.document_queries.sql.conditions import NoPlan, condition_of, parts_of
from libraries.document_queries.sql.errors import SQLError
from libraries.document_queries.sql.names import FIELD, TABLE, FieldPath, Statement, check_names, column_name
from libraries.document_queries.sql.parsing import DIALECT
from libraries.document_queries.sql.planning import GroupsPlanned, Kinds, groups_planned
from libraries.document_queries.steps import Field, Filter, GroupBy, Named, Project
from libraries.document_store.queries.columns_of_plans import projected
from libraries.document_store.queries.vectors.arrow_columns import Chunks
from libraries.document_store.sql.planned_way import groups
from libraries.document_store.sql.typing import TypedField, Typing, own_column, typed

if TYPE_CHECKING:
    from libraries.document_store.queries.parts import Snapshot

AWAKE_S = 0.05
"""Seconds after which a thread that waits for DuckDB looks for Ctrl-C, or repeats an interrupt."""
MEMORY = "2GB"
"""Maximum memory of DuckDB, in addition to the columns and the answer."""
MOST_ANSWER_BYTES = 2_000_000_000
"""Maximum bytes of an answer. `MEMORY` does not include the answer."""
_ROWS_AT_ONCE = 2048
"""Number of rows that DuckDB computes at once."""
LOCKED: dict[str, Any] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "memory_limit": MEMORY,
    "lock_configuration": "true",
}


_FROM_DOCS = {"kind", "hint", "expressions", "from_", "where", "group", "having", "qualify", "windows"} | {
    *("order", "limit", "offset", "distinct")
}
"""The parts that a SELECT may have if its conditions move from WHERE to the store. All of them see only rows that WHERE
leaves, except FROM, which must be a single table. SAMPLE is missing because it applies before WHERE."""


def reading_plan(statement: Statement, key: str, kinds_of: Callable[[FieldPath], Kinds]) -> GroupsPlanned:
    """Return a plan that computes the groups of a query. If a plan cannot express the groups, return a plan that reads
    the fields that the query uses.

    Conditions of WHERE that the store can test move from the query's tree to the plan. `key` is the field to read if
    the query reads no field.
    """
    try:
        return groups_planned(statement, kinds_of)
    except NoPlan:
        filters = _moved(statement)
    numbers = sorted({node.meta[FIELD] for node in statement.tree.find_all(exp.Column) if FIELD in node.meta})
    columns = [Named(column_name(number), Field(statement.fields[number])) for number in numbers]
    return GroupsPlanned(Plan((*filters, Project(tuple(columns or [Named("#", Field((key,)))])))), {})


def _moved(statement: Statement) -> tuple[Filter, ...]:
    tree = statement.tree
    where = tree.args.get("where")
    # All uses of `docs` share one table, so conditions can move only if it is used once, and FROM is nothing else.
    if where is None or not parts_of(tree) <= _FROM_DOCS or len(list(tree.find_all(exp.Table))) != 1:
        return ()
    table = tree.args["from_"].this if "from_" in parts_of(tree) else None
    if not isinstance(table, exp.Table) or not parts_of(table) <= {"this", "alias"}:
        return ()
    moved, kept = [], []
    for part in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
        try:
            moved.append(condition_of(part, statement.fields))
        except NoPlan:
            kept.append(part)
    tree.set("where", exp.Where(this=exp.and_(*kept, copy=False)) if kept else None)
    return tuple(map(Filter, moved))


def answer(
    snapshot: Snapshot,
    statement: Statement,
    reading: GroupsPlanned,
    kinds_of: Callable[[FieldPath], Kinds],
    mixed: set[str],
) -> pa.Table:
    """Return the answer. `reading` is the result of `reading_plan`. Add to `mixed` the paths whose values of mixed
    types become JSON text. Raises SQLError."""
    found = _columns(snapshot, reading)
    inside: dict[int, set[str]] = {}
    fields: list[TypedField | None] = []
    for number, path in enumerate(statement.fields):
        chunks = found.get(column_name(number))
        inside[number] = set()
        fields.append(None if chunks is None else typed(number, path, chunks, kinds_of(path), inside[number]))
    typing = Typing(fields)
    typing.rewrite(statement.tree)
    mixed |= typing.as_json.union(*inside.values())
    columns = {name: column for each in fields if each is not None for name, column in each.columns.items()}
    for name, chunks in found.items():
        if name.startswith("#a"):
            columns[name], _ = own_column(chunks, reading.kinds.get(name, frozenset()), mixed, name)
    if not columns:
        columns = {"#": pa.nulls(sum(vector.count for vector in found["#"]))}
    table = _asked(statement.tree.sql(dialect=DIALECT, comments=False), pa.table(columns), statement.fields)
    # DuckDB names the columns of unnest(object) and of * over derived tables.
    names = table.column_names
    check_names(names)
    return pa.Table.from_arrays([_whole(name, table.column(name)) for name in names], names)


def _columns(snapshot: Snapshot, reading: GroupsPlanned) -> dict[str, Chunks]:
    plan, result = reading.plan, reading.plan.result
    if isinstance(result, GroupBy):
        names = [*(key.name for key in result.keys), *(figure.name for figure in result.aggregates)]
        vectors = groups(snapshot, plan, result, reading.kinds)
        return {name: [vector] for name, vector in zip(names, vectors, strict=True)}
    assert isinstance(result, Project)
    return dict(zip((column.name for column in result.columns), projected(snapshot, plan), strict=True))


def _asked(query: str, docs: pa.Table, fields: Sequence[FieldPath]) -> pa.Table:
    duckdb = _imported()
    may_begin, given_up = Event(), Event()

    def work() -> pa.Table | None:
        may_begin.wait()
        return None if given_up.is_set() else _gathered(connection, query)

    with _database(os.getpid()).cursor() as connection, ThreadPoolExecutor(1) as worker:
        connection.register(TABLE, docs)
        answer: Future[pa.Table | None] | None = None
        try:
            # Ctrl-C may come while the thread starts. The query begins when it is known what to wait for.
            answer = worker.submit(work)
            may_begin.set()
            # DuckDB does not react to Ctrl-C. It therefore works in another thread, and this thread waits.
            return _awaited(answer)
        except duckdb.Error as error:
            raise SQLError(_words(error, fields), "engine") from None
        except BaseException:
            given_up.set()
            may_begin.set()
            connection.interrupt()
            # DuckDB forgets an interrupt that comes before the query starts.
            while answer is not None and wait([answer], timeout=AWAKE_S).not_done:
                connection.interrupt()
            raise


def _imported() -> Any:
    """Import DuckDB and return it. Raises SQLError if it is not installed."""
    try:
        if "duckdb" not in sys.modules:
            # Ctrl-C in the middle of the import would end the process, look like a missing library, or be lost. In
            # another thread, the import does not see Ctrl-C.
            with ThreadPoolExecutor(1) as worker:
                _awaited(worker.submit(import_module, "duckdb"))
        return import_module("duckdb")
    except ImportError:
        raise SQLError(
            "this query needs DuckDB, which is not installed: pip install 'format-bench[documents]'", "library"
        ) from None


def _awaited(future: Future[Any]) -> Any:
    """Wait for the result and return it. This thread wakes regularly, because Python sees Ctrl-C only then if a library
    such as polars has set its own handler."""
    while wait([future], timeout=AWAKE_S).not_done:
        continue
    return future.result()


def _gathered(connection: Any, query: str) -> pa.Table:
    batches: pa.RecordBatchReader = connection.sql(query).to_arrow_reader(_ROWS_AT_ONCE)
    found, size_bytes = [], 0
    for batch in batches:
        found.append(batch)
        size_bytes += batch.nbytes
        if size_bytes > MOST_ANSWER_BYTES:
            raise SQLError(
                f"the answer has more than {MOST_ANSWER_BYTES / 1e9:g} GB; add LIMIT, or ask for fewer columns", "limit"
            )
    return pa.Table.from_batches(found, batches.schema)


@cache
def _database(process: int) -> Any:
    """Return this process's database, which is started once, because starting takes longer than most queries. The
    database stays empty, because each query registers its table with a separate connection. DuckDB does not survive a
    fork, not even to be closed. A forked process therefore keeps the old database unused and starts another one."""
    import duckdb

    # DuckDB complains about connections that are still open when Python ends.
    atexit.register(_database.cache_clear)
    return duckdb.connect(config=LOCKED)


def _words(error: Exception, fields: Sequence[FieldPath]) -> str:
    words = str(error).split("\n\nLINE ")[0].splitlines()[0]
    for number in reversed(range(len(fields))):
        words = words.replace(f'"{column_name(number)}', f'"{Path(fields[number])}')
    return f"DuckDB cannot answer this: {words[:300]}"


def _whole(name: str, column: pa.ChunkedArray) -> Any:
    """Convert a column of sums of integers, which DuckDB computes in 128 bits, to 64 bits. Return other columns
    unchanged. Raises SQLError for sums beyond 64 bits."""
    if column.type != pa.decimal128(38, 0):
        return column
    try:
        return pc.cast(column, pa.int64())
    except pa.ArrowInvalid:
        raise SQLError(
            f"column {name} of the answer has an integer beyond 64 bits; compute this column from doubles, "
            "e.g. sum(CAST(n AS DOUBLE))",
            "engine",
        ) from None
