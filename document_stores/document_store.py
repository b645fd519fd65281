"""Adapter for this project's own document store (libraries/document_store), an LSM tree of columns or rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Calls, Can, Maturity, Setting, Stage, Stored
from adapters.document_store import (
    Batch,
    Document,
    DocumentHandle,
    DocumentOffers,
    DocumentStoreAdapter,
    FieldPath,
    Key,
    Plan,
    TypedField,
)
from adapters.errors import AdapterError, RefusedData

if TYPE_CHECKING:
    import pyarrow as pa

    from libraries.document_queries.plan import Plan as StepsPlan
    from libraries.document_store.store import DocumentStore
    from libraries.document_store.tree.manifest import Manifest

KEPT_BYTES = 128 << 20
"""Maximum size of the read cache with pages=kept. It is also the store's default size."""
SCAN_DOCUMENTS = 1_024
"""Number of documents that a scan yields at a time."""


def _nothing() -> None:
    return


class OwnStore(DocumentStoreAdapter):
    """Stores documents in a `DocumentStore`: one upsert for each batch, then a flush and the merges that are due."""

    format = "document-store"
    engine = None
    title = "Document store"
    distributions: ClassVar[tuple[str, ...]] = ("format-bench", "msgspec", "numpy", "zstandard", "cramjam", "xxhash")
    suffix = ".documents"
    settings: ClassVar = {
        "layout": Setting(("amax", "vector", "open"), "amax", "columns, rows by a schema, or rows as they are", True),
        "codec": Setting(("none", "snappy", "zstd"), "zstd", "compression of each page"),
        "sync": Setting(("batch", "none"), "batch", "whether the log is synced before an upsert returns"),
        "merges": Setting(("soon", "late"), "soon", "when files are merged: as soon as due, or when there are five"),
        "pages": Setting(("read", "kept"), "read", "whether data that was read stays in memory, up to 128 MiB"),
        "way": Setting(
            ("auto", "rows", "columns", "generated-rows", "generated-columns"), "auto", "how a query is executed"
        ),
    }
    plain: ClassVar = {"codec": "none"}
    equal: ClassVar = {"codec": "zstd"}
    beside: ClassVar = ({"layout": "vector"}, {"layout": "open"})
    capabilities = frozenset({Can.PROJECTION, Can.APPEND, Can.NESTED, Can.NO_PICKLE})
    maturity = Maturity(Stage.EXPERIMENTAL, "built here after a paper of 2022; one implementation reads it", ours=True)
    offers = DocumentOffers(
        get=True,
        project=True,
        upsert=True,
        delete=True,
        index=True,
        operators=frozenset({"unnest", "filter", "project", "group_by", "count", "compute", "top_k", "limit"}),
    )
    syncs_on_save = True

    @property
    def calls(self) -> Calls:
        """Return code with which users can store all documents by one upsert, and read all documents."""
        words = {"layout": "layout", "codec": "compression", "sync": "sync", "merges": "merges"}
        given = "".join(f", {words[name]}={self.values[name]!r}" for name in words)
        # The default of the store is pages=kept.
        kept = "" if self._cache_bytes else ", cache_bytes=0"
        store = "with DocumentStore.open({path}, key={key}"
        return Calls(
            ("from libraries.document_store.store import DocumentStore",),
            f"{store}{given}) as store:\n    store.upsert({{held}})",
            f"{store}{kept}) as store:\n    documents = list(store.scan())",
        )

    def load_library(self) -> None:
        """Import the store, its layouts and its query engines.

        Raises RefusedData if the store's C code is not built, because the slower Python code would be measured instead.
        """
        import numpy.ma
        import pyarrow

        from libraries.document_queries import json_form, paths
        from libraries.document_store import errors, kernels, store
        from libraries.document_store.queries import executor
        from libraries.document_store.tree import manifest
        from libraries.durable import calls

        if not kernels.NATIVE:
            raise RefusedData("the C code of libraries/document_store is not built; 'make setup' builds it")
        self._loaded = (executor, numpy, pyarrow)
        self._errors, self._store, self._plan_of = errors, store, json_form.from_json
        self._manifest, self._calls, self._paths = manifest, calls, paths

    def ingest(
        self, batches: Iterable[Batch], location: Path, key: str = "id", accepted: Callable[[], None] = _nothing
    ) -> None:
        """Store the documents. `accepted` is called after the last upsert. At that time, documents that are still in
        memory are in the store's log too."""
        with self._open(location, key) as store:
            for batch in batches:
                with self.refusals():
                    store.upsert(batch)
            accepted()
            store.wait_for_merges()

    def _open(self, location: Path, key: str) -> DocumentStore:
        layout, codec, sync, merges = (self.values[name] for name in ("layout", "codec", "sync", "merges"))
        try:
            return self._store.DocumentStore.open(
                location,
                key,
                layout,  # type: ignore[arg-type]
                codec,  # type: ignore[arg-type]
                sync,  # type: ignore[arg-type]
                merges=merges,  # type: ignore[arg-type]
                cache_bytes=self._cache_bytes,
            )
        except self._errors.DocumentStoreError as error:
            raise AdapterError(f"{location}: {error}") from None

    @property
    def _cache_bytes(self) -> int:
        return KEPT_BYTES if self.values["pages"] == "kept" else 0

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """Turn the store's errors about documents into RefusedData."""
        try:
            yield
        except self._errors.DocumentError as error:
            raise RefusedData(str(error)) from None

    def open(self, location: Path, key: str = "id") -> OwnHandle:
        """Open the store, and lock it against other processes."""
        if not location.is_dir():
            raise AdapterError(f"{location}: the folder does not exist")
        return OwnHandle(self, self._open(location, key), location)

    def stored(self, location: Path) -> Stored:
        """Return the codec and the layout that the store's manifest states."""
        found = self._manifest_of(location)
        return Stored(found.compression, (found.layout,), {"components": str(len(found.components))})

    def _manifest_of(self, location: Path) -> Manifest:
        found = self._manifest.read_manifest(self._calls.OSCalls(), location)
        if found is None:
            raise AdapterError(f"{location}: is not a document store")
        return found

    def shows_nothing(self, location: Path) -> str | None:
        """If the store has too few documents for a merge, return why merges=late has no effect. Return None if the
        setting has an effect, and for merges=soon."""
        if self.values["merges"] != "late":
            return None
        with self._open(location, self._manifest_of(location).key) as store:
            if store.stats().merge_waits:
                return None
        return "no merge waits here: merges=soon stores the same files; measure this with more documents"

    def key_fault(self, key: Key) -> str | None:
        """Return why the store does not allow the key, or None if it does."""
        return self._store.key_fault(key)


