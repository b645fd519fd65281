"""`DocumentStore`: the public class. Documents go in as dicts or JSON Lines, and come out as dicts, answers and tables.

This module converts documents to batches of the tree, and parts of snapshots to documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path as FolderPath
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, overload

from libraries.document_queries.errors import QueryError
from libraries.document_queries.paths import ITEMS, Path, parse
from libraries.document_queries.values import INTEGER_HIGHEST, INTEGER_LOWEST, shown
from libraries.document_store import kernels
from libraries.document_store.errors import DocumentError
from libraries.document_store.indexes.index_changes import Changes, Finders, all_entries
from libraries.document_store.json_text import rows_of
from libraries.document_store.layouts import COMPRESSIONS, KEY_BYTES, LAYOUTS, CompressionName, LayoutName
from libraries.document_store.messagepack import decode, encode_all, keys_of
from libraries.document_store.projection import documents_under
from libraries.document_store.snapshot import Snapshot
from libraries.document_store.tree.background_merge import due_merge
from libraries.document_store.tree.memtable import Batch, Key
from libraries.document_store.tree.tree import Settings, Tree
from libraries.durable.calls import OSCalls

if TYPE_CHECKING:
    import pyarrow as pa

    from libraries.document_queries.plan import Plan
    from libraries.document_queries.steps import Condition
    from libraries.document_store.queries.executor import Way
    from libraries.document_store.queries.parts import QueryPart
    from libraries.document_store.sql.answering import Explanation

MEMTABLE_BYTES = 32 << 20
CACHE_BYTES = 128 << 20
"""Enough for the columns that typical questions about a million documents use."""
MOST_ROW_BYTES = 32 << 20
"""Maximum size of one document as MessagePack.

