"""Define the contract (the interface and its rules) for document stores, which store JSON-like documents under a key
and answer queries.

A document is a dict with str keys. Values are None, bool, int (64 bits, signed), float, str, bytes, list and dict,
nested up to `MOST_LEVELS` deep. The document's key is the value of one of its top-level fields. All keys of a store are
ints, or all are strs. A missing field differs from null. Two values are equal only if their types and bits are equal.
This package imports no other package of the project, so a query is passed as the JSON text of its plan (see `to_json`
in `libraries.document_queries`).
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from adapters.contract import Adapter, Calls, Native
from adapters.errors import AdapterError, RefusedData
from adapters.losses import Cause

if TYPE_CHECKING:
    import pyarrow as pa

MOST_LEVELS = 64
"""Maximum nesting depth of arrays and objects, including the document itself."""

Document = dict[str, Any]

Batch = bytes | Sequence[Document]
"""Documents to store: a sequence of dicts, or JSON Lines as UTF-8 bytes. The last line may lack its line break."""

Key = int | str

FieldPath = tuple[str, ...]
"""The position of a field in a document: the names of all fields on the way to the field, from the top down, and the
name of the field itself.

A path leads through objects, but not into arrays. A name may be any text."""

FieldKind = Literal["boolean", "integer", "double", "text"]

Plan = str
"""A query as JSON text, which lists the steps of the query."""

View = Callable[[Any], Any]
"""A function that removes from a document the information that a loss changes, so that the stored and the returned
document can be compared."""


@dataclass(frozen=True)
class TypedField:
    """A field whose values have the same kind in all documents. The field may be missing or null in some documents.
    Integers have 64 bits."""

    path: FieldPath
    kind: FieldKind


class RefusedQuery(AdapterError):
    """The store cannot answer a query correctly. Format Bench then reads all documents and evaluates the query
    itself."""


@dataclass(frozen=True)
class DocumentLoss:
    """A change that a store is known to make to documents. Tests check that the change happens exactly as declared.

    `what` and `bound` describe the change and its limits in words. `kinds` are names of kinds of documents in
    tests/contracts/documents.py. The loss must occur for each of these kinds, and documents of all other kinds must
    come back exactly. The stored and the returned document must be identical after `view` is applied to each of them.
    If `view` is None, the store must refuse such documents with RefusedData.
    """

    what: str
    bound: str
    cause: Cause
    kinds: frozenset[str]
    view: View | None = None
    lossless: str | None = None
    """Full name of a variant without this loss; None if there is no such variant."""


@dataclass(frozen=True)
class DocumentOffers:
    """The operations that a store supports by its own calls, beyond storing documents and reading all documents.

    Every adapter can read documents by key, and read some fields of documents. If `get` or `project` is False, the
    adapter reads all documents for this operation.
    """

    get: bool = False
    """Whether the store finds documents by key without reading all documents."""
    project: bool = False
    """Whether the store reads some fields without decoding the other fields."""
    upsert: bool = False
    delete: bool = False
    index: bool = False
    """Whether fields can have an index that later writes update and that queries use."""
    operators: frozenset[str] = frozenset()
    """Names of the steps of queries that the store itself executes, such as `filter`, `unnest` or `group_by`. Queries
    with other steps are refused."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the offered operations, as `format-bench list` prints them."""
        named = {
            "get": self.get,
            "project": self.project,
            "upsert": self.upsert,
            "delete": self.delete,
            "index": self.index,
            f"query ({', '.join(sorted(self.operators))})": bool(self.operators),
        }
        return tuple(name for name, offered in named.items() if offered)