class OwnHandle(DocumentHandle):
    """An open store."""

    def __init__(self, adapter: OwnStore, store: DocumentStore, location: Path) -> None:
        """Take ownership of the store."""
        self._adapter, self._store, self._location = adapter, store, location
        self._plans: dict[Plan, StepsPlan] = {}

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except self._adapter._errors.CorruptError as error:
            raise AdapterError(f"{self._location}: {error}") from None

    def count(self) -> int:
        """Return the number of documents."""
        with self._reading():
            return self._store.count()

    def scan(self, paths: Sequence[FieldPath] | None = None) -> Iterator[list[Document]]:
        """Yield all documents, or their fields at `paths`. If `paths` is empty, yield an empty dict per document."""
        if paths is not None and not paths:
            number = self.count()
            if number:
                yield [{} for _ in range(number)]
            return
        with self._reading(), closing(self._store.scan(paths)) as documents:  # type: ignore[type-var]
            while batch := list(islice(documents, SCAN_DOCUMENTS)):
                yield batch

    def read_table(self, fields: Sequence[TypedField]) -> pa.Table:
        """Read all fields by the store's method `to_arrow`."""
        with self._reading():
            return self._store.to_arrow([str(self._adapter._paths.Path(field.path)) for field in fields])

    def get(self, keys: Sequence[Key]) -> list[Document | None]:
        """Look up all integer keys by one call and all text keys by another call."""
        found: dict[tuple[type, Key], Document | None] = {}
        for kind in (int, str):
            some = self._possible(keys, kind)
            with self._reading():
                documents = self._store.get_many(some)
            found.update(((kind, key), document) for key, document in zip(some, documents, strict=True))
        return [found.get((type(key), key)) for key in keys]

    def prepare(self, plan: Plan) -> None:
        """Parse the plan's text for the store."""
        if plan not in self._plans:
            self._plans[plan] = self._adapter._plan_of(plan)

    def learn_from(self, other: DocumentHandle) -> None:
        """Copy the parsed plans of another handle."""
        assert isinstance(other, OwnHandle)
        self._plans = dict(other._plans)

    def query(self, plan: Plan) -> list[dict[str, Any]]:
        """Execute the plan with the query engine that the setting `way` selects."""
        self.prepare(plan)
        with self._reading():
            return self._store.query(self._plans[plan], self._adapter.values["way"])  # type: ignore[arg-type]

    def upsert(self, batch: Batch) -> None:
        """Store the documents of a batch, as one entry of the store's log."""
        with self._adapter.refusals():
            self._store.upsert(batch)

    def delete(self, keys: Sequence[Key]) -> None:
        """Delete the documents with these keys, as one entry of the store's log."""
        kind = self._store.key_type
        if kind is not None:
            self._store.delete(self._possible(keys, kind))

    def _possible(self, keys: Sequence[Key], kind: type) -> list[Key]:
        """Return the keys of this type that a document can have, without duplicates. The store would raise an error for
        other keys."""
        no_key = self._adapter.key_fault
        return list(dict.fromkeys(key for key in keys if type(key) is kind and no_key(key) is None))

    def index(self, path: FieldPath) -> None:
        """Make a secondary index, which later writes keep up to date."""
        self._store.index(path)

    def has_index(self, path: FieldPath) -> bool:
        """Return whether the path is in the store's list of indexes."""
        return str(self._adapter._paths.Path(path)) in self._store.stats().indexes

    def uses_index(self, plan: Plan) -> bool:
        """Return whether the store would choose an index for the plan."""
        self.prepare(plan)
        with self._reading():
            return self._store.index_of(self._plans[plan]) is not None

    def settle(self) -> None:
        """Write the documents that are only in memory and the log, and finish merges."""
        self._store.flush()
        self._store.wait_for_merges()

    def close(self) -> None:
        """Close the store, which writes documents from memory and unlocks the folder."""
        self._store.close()


ENGINES = (OwnStore,)
