"""Define the contract for document stores: JSON-like documents under a key, read whole or in part, and queried.

A document is a dict with text keys. Values are None, bool, int (64 bits, signed), float, str, bytes, list and dict,
nested up to `MOST_LEVELS`. Its key is one of its top-level fields, an int or text, with one kind per store. A missing
field differs from null, and equality compares type and bits. A query is passed as the JSON text of its plan (`to_json`
of `libraries.document_queries`), because this package imports no other.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from adapters.contract import Adapter, Calls, Native
from adapters.errors import AdapterError, RefusedData
from adapters.losses import Cause

MOST_LEVELS = 64
"""Maximum nesting depth of arrays and objects, including the document itself."""

Document = dict[str, Any]

Batch = bytes | Sequence[Document]
"""Documents as a user has them: dicts, or JSON Lines in UTF-8 as whole lines, with or without a final line break."""

Key = int | str

FieldPath = tuple[str, ...]
"""Field names from the top of a document down, not through arrays. A name may be any text."""

Plan = str
"""A query as JSON text."""

View = Callable[[Any], Any]
"""Maps a document to the part that is still compared."""


class RefusedQuery(AdapterError):
    """The store cannot answer this query correctly. The harness then reads everything and answers it itself."""


@dataclass(frozen=True)
class DocumentLoss:
    """A known change by a store, to be checked and not just excused.

    `kinds` are names of the contract's kinds of documents (tests/contracts/documents.py). The loss must occur on
    each of them, and all other documents must come back exactly. After `view` is applied, stored and returned documents
    must be identical. Without a `view` such documents are refused when they are stored (RefusedData).
    """

    what: str
    bound: str
    cause: Cause
    kinds: frozenset[str]
    view: View | None = None
    lossless: str | None = None
    """A variant without this loss."""


@dataclass(frozen=True)
class DocumentOffers:
    """The native operations of a store beyond storing documents and reading all of them.

    Reading by keys and reading some fields always work. If they are not offered, everything is read for them.
    """

    get: bool = False
    """Documents are found by their keys without reading everything."""
    project: bool = False
    """Some fields are read without decoding all others."""
    upsert: bool = False
    delete: bool = False
    index: bool = False
    """A field can be indexed; later writes keep the index up to date, and queries use it."""
    operators: frozenset[str] = frozenset()
    """The steps of a plan that the store itself carries out, by their tags (`filter`, `unnest`, `group_by` ...). A plan
    with another step is refused."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the operations, for a listing."""
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
    """An open store. What it returns has its own memory and stays valid after `close`.

    Only one thread at a time writes. Every later call of this handle sees a write.
    """

    @abstractmethod
    def count(self) -> int:
        """Return the number of documents."""

    @abstractmethod
    def scan(self, paths: Sequence[FieldPath] | None = None) -> Iterator[list[Document]]:
        """Yield all documents in non-empty batches, each once, in any order.

        With `paths`, documents contain only what these paths reach, as in `parts`; a document without any of it is an
        empty dict. Close an unfinished iterator before the handle.
        """

    @abstractmethod
    def get(self, keys: Sequence[Key]) -> list[Document | None]:
        """Return the documents of these keys in order, repeated if a key is repeated; None for an unknown key."""

    def prepare(self, plan: Plan) -> None:
        """Translate this query into the store's own language, such as SQL, and look up what users know about their data
        when they write it, such as the kinds of a field. Called outside the clock; `query` does it for a query that was
        not prepared. Raises RefusedQuery if `query` would refuse the plan."""
        return

    def learn_from(self, other: DocumentHandle) -> None:
        """Reuse what `prepare` found on another handle of this store with the same documents, so that `query` does not
        repeat it. The other handle may be closed."""
        return

    def query(self, plan: Plan) -> list[dict[str, Any]]:
        """Return the rows of a plan, in their order.

        Raises RefusedQuery for operators that `offers` does not have, and for conditions with another meaning in the
        store.
        """
        raise RefusedQuery("this store has no call that answers queries; read it by scan")

    def upsert(self, batch: Batch) -> None:
        """Store documents, replacing those with the same key: all of the batch, or none of it if there is an error. On
        return they are as durable as the store's settings require. Only called if `offers` has it."""
        raise NotImplementedError("this store has no call that replaces documents")

    def delete(self, keys: Sequence[Key]) -> None:
        """Remove the documents of these keys; unknown keys are ignored. Only called if `offers` has it."""
        raise NotImplementedError("this store has no call that removes documents")

    def index(self, path: FieldPath) -> None:
        """Create an index on this path, unless it has one. Only called if `offers` has it."""
        raise NotImplementedError("this store has no index of fields")

    def has_index(self, path: FieldPath) -> bool:
        """Return whether the stored data have an index on this path, not whether this handle remembers one. Only called
        if `offers` has it, outside the clock."""
        raise NotImplementedError("this store has no index of fields")

    def uses_index(self, plan: Plan) -> bool:
        """Return whether `query` would use an index on a field for this plan, according to the store's own execution
        plan. Only called if `offers` has it, outside the clock and after `prepare`."""
        raise NotImplementedError("this store has no index of fields")

    def settle(self) -> None:
        """Return after work that writes have deferred, such as merges, is done. Most stores have none."""
        return

    @abstractmethod
    def close(self) -> None:
        """Release everything. A second call does nothing."""