Each byte of a document produces at most two levels of a column. With this limit, one more document never makes a column
of a leaf larger than a chunk (an encoded column) may be.
"""
SYNCS = ("batch", "none")
MERGES = ("soon", "late")

PathText = str | Sequence[str]
"""A path as text (`user.name`), or as the names of its fields."""


@dataclass(frozen=True, kw_only=True)
class Stats:
    """The state of a store at one moment, and counters since it was opened.

    Entry counts are the numbers of keys in each component. These numbers include replaced versions and deletion
    markers, so the number of documents is smaller. `bytes_read` counts bytes read from components and indexes, also by
    merges. `native` is true if the C library splits documents into columns, and false if Python does. `merge_waits` is
    true if there are files that `merges="soon"` would merge. `cached_bytes` is the size of the read cache, at most
    `cache_bytes`.
    """

    layout: LayoutName
    compression: CompressionName
    native: bool
    components: int
    component_bytes: int
    component_entries: int
    indexes: tuple[str, ...]
    index_files: int
    index_bytes: int
    columns: int
    memtable_documents: int
    memtable_bytes: int
    log_bytes: int
    merges_done: int
    merge_waits: bool
    bytes_read: int
    cached_bytes: int


class DocumentStore:
    """An open store; a context manager. Thread-safe; upserts and deletes run one at a time."""

    def __init__(self, tree: Tree) -> None:
        """Users call `open` instead."""
        self._tree = tree
        self._key = tree.manifest.key
        self._finders = Finders(tree.version.indexes)

    @classmethod
    def open(
        cls,
        folder: str | PathLike[str],
        key: str = "id",
        layout: LayoutName | None = None,
        compression: CompressionName | None = None,
        sync: Literal["batch", "none"] = "batch",
        memtable_bytes: int = MEMTABLE_BYTES,
        merges: Literal["soon", "late"] = "soon",
        cache_bytes: int = CACHE_BYTES,
    ) -> DocumentStore:
        """Open the store in `folder`, or create one.

        `key` names the field that identifies a document. The values of this field are integers or texts, of one type in
        the whole store. `layout` is `amax` (columns), `vector` (rows without field names) or `open` (plain rows);
        `compression` is none, snappy or zstd. Both default to the settings of the existing store, or to `amax` and
        `zstd` for a new store. With sync="batch", documents survive a power cut once `upsert` returns. With sync="none"
        they survive the end of the process, and a power cut only after a flush. `memtable_bytes` is the amount of data
        that is collected in memory before a flush. With merges="late", no merge begins before there are five
        components. This makes writes faster, but readers must search more components. `cache_bytes` is the size of the
        read cache, which holds decompressed pages and the decoded columns that queries used.

        Raises LockedError if another process has the store open, CorruptError if the store's files were changed, and
        FullError if a limit of the disk or of the store is reached.
        """
        for name, given, allowed in (
            ("layout", layout, (None, *LAYOUTS)),
            ("compression", compression, (None, *COMPRESSIONS)),
            ("sync", sync, SYNCS),
            ("merges", merges, MERGES),
        ):
            if given not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(map(str, allowed))} (got {given!r})")
        if not isinstance(key, str) or not _is_utf8(key):
            raise ValueError(f"key must be the name of a field, as text (got {key!r})")
        for name, given_bytes, least in (("memtable_bytes", memtable_bytes, 1), ("cache_bytes", cache_bytes, 0)):
            if not isinstance(given_bytes, int) or given_bytes < least:
                raise ValueError(f"{name} must be an integer, at least {least} (got {given_bytes!r})")
        settings = Settings(
            key=key,
            layout=layout,
            compression=compression,
            synced=sync == "batch",
            memtable_bytes=memtable_bytes,
            late_merges=merges == "late",
            cache_bytes=cache_bytes,
        )
        return cls(Tree(FolderPath(folder).absolute(), settings, OSCalls()))

    def __enter__(self) -> DocumentStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the store, without waiting for merges if the block ended with an error."""
        self.close(wait=kind is None)

    # --- writing -----------------------------------------------------------------------------------------

    def upsert(self, documents: Iterable[Mapping[str, Any]] | bytes) -> None:
        """Store documents. A document replaces an older document with the same key, including one of the same call.

        `documents` are dicts or JSON Lines (bytes). Either all documents of the call are stored or none. Raises
        DocumentError for an invalid document, FullError if a limit of the disk or of the store is reached, and
        DocumentStoreError if the disk fails or if a merge failed before this call.
        """
        if isinstance(documents, bytes | bytearray | memoryview):
            rows = rows_of(bytes(documents))
        else:
            if isinstance(documents, str | Mapping) or not isinstance(documents, Iterable):
                raise DocumentError("pass documents as a list of dicts, or as JSON Lines in bytes")
            rows = encode_all([_as_dict(number, document) for number, document in enumerate(documents)])
        for number, row in enumerate(rows):
            if len(row) > MOST_ROW_BYTES:
                raise DocumentError(f"exceeds {MOST_ROW_BYTES >> 20} MiB; split it", number)
        keys = keys_of(rows, self._key)
        self._check_keys(keys)
        self._write(dict(zip(keys, rows, strict=True)))

    def delete(self, keys: Iterable[Key]) -> None:
        """Delete the documents with these keys, all or none; ignore unknown keys. Raises the same errors as
        `upsert`."""
        if isinstance(keys, str | bytes) or not isinstance(keys, Iterable):
            raise DocumentError(f"delete takes a list of keys; for a single key write [{keys!r}]")
        listed = list(keys)
        self._check_keys(listed, "key")
        self._write(dict.fromkeys(listed))

    @property
    def key_type(self) -> type[int] | type[str] | None:
        """Return the type of the keys; None if nothing was stored yet."""
        kind = self._tree.key_kind()
        return None if kind is None else str if kind == "text" else int

    def flush(self) -> None:
        """Write the documents in memory to a new component. If this fails, they stay in memory and in the log."""
        self._tree.flush()

    def index(self, path: PathText) -> None:
        """Create an index of the values at a path, for lookups by range. Does nothing if the index exists.

        With `[*]` in the path, each item of an array is indexed. Raises QueryError for a path that cannot be indexed.
        """
        wanted = path_of(path)
        if not wanted or wanted[0] is ITEMS:
            raise QueryError(f"the path of an index must begin with a field (got {str(wanted)!r})")
        with self._tree.writing:
            if str(wanted) in self._tree.version.indexes:
                return
            self._tree.flush()
            try:
                with self.snapshot() as snapshot:
                    self._tree.add_index(str(wanted), all_entries(snapshot, wanted))
            finally:
                # The index may have been added even if the call was interrupted.
                self._finders = Finders(self._tree.version.indexes)

    def wait_for_merges(self) -> None:
        """Wait until no merge is due. Raises the error of a failed merge."""
        self._tree.wait_for_merges()

    def close(self, wait: bool = True) -> None:
        """Flush, wait for merges or abort them, and release the folder; repeated calls do nothing.

        If the flush fails, the documents are still in the log and are restored when the store is opened again."""
        self._tree.close(wait)

    # --- reading -----------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return a view of the store's current state; close it after use. Raises ClosedError if the store is closed."""
        memtable, version = self._tree.hold()
        return Snapshot(self._key, memtable, version, self._tree.schema_of(version), self._text_keys())

    def get(self, key: Key) -> dict[str, Any] | None:
        """Return the document with this key, or None if the store has no such document."""
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[Key]) -> list[dict[str, Any] | None]:
        """Return the document of each key, or None for a key without a document. All keys are looked up at once.

        Raises DocumentError for invalid keys.
        """
        if not keys:
            return []
        self._check_keys(keys, "key")
        memtable, version = self._tree.hold(keys)
        schema = self._tree.schema_of(version)
        with Snapshot(self._key, memtable, version, schema, self._text_keys()) as snapshot:
            rows = snapshot.get(keys)
        return [None if row is None else decode(row) for row in rows]

    def scan(self, paths: Sequence[PathText] | None = None, where: Condition | None = None) -> Iterator[dict[str, Any]]:
        """Yield all documents as of the start of the scan, in undefined order.

        With `paths`, documents contain only the values at these paths; a path without a value adds nothing, and paths
        do not enter arrays. `where` is a condition of the query language. With `where`, yield only documents for which
        the condition is true.
        """
        from libraries.document_queries.plan import Plan
        from libraries.document_queries.steps import Filter

        wanted = None if paths is None else _paths(paths)
        if where is not None:
            # Plan raises QueryError if `where` is not a condition.
            Plan((Filter(where),))
        scanned = self._scanned(self.snapshot(), wanted, where)
        next(scanned)
        return scanned

    def count(self) -> int:
        """Return the number of documents. Reads only keys."""
        with self.snapshot() as snapshot:
            return snapshot.count()

    def query(self, plan: Plan, way: Way = "auto", *, as_arrow: bool = False) -> list[dict[str, Any]] | pa.Table:
        """Return the rows that a query plan gives. `way` is the method of execution, which does not change the rows.
        With `auto`, the store chooses the method. Raises QueryError for invalid plans.

        With `as_arrow`, return a table, as `to_arrow` does. `way` must then be `auto`.
        """
        from libraries.document_queries.plan import Plan
        from libraries.document_store.queries.executor import execute

        if not isinstance(plan, Plan):
            raise QueryError(f"a query must be a Plan, e.g. Plan((Filter(...), Count())) (got {type(plan).__name__})")
        if as_arrow and way != "auto":
            raise QueryError(f"way must be 'auto' if as_arrow is true (got {way!r})")
        with self.snapshot() as snapshot:
            if as_arrow:
                from libraries.document_store.queries.columns_of_plans import table_of_plan

                return table_of_plan(snapshot, plan, {})
            return execute(snapshot, plan, way)

    def index_of(self, plan: Plan) -> str | None:
        """Return the path of the index that `query` would use for this plan now. Return None if no index fits the plan,
        or if the index selects too many documents."""
        from libraries.document_store.queries.executor import index_of

        with self.snapshot() as snapshot:
            return index_of(snapshot, plan)

    def to_arrow(
        self, paths: Sequence[PathText], where: Condition | None = None, types: Mapping[str, pa.DataType] | None = None
    ) -> pa.Table:
        """Return a table with a column per path, in key order. With `where`, the table has only documents that meet
        this condition.

        Missing values and nulls both become null. In a column of integers and doubles, the integers become doubles if
        this changes none of them. Values of other mixed types become JSON text, with a warning. `types` avoids JSON
        text by naming a column's type, such as {"a.b": pa.int64()}; values of other types then become null. Raises
        QueryError.
        """
        from libraries.document_queries.plan import Plan
        from libraries.document_queries.steps import Field, Filter, Named, Project
        from libraries.document_store.queries.columns_of_plans import table_of_plan

        named = {str(path): path for path in _paths(paths)}
        if not named:
            raise QueryError("paths must name at least one field")
        columns = tuple(Named(name, Field(tuple(map(str, path)))) for name, path in named.items())
        filters = () if where is None else (Filter(where),)
        with self.snapshot() as snapshot:
            return table_of_plan(snapshot, Plan((*filters, Project(columns))), types or {})

    @overload
    def sql(self, text: str, *, explain: Literal[False] = False) -> pa.Table: ...

    @overload
    def sql(self, text: str, *, explain: Literal[True]) -> Explanation: ...

    def sql(self, text: str, *, explain: bool = False) -> pa.Table | Explanation:
        """Return the answer to `SELECT ... FROM docs`, whose columns are paths of fields, such as commit.operation.

        Missing values and nulls are NULL, and values of different types never match. The dialect is DuckDB's. With
        `explain`, return how the query would be answered. Needs sqlglot. Also needs DuckDB for queries that plans of
        the query language cannot express. Raises SQLError, a subclass of QueryError.
        """
        try:
            from libraries.document_store.sql.answering import answer, explanation
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] != "sqlglot":
                raise
            words = "SQL needs sqlglot, which is not installed: pip install 'format-bench[documents]'"
            raise QueryError(words) from None
        with self.snapshot() as snapshot:
            return explanation(snapshot, text) if explain else answer(snapshot, text)

    def stats(self) -> Stats:
        """Return counts and sizes, without reading from the disk."""
        memtable, version = self._tree.hold()
        try:
            index_files = [file for files in version.indexes.values() for file in files]
            return Stats(
                layout=self._tree.manifest.layout,
                compression=self._tree.manifest.compression,
                native=kernels.NATIVE,
                components=len(version.components),
                component_bytes=sum(file.size_bytes for file in version.components),
                component_entries=sum(file.content.info.count for file in version.components),
                indexes=tuple(version.indexes),
                index_files=len(index_files),
                index_bytes=sum(file.size_bytes for file in index_files),
                columns=len(version.components[0].content.schema.leaves) if version.components else 0,
                memtable_documents=sum(row is not None for row in memtable.rows.values()),
                memtable_bytes=self._tree.memtable_bytes,
                log_bytes=self._tree.log_bytes,
                merges_done=self._tree.merges_done,
                merge_waits=due_merge(version) is not None,
                bytes_read=self._tree.counter.bytes_read,
                cached_bytes=self._tree.workshop.cache.size_bytes,
            )
        finally:
            version.release()

    # --- inside ------------------------------------------------------------------------------------------

    def _write(self, latest: dict[Key, bytes | None]) -> None:
        if not latest:
            return
        with self._tree.writing:
            kind = self._tree.key_kind()
            first, row = next(iter(latest.items()))
            if kind is None and row is None:
                # Nothing was ever stored, so there is nothing to delete, and the first document decides the key type.
                return
            if kind is not None and (kind == "text") != isinstance(first, str):
                raise DocumentError(
                    f"the key {first!r} must be of the kind {kind}, like all keys of this store", None, self._key
                )
            added, removed = self._index_changes(latest) if self._finders else ({}, {})
            self._tree.write(Batch(list(latest), list(latest.values()), added, removed))

    def _index_changes(self, latest: dict[Key, bytes | None]) -> Changes:
        memtable, version = self._tree.hold(latest)
        try:
            return self._finders.changes(latest, memtable, [file.content for file in version.components])
        finally:
            version.release()

    def _check_keys(self, keys: Sequence[Key], what: str = "document") -> None:
        for number, key in enumerate(keys):
            kind = type(key)
            if kind is int and INTEGER_LOWEST <= key <= INTEGER_HIGHEST and type(keys[0]) is int:  # type: ignore[operator]
                continue
            if kind is str and key.isascii() and len(key) <= KEY_BYTES and type(keys[0]) is str:  # type: ignore
                continue
            self._check_key(key, keys[0], number, what)

    def _check_key(self, key: Any, first: Key, number: int, what: str) -> None:
        path = self._key if what == "document" else ""
        if fault := key_fault(key):
            raise DocumentError(fault, number, path, what)
        if type(key) is not type(first):
            kinds = ("a text", "an integer") if isinstance(key, str) else ("an integer", "a text")
            raise DocumentError(
                f"the key is {kinds[0]}, but the first key of the batch is {kinds[1]}", number, path, what
            )

    def _text_keys(self) -> bool:
        return self._tree.key_kind() == "text"

    def _scanned(
        self, snapshot: Snapshot, paths: Sequence[Path] | None, where: Condition | None
    ) -> Iterator[dict[str, Any]]:
        with snapshot:
            # A generator for `scan`: once started, it releases its snapshot even if it is abandoned.
            yield {}
            if where is None:
                for part in snapshot.parts():
                    yield from self._documents(part, paths)
                return
            from libraries.document_store.queries.columns_of_plans import matching

            for found, index in matching(snapshot, where):
                yield from self._documents(found if index is None else found.narrowed(index), paths)

    @staticmethod
    def _documents(part: QueryPart, paths: Sequence[Path] | None) -> Iterable[dict[str, Any]]:
        if paths is None:
            return map(decode, part.rows())
        return documents_under(part, paths)