class DocumentHandle(ABC):
    """An open document store. Returned objects own their memory and stay valid after `close`.

    Only one thread at a time may write. Every call on this handle sees the changes of earlier writes.
    """

    @abstractmethod
    def count(self) -> int:
        """Return the number of documents."""

    @abstractmethod
    def scan(self, paths: Sequence[FieldPath] | None = None) -> Iterator[list[Document]]:
        """Yield every document once, in non-empty batches and in any order.

        If `paths` are given, the yielded documents are those that the function `parts` returns: only the fields at
        these paths. A document without such fields is an empty dict. Close an unfinished iterator before closing the
        handle.
        """

    @abstractmethod
    def get(self, keys: Sequence[Key]) -> list[Document | None]:
        """Return a list with the document of each key, or None for an unknown key, in the order of `keys`. Keys may
        repeat."""

    def read_table(self, fields: Sequence[TypedField]) -> pa.Table:
        """Return the values of some fields of all documents, in any order of documents.

        The table has one column for each field, of type bool, int64, double, string or large_string. A missing value
        and null are both null. By default, this method decodes all documents and makes arrays of the values in the
        documents.
        """
        values: list[list[Any]] = [[] for _ in fields]
        for batch in self.scan([field.path for field in fields]):
            for document in batch:
                for column, field in zip(values, fields, strict=True):
                    column.append(value_at(document, field.path))
        return table_of_values(fields, values)

    def prepare(self, plan: Plan) -> None:
        """Translate a query into the store's own language, such as SQL, and keep the translation for `query`.

        Raises RefusedQuery if `query` would raise it. The translation may look up facts about the data that users know
        when they write a query, such as the types of a field. The time for `prepare` is not measured. If a query was
        not prepared, `query` prepares it."""
        return

    def learn_from(self, other: DocumentHandle) -> None:
        """Copy the translated queries from `other`, another handle of the same store with the same documents, so that
        they need not be translated again. `other` may be closed."""
        return

    def query(self, plan: Plan) -> list[dict[str, Any]]:
        """Return the rows of a query's result as dicts, in the order that the query requests.

        Raises RefusedQuery for steps that are missing in `offers.operators`, and for conditions that the store would
        evaluate by other rules.
        """
        raise RefusedQuery("this store has no call that answers queries; read all documents by `scan` instead")

    def upsert(self, batch: Batch) -> None:
        """Store the documents of a batch. These documents replace stored documents with the same keys.

        If this method raises an error, no document of the batch is stored. When the method returns, the documents are
        as durable as the store's settings require. Only called if `offers.upsert` is True."""
        raise NotImplementedError("this store has no call that replaces documents")

    def delete(self, keys: Sequence[Key]) -> None:
        """Remove the documents with these keys. Unknown keys are ignored. Only called if `offers.delete` is True."""
        raise NotImplementedError("this store has no call that removes documents")

    def index(self, path: FieldPath) -> None:
        """Create an index on the field at this path, unless the field has an index already. Only called if
        `offers.index` is True."""
        raise NotImplementedError("this store has no index of fields")

    def has_index(self, path: FieldPath) -> bool:
        """Return whether the stored data have an index on the field at this path.

        Ask the store itself, because this handle may remember an index that was not stored. Only called if
        `offers.index` is True. The time for this method is not measured."""
        raise NotImplementedError("this store has no index of fields")

    def uses_index(self, plan: Plan) -> bool:
        """Return whether the store's own execution plan for this query uses an index on a field.

        Only called after `prepare`, and only if `offers.index` is True. The time for this method is not measured."""
        raise NotImplementedError("this store has no index of fields")

    def settle(self) -> None:
        """Wait until the store has finished work that writes have deferred, such as merges. By default do nothing,
        because most stores defer no work."""
        return

    @abstractmethod
    def close(self) -> None:
        """Release all resources. A second call does nothing."""


def _nothing() -> None:
    return


class DocumentStoreAdapter(Adapter):
    """Base class of the adapters for document stores. Their `native` is Native.DOCUMENTS."""

    native: ClassVar[Native] = Native.DOCUMENTS
    offers: ClassVar[DocumentOffers] = DocumentOffers()
    checks_lines: ClassVar[bool] = True
    """Whether the store checks while storing that each line is JSON, and refuses other lines. A store that keeps lines
    unchanged detects invalid lines only when it reads the lines."""

    @property
    def calls(self) -> Calls | None:
        """The code that a user writes without this adapter; None if the code has more than a few lines.

        In the code, `{held}` is replaced by the JSON Lines text, and `{key}` by the name of the key field. The code of
        `read` assigns a list of dicts to `documents`."""
        return None

    @property
    def losses(self) -> tuple[DocumentLoss, ...]:
        """The changes that this variant is known to make, and the documents that it is known to refuse."""
        return ()

    @abstractmethod
    def ingest(
        self, batches: Iterable[Batch], location: Path, key: str = "id", accepted: Callable[[], None] = _nothing
    ) -> None:
        """Store all documents at `location`, finish deferred work, and close all files.

        `key` is the name of the field that has a document's key. Keys must be unique. `location` does not exist yet and
        may become a file or a folder. Nothing may be written elsewhere. Call `accepted` once, when the store has
        accepted all documents. Deferred work such as merges may remain at this time.

        Raises RefusedData for a document that cannot be stored. The message has the document's number, counted from 0,
        if the library reports it. After this error the data at `location` are unusable.
        """

    @abstractmethod
    def open(self, location: Path, key: str = "id") -> DocumentHandle:
        """Return a handle of the store at `location`. `key` is the key field that was passed to `ingest`."""

    def shows_nothing(self, location: Path) -> str | None:
        """Return the reason why a setting of this variant has no effect on the stored data, or None if every setting
        has an effect.

        Reports show no figures of a variant whose setting has no effect. Call this method for a store of all documents,
        not of a small sample."""
        return None

    def size_bytes(self, location: Path) -> int:
        """Return the total size of the files with the stored documents, in bytes."""
        data = self.data_of(location)
        files = [data] if data.is_file() else [path for path in data.rglob("*") if path.is_file()]
        return sum(file.stat().st_size for file in files)