def _nothing() -> None:
    return


class DocumentStoreAdapter(Adapter):
    """One engine of one store for documents. `native` is Native.DOCUMENTS."""

    native: ClassVar[Native] = Native.DOCUMENTS
    offers: ClassVar[DocumentOffers] = DocumentOffers()
    checks_lines: ClassVar[bool] = True
    """Whether lines that are not JSON are refused when they are stored. A store that keeps lines unchanged detects them
    when it reads."""

    @property
    def calls(self) -> Calls | None:
        """The lines that a user writes without this adapter; None if it takes more than a few.

        `{held}` is the JSON Lines, `{key}` the name of the key. The read assigns a list of dicts to
        `documents`."""
        return None

    @property
    def losses(self) -> tuple[DocumentLoss, ...]:
        """What this variant is known to change or to refuse."""
        return ()

    @abstractmethod
    def ingest(
        self,
        batches: Iterable[Batch],
        location: Path,
        key: str = "id",
        accepted: Callable[[], None] = _nothing,
    ) -> None:
        """Store all documents at `location` under their field `key`, finish deferred work, and close every handle.

        `location` does not exist yet and may become a file or a folder. Nothing else is written. Keys are unique.
        `accepted` is called once, when every document has been taken and deferred work such as merges may remain.

        Raises RefusedData for documents that cannot be stored, with the document's number (from 0) if the library
        reports it. The data at `location` are then unusable.
        """

    @abstractmethod
    def open(self, location: Path, key: str = "id") -> DocumentHandle:
        """Open the store at `location`, with the key it was stored under."""

    def shows_nothing(self, location: Path) -> str | None:
        """Return why the stored data do not differ from those without a setting of this variant, so that it gets no
        figures; None if they differ. Called with all documents, not with few."""
        return None

    def size_bytes(self, location: Path) -> int:
        """Return the size of the files that hold documents, in bytes."""
        data = self.data_of(location)
        files = [data] if data.is_file() else [path for path in data.rglob("*") if path.is_file()]
        return sum(file.stat().st_size for file in files)


# --- meaning of documents, for stores without a native call and for verification ---------------------------------


def parts(document: Mapping[str, Any], paths: Sequence[FieldPath]) -> Document:
    """Return what these paths reach in a document, within objects like those around it.

    Arrays are not entered. A path that reaches nothing leaves nothing, not even an empty object."""
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


def _put(found: Document, path: FieldPath, value: Any) -> None:
    inner = found
    for name in path[:-1]:
        inner = inner.setdefault(name, {})
    inner[path[-1]] = value


def identical(a: Any, b: Any) -> bool:
    """Return whether two values are identical in type and bits: 1, 1.0 and True differ, and so do 0.0 and -0.0. The
    order of an object's fields is ignored."""
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
    """Return the part of a document that is compared under these losses."""
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
    """Describe the first document that did not come back as stored, apart from these losses; None if all did.

    The order of documents is ignored. Raises RefusedData if a key occurs twice among the stored documents."""
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