def key_fault(key: object) -> str | None:
    """Return the reason why `key` is not a valid key; None if it is valid."""
    if type(key) not in (int, str) or (isinstance(key, int) and not INTEGER_LOWEST <= key <= INTEGER_HIGHEST):
        return f"the key must be an integer of 64 bits or a text, not {shown(key)}"
    if isinstance(key, str) and not _is_utf8(key):
        return "the key contains surrogates, which UTF-8 does not allow"
    if isinstance(key, str) and len(key.encode()) > KEY_BYTES:
        return f"the key has more than {KEY_BYTES} bytes in UTF-8"
    return None


def path_of(path: PathText) -> Path:
    """Convert a path to the type `Path` of the query language. Raises QueryError for invalid paths."""
    found = parse(path) if isinstance(path, str) else Path(path)
    for step in found:
        if step is not ITEMS and not (isinstance(step, str) and _is_utf8(step)):
            raise QueryError(f"a path has the step {step!r}: each step must be a field's name in UTF-8, or ITEMS")
    return found


def _as_dict(number: int, document: object) -> dict[str, Any]:
    if not isinstance(document, Mapping):
        raise DocumentError(f"is not a dict but {type(document).__name__}", number)
    return dict(document)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _paths(paths: Sequence[PathText]) -> list[Path]:
    if isinstance(paths, str):
        raise QueryError(f"paths must be a list; for a single path write [{paths!r}]")
    return [_fields(path) for path in paths]


def _fields(path: PathText) -> Path:
    wanted = path_of(path)
    if not wanted or ITEMS in wanted:
        raise QueryError(
            f"the path {str(wanted)!r} must begin with a field and have no [*]; for an array, end the path at the "
            "array's name"
        )
    return wanted
