"""A document store that misbehaves on request. It stores one JSON file, and keeps a dict in memory while it is open.

The setting `fault` selects the fault.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from adapters.contract import Setting
from adapters.document_store import (
    Batch,
    Document,
    DocumentHandle,
    DocumentOffers,
    DocumentStoreAdapter,
    FieldPath,
    Key,
    parts,
)
from bench_runner.data_kinds import DOCUMENTS
from libraries.document_queries import from_json, run_over_documents

FAULTS = (
    "none",
    "lost_upsert",
    "lost_delete",
    "previous_version",
    "get_in_other_order",
    "get_finds_what_is_not_there",
    "drops_nulls",
    "null_is_missing",
    "integers_become_doubles",
    "fields_of_another_document",
    "counts_one_less",
    "one_document_twice",
    "range_without_its_end",
    "changes_when_asked_again",
    "answers_what_it_was_prepared_for_alone",
    "reads_the_file_to_prepare",
    "reads_the_file_to_answer",
    "remembers_its_answers",
    "index_does_nothing",
    "index_not_kept_up",
    "scans_in_spite_of_its_index",
)


class FaultyDocuments(DocumentStoreAdapter):
    """A folder with one file that contains all documents."""

    format = "faulty-documents"
    engine = None
    title = "Faulty"
    distributions: ClassVar[tuple[str, ...]] = ("msgspec",)
    suffix = ".faulty"
    settings: ClassVar = {"fault": Setting(FAULTS, "none", "what goes wrong", always_spelled=True)}
    capabilities = frozenset()
    offers = DocumentOffers(
        get=True,
        project=True,
        upsert=True,
        delete=True,
        index=True,
        operators=frozenset({"filter", "project", "group_by", "count", "compute", "top_k", "limit", "unnest"}),
    )

    def load_library(self) -> None:
        """Do nothing."""

    def ingest(
        self, batches: Iterable[Batch], location: Path, key: str = "id", accepted: Callable[[], None] = lambda: None
    ) -> None:
        """Collect all lines in a dict and write it."""
        location.mkdir()
        (location / "documents.json").write_text('{"documents": {}, "indexes": []}')
        handle = self.open(location, key)
        for batch in batches:
            handle.upsert(batch)
        accepted()
        handle.close()

    def open(self, location: Path, key: str = "id") -> Handle:
        """Load the file into a dict."""
        return Handle(location / "documents.json", key, str(self.values["fault"]))


class Handle(DocumentHandle):
    """A dict that is written back on close."""

    def __init__(self, path: Path, key: str, fault: str) -> None:
        self._path, self._key, self._fault = path, key, fault
        if fault != "reads_the_file_to_prepare":
            self._there  # noqa: B018
        self._changed = False
        self._asked = 0
        self._prepared: set[str] = set()
        self._answers: dict[str, list[dict[str, Any]]] = {}

    @cached_property
    def _there(self) -> dict[Key, Document]:
        return {document[self._key]: document for document in self._stored["documents"].values()}

    @cached_property
    def _indexes(self) -> dict[FieldPath, dict[Any, set[Key]]]:
        return {
            tuple(path): {value: set(keys) for value, keys in by_value} for path, by_value in self._stored["indexes"]
        }

    @cached_property
    def _stored(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._path.read_text())
        return found

    def count(self) -> int:
        """Return the number of documents."""
        return len(self._there)

    def scan(self, paths: Sequence[FieldPath] | None = None) -> Iterator[list[Document]]:
        """Yield all documents in one batch."""
        found = list(self._there.values())
        if self._fault == "one_document_twice":
            found.append(found[0])
        if self._fault == "null_is_missing":
            found = [_without_nulls(document) for document in found]
        if self._fault == "integers_become_doubles":
            found = [_as_doubles(document) for document in found]
        if paths is not None:
            found = [parts(document, paths) for document in found]
            if self._fault == "fields_of_another_document":
                found[0], found[1] = {**found[1], self._key: found[0][self._key]}, found[1]
        yield found

    def get(self, keys: Sequence[Key]) -> list[Document | None]:
        """Look up the keys in the dict."""
        found = [self._there.get(key) for key in keys]
        if self._fault == "get_in_other_order":
            found.reverse()
        if self._fault == "get_finds_what_is_not_there":
            found = [document or found[0] for document in found]
        if self._fault == "previous_version":
            found[0] = {**(found[0] or {}), "timestamp_ms": 1}
        return found

    def prepare(self, plan: str) -> None:
        """Remember the plan. With `reads_the_file_to_prepare`, also read the whole file."""
        if self._fault == "reads_the_file_to_prepare" and plan not in self._prepared:
            self._path.read_bytes()
        self._prepared.add(plan)

    def learn_from(self, other: DocumentHandle) -> None:
        """Copy the plans for which `other` was prepared."""
        assert isinstance(other, Handle)
        self._prepared = set(other._prepared)

    def query(self, plan: str) -> list[dict[str, Any]]:
        """Return the reference answer, or a wrong answer if the fault says so."""
        # Priming calls are exempt. They have fewer documents and other plans than the measured calls.
        strict = self._fault == "answers_what_it_was_prepared_for_alone" and len(self._there) > DOCUMENTS.primer_rows
        if strict and plan not in self._prepared:
            raise ValueError("a query without prepare")
        self._asked += 1
        if self._fault == "reads_the_file_to_answer":
            self._path.read_bytes()
        if self._fault == "remembers_its_answers" and plan in self._answers:
            return self._answers[plan]
        documents: list[Document] = list(self._there.values())
        if self._fault == "drops_nulls":
            # This imitates a table that leaves missing and null fields out of its groups.
            documents = [document for document in documents if "commit" in document]
        if self._fault == "counts_one_less" or (self._fault == "changes_when_asked_again" and self._asked > 3):
            documents = documents[:-1]
        if self._fault == "range_without_its_end":
            plan = plan.replace('"<="', '"<"')
        if (found := self._by_index(plan)) is not None:
            documents = [document for document in documents if document[self._key] in found]
        self._answers[plan] = run_over_documents(documents, from_json(plan), self._key)
        return self._answers[plan]

    def upsert(self, batch: Batch) -> None:
        """Insert or replace documents. With `lost_upsert`, existing documents stay unchanged."""
        assert isinstance(batch, bytes)
        self._changed = True
        for line in batch.splitlines():
            document = json.loads(line)
            key = document[self._key]
            if key in self._there and self._fault == "lost_upsert":
                continue
            if not (key in self._there and self._fault == "index_not_kept_up"):
                self._put_into_indexes(document)
            self._there[key] = document

    def delete(self, keys: Sequence[Key]) -> None:
        """Delete documents. With `lost_delete`, do nothing."""
        self._changed = True
        for key in keys:
            if self._fault != "lost_delete":
                self._there.pop(key, None)

    def index(self, path: FieldPath) -> None:
        """Map each value to the keys of documents that have or had it. Queries check these documents only."""
        if path not in self._indexes and self._fault != "index_does_nothing":
            self._changed = True
            self._indexes[path] = {}
            for document in self._there.values():
                self._put_into_indexes(document)

    def _put_into_indexes(self, document: Document) -> None:
        for path, keys in self._indexes.items():
            keys.setdefault(_at(document, path), set()).add(document[self._key])

    def has_index(self, path: FieldPath) -> bool:
        """Return whether the path has an index."""
        return path in self._indexes

    def uses_index(self, plan: str) -> bool:
        """Return whether the query uses an index."""
        return self._by_index(plan) is not None

    def _by_index(self, plan: str) -> set[Key] | None:
        """Return the keys that the index has for the plan's range, or None without an index."""
        first = json.loads(plan)[0]
        if first["is"] != "filter" or first["condition"]["is"] != "and" or self._fault == "scans_in_spite_of_its_index":
            return None
        low, high = first["condition"]["conditions"]
        index = self._indexes.get(tuple(low["left"]["path"]))
        if index is None:
            return None
        ends = low["right"]["value"], high["right"]["value"]
        inside = [keys for value, keys in index.items() if type(value) is int and ends[0] <= value <= ends[1]]
        return set().union(*inside)

    def close(self) -> None:
        """Write the file if something changed."""
        if self._changed:
            documents = {str(key): document for key, document in self._there.items()}
            indexes = [
                [path, [[value, list(keys)] for value, keys in by_value.items()]]
                for path, by_value in self._indexes.items()
            ]
            self._path.write_text(json.dumps({"documents": documents, "indexes": indexes}))
            self._changed = False


def _at(document: Document, path: FieldPath) -> Any:
    value: Any = document
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if type(value) is int else None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(below) for name, below in value.items() if below is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _as_doubles(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: below if name == "id" else _as_doubles(below) for name, below in value.items()}
    if isinstance(value, list):
        return [_as_doubles(item) for item in value]
    return float(value) if type(value) is int else value


ENGINES = (FaultyDocuments,)