# --- operations on documents in Python, for stores without a call for the operation, and for verification ----------


def parts(document: Mapping[str, Any], paths: Sequence[FieldPath]) -> Document:
    """Return a document with only the values at these paths, nested in objects as in the original document.

    Paths do not lead into arrays. If the document has no value at a path, the result has nothing at this path, not even
    an empty object."""
    found: Document = {}
    for path in paths:
        value: Any = document
        for name in path:
            if not isinstance(value, dict) or name not in value:
                break
            value = value[name]
        else:
            _put(found, path, value)
    return found


def value_at(document: Document, path: FieldPath) -> Any:
    """Return the value at a path, or None if the document has no value there."""
    value: Any = document
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def table_of_values(fields: Sequence[TypedField], columns: Sequence[Sequence[Any]]) -> pa.Table:
    """Return the table that `read_table` defines, made from Python values. `columns` has a sequence of values for each
    field. Booleans may be 0 and 1."""
    import pyarrow as pa

    types = {"boolean": pa.bool_(), "integer": pa.int64(), "double": pa.float64(), "text": pa.string()}
    arrays = [
        pa.array(
            (None if value is None else bool(value) for value in values) if field.kind == "boolean" else values,
            types[field.kind],
        )
        for field, values in zip(fields, columns, strict=True)
    ]
    return pa.Table.from_arrays(arrays, names=[".".join(field.path) for field in fields])


def _put(found: Document, path: FieldPath, value: Any) -> None:
    inner = found
    for name in path[:-1]:
        inner = inner.setdefault(name, {})
    inner[path[-1]] = value


def identical(a: Any, b: Any) -> bool:
    """Return whether two values are identical in type and bits.

    For example, 1, 1.0 and True are different values, and so are 0.0 and -0.0. The order of an object's fields is
    ignored."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(identical(value, b[name]) for name, value in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(identical, a, b))
    if isinstance(a, float):
        return struct.pack("<d", a) == struct.pack("<d", b)
    return bool(a == b)


def seen(value: Any, losses: Sequence[DocumentLoss]) -> Any:
    """Return a document without the information that the losses may change, by applying the `view` of each loss."""
    for loss in losses:
        if loss.view is not None:
            value = loss.view(value)
    return value


def first_difference(
    stored: Iterable[Mapping[str, Any]],
    found: Iterable[Mapping[str, Any]],
    losses: Sequence[DocumentLoss] = (),
    key: str = "id",
) -> str | None:
    """Return a description of the first difference between stored and found documents that the losses do not explain.

    Returns None if there is no such difference. The order of documents is ignored. Raises RefusedData if two stored
    documents have the same key."""
    wanted: dict[tuple[type, Key], Mapping[str, Any]] = {}
    for document in stored:
        name = (type(document[key]), document[key])
        if name in wanted:
            raise RefusedData(f"two documents have the key {document[key]!r}")
        wanted[name] = document
    for document in found:
        name = (type(document.get(key)), document.get(key))
        expected = wanted.pop(name, None)
        if expected is None:
            return f"a document came back that was not stored, or twice: {key} {document.get(key)!r}"
        if not identical(seen(expected, losses), seen(document, losses)):
            told = f"was {_shortened(expected)}, came back {_shortened(document)}"
            return f"the document of {key} {document[key]!r} {told}"
    if wanted:
        return f"{len(wanted)} documents did not come back, the first of {key} {next(iter(wanted))[1]!r}"
    return None


def _shortened(document: Mapping[str, Any]) -> str:
    text = repr(document)
    return text if len(text) <= 300 else f"{text[:300]}..."
