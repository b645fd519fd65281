"""The contract that every document store keeps: JSON-like documents under a key, whole, in part, and queried.

A document is a dict with text keys of None, bool, int (64 bits, signed), float, str, bytes, list and dict, nested to
`MOST_LEVELS`. Its key is one of its own fields, at the top: int or text, one kind in a store. Missing is not null, and
equality is of type and bits. A query travels as the JSON text of its plan (`to_json` of `libraries.document_queries`),
because this package imports no other.
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
"""How deep arrays and objects may lie in each other, the document itself counted."""

Document = dict[str, Any]

Batch = bytes | Sequence[Document]
"""Documents as a user has them: JSON Lines, whole lines in UTF-8, the last one ended or not; or dicts."""

Key = int | str

FieldPath = tuple[str, ...]
"""Names of fields from the top of a document down, not through arrays. A name may be any text."""

Plan = str
"""A query as JSON text."""

View = Callable[[Any], Any]
"""Of a document, what is still to be compared."""


class RefusedQuery(AdapterError):
    """The store has no call that answers this query as it is meant. The harness reads everything and answers itself."""


@dataclass(frozen=True)
class DocumentLoss:
    """One thing that a store is known to change, as a check and not as a waiver.

    `kinds` are names of the contract's kinds of documents (tests/contracts/documents.py). On each of them the loss
    must be seen, and on all others documents come back exactly. What was stored and what came back must be identical
    once `view` was taken of both. Without a `view` such documents are refused when they are stored (RefusedData).
    """

    what: str
    bound: str
    cause: Cause
    kinds: frozenset[str]
    view: View | None = None
    lossless: str | None = None
    """A variant that does not lose this."""


@dataclass(frozen=True)
class DocumentOffers:
    """What a store has calls of its own for, beside storing documents and reading all of them.

    Reading by keys and reading some fields always answer; where they are not offered everything was read for it.
    """

    get: bool = False
    """Documents are found by their keys without reading all."""
    project: bool = False
    """Some fields are read without making values of all others."""
    upsert: bool = False
    delete: bool = False
    index: bool = False
    """A field may be given an index, which later writes keep right and queries use."""
    operators: frozenset[str] = frozenset()
    """The steps of a plan that the store itself carries out, by their tags (`filter`, `unnest`, `group_by` ...); a plan
    with another one is refused."""

    @property
    def names(self) -> tuple[str, ...]:
        """The operations, for a listing."""
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
    """Stored documents that are open. What it gives is in memory of its own and stays valid after `close`.

    Written to by one thread at a time. A write is seen by every later call of this handle.
    """

    @abstractmethod
    def count(self) -> int:
        """How many documents there are."""

    @abstractmethod
    def scan(self, paths: Sequence[FieldPath] | None = None) -> Iterator[list[Document]]:
        """All documents in batches that are never empty, each once, in any order.

        With `paths` as `parts` has it: of each document what these paths reach, and nothing else; a document without
        any of it is an empty dict. An iterator that is not taken to its end is to be closed before the handle is.
        """

    @abstractmethod
    def get(self, keys: Sequence[Key]) -> list[Document | None]:
        """The documents of these keys in that order, repeated where a key is; None for a key that no document has."""

    def prepare(self, plan: Plan) -> None:
        """Put this query into the store's own language, as a SQL statement for example, and look up what users know of
        their data when they write that, such as which kinds a field has. It is called outside the clock; a query that
        was not prepared does it itself. Raises RefusedQuery where `query` would because of the plan."""
        return

    def learn_from(self, other: DocumentHandle) -> None:
        """Take over what `prepare` has made and found on another handle of this store, which may be closed, on the same
        documents: none of it is done again by `query`."""
        return

    def query(self, plan: Plan) -> list[dict[str, Any]]:
        """The rows that a plan gives, in their order.

        Raises RefusedQuery for what `offers` does not name, and for a condition that the store means differently.
        """
        raise RefusedQuery("this store has no call that answers queries; read it by scan")

    def upsert(self, batch: Batch) -> None:
        """Store documents, each in place of the one of its key if there is one: all of the batch or, with an error,
        none of it. On return they are as durable as the store's settings say. Only where `offers` names it."""
        raise NotImplementedError("this store has no call that replaces documents")

    def delete(self, keys: Sequence[Key]) -> None:
        """Remove the documents of these keys; one that is not there is passed over. Only where `offers` names it."""
        raise NotImplementedError("this store has no call that removes documents")

    def index(self, path: FieldPath) -> None:
        """Give what this path reaches an index of its own; nothing is done where it has one. Only where `offers` names
        it."""
        raise NotImplementedError("this store has no index of fields")

    def has_index(self, path: FieldPath) -> bool:
        """Whether this path has an index, as what is stored says, and not as this handle remembers. Only where
        `offers` names it; asked outside the clock."""
        raise NotImplementedError("this store has no index of fields")

    def uses_index(self, plan: Plan) -> bool:
        """Whether `query` would look for the documents of this plan in an index of a field, as the store's own plan of
        execution says. Only where `offers` names it; asked outside the clock, after `prepare`."""
        raise NotImplementedError("this store has no index of fields")

    def settle(self) -> None:
        """Return once the work is done that writes have left for later, such as merges; most stores have none."""
        return

    @abstractmethod
    def close(self) -> None:
        """Let go of everything. A second call does nothing."""


def _nothing() -> None:
    return


class DocumentStoreAdapter(Adapter):
    """One engine of one store for documents. `native` is Native.DOCUMENTS."""

    native: ClassVar[Native] = Native.DOCUMENTS
    offers: ClassVar[DocumentOffers] = DocumentOffers()
    checks_lines: ClassVar[bool] = True
    """Whether lines that are no JSON are refused when they are stored. A store that keeps lines as they are finds it
    when it reads them."""

    @property
    def calls(self) -> Calls | None:
        """The lines that a user writes without this adapter: `{held}` are JSON Lines, `{key}` is the name of the key,
        and what is read is called `documents`, a list of dicts. None where that takes more than some lines."""
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
        """Store all documents at `location` (does not exist yet; may become a file or a folder) under their field
        `key`, finish what is due, and close every handle. Writes nowhere else. No key comes twice.

        `accepted` is called once, when every document has been taken and work such as merges may still be due.
        Raises RefusedData, naming the document's number (from 0) as far as the store's library tells it, for what
        cannot be stored; then what lies at `location` is not to be read.
        """

    @abstractmethod
    def open(self, location: Path, key: str = "id") -> DocumentHandle:
        """Open what lies at `location`, with the key that it was stored under."""

    def shows_nothing(self, location: Path) -> str | None:
        """Why what lies there is the same as without a setting of this variant, so that no figure may bear its name;
        None for what differs. Asked of all documents, not of few."""
        return None

    def size_bytes(self, location: Path) -> int:
        """What the files hold that documents lie in."""
        data = self.data_of(location)
        files = [data] if data.is_file() else [path for path in data.rglob("*") if path.is_file()]
        return sum(file.stat().st_size for file in files)


# --- what documents mean, for stores that have no call for it, and for whoever checks them ----------------------


def parts(document: Mapping[str, Any], paths: Sequence[FieldPath]) -> Document:
    """Of a document what these paths reach, in objects like those around it. Arrays are not entered; what a path
    does not reach leaves nothing behind, not even an empty object."""
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
    """Whether two values are one and the same by type and bits: 1, 1.0 and True differ, and so do 0.0 and -0.0; the
    order of an object's fields means nothing."""
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
    """What of a document is compared where these losses are declared."""
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
    """What the first document is that did not come back as it was stored, but for these losses; None where all did.

    The order of documents means nothing. Raises RefusedData where a key comes twice among those stored."""
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
