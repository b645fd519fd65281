"""Contract of document stores. A store's test file inherits it and names the variant:

    class TestJsonLines(DocumentStoreContract):
        variant = "json-lines[engine=msgspec,codec=zstd]"

Stores declare their limits (`losses` and `offers`); they do not override tests.
"""

from __future__ import annotations

import os
import pickle
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from adapters.contract import Can
from adapters.document_store import (
    Batch,
    DocumentHandle,
    DocumentLoss,
    DocumentStoreAdapter,
    FieldKind,
    FieldPath,
    Key,
    TypedField,
    first_difference,
    identical,
    parts,
    value_at,
)
from adapters.errors import AdapterError, RefusedData
from adapters.registry import Registry
from data_generator.generated.document_kinds import HOSTILE_NAMES, KINDS, Documents
from document_stores.registry import DOCUMENT_STORES
from tests.contracts.adapters import AdapterContract, left_mapped, left_open, only_for, open_below
from tests.contracts.attached_duckdb import attached_duckdb
from tests.contracts.document_queries import DocumentQueries
from tests.contracts.fresh import run_fresh
from tests.contracts.projection import rchar

MALFORMED = {
    "cut": b'{"id":0,"a":1}\n{"id":1,"a":\n',
    "not an object": b'{"id":0,"a":1}\n[1]\n',
    "not a number": b'{"id":0,"a":1}\n{"id":1,"a":NaN}\n',
    "not UTF-8": b'{"id":0,"a":"x"}\n{"id":1,"a":"\xff\xfe"}\n',
    "not JSON": b'{"id":0,"a":1}\nid: 1\n',
}

PATHS: dict[str, list[FieldPath]] = {
    "one": [("name",)],
    "nested": [("at", "x"), ("id",)],
    "array": [("at", "tags")],
    "whole object": [("at",), ("ok",)],
    "missing fields": [("nowhere",), ("name", "x"), ("at", "x", "y"), ("id",)],
    "nothing": [],
}

SOME = 4
"""Every fourth kind is also tested as JSON lines."""
SHARED = "from document_stores.registry import DOCUMENT_STORES"

LOADS_NOTHING = """
import sys, warnings
from pathlib import Path
from document_stores.registry import DOCUMENT_STORES

warnings.simplefilter("ignore")
variant, location = sys.argv[1:3]
adapter = DOCUMENT_STORES.build(variant)
adapter.load_library()
before = set(sys.modules)
adapter.ingest([b'{"id":1,"a":{"b":[1]}}\\n', [{"id": 2, "a": {"b": [2]}}]], Path(location))
handle = adapter.open(Path(location))
handle.count(), list(handle.scan()), list(handle.scan([("a",)])), handle.get([2, 3])
if adapter.offers.upsert:
    handle.upsert(b'{"id":1,"a":{"b":[3]}}\\n')
if adapter.offers.delete:
    handle.delete([2])
if adapter.offers.index:
    handle.index(("a",))
handle.close()
print(",".join(sorted(set(sys.modules) - before)))
"""

TELLS_ITS_ERROR = """
import sys
from pathlib import Path
from document_stores.registry import DOCUMENT_STORES

adapter = DOCUMENT_STORES.build(sys.argv[1])
adapter.load_library()
try:
    handle = adapter.open(Path(sys.argv[2]))
    list(handle.scan())
except Exception as error:
    print(type(error).__name__, error)
"""


def lines_of(documents: Documents) -> bytes:
    """Return the documents as JSON Lines."""
    return b"".join(msgspec.json.encode(document) + b"\n" for document in documents)


def found(handle: DocumentHandle, paths: list[FieldPath] | None = None) -> Documents:
    """Return all batches of a scan as one list."""
    gathered: Documents = []
    for batch in handle.scan(paths):
        assert batch
        gathered += batch
    return gathered


def needs_dicts(kind: str) -> bool:
    """Return whether values of this kind have no JSON notation."""
    return kind in ("not finite", "binary")


class DocumentStoreContract(AdapterContract, DocumentQueries):
    """Contract of a document store. Inherit it and set `variant`."""

    variant: ClassVar[str]
    registry: ClassVar[Registry] = DOCUMENT_STORES

    @pytest.fixture
    def location(self, adapter: DocumentStoreAdapter, place: Path) -> Path:
        return place / f"stored{adapter.suffix}"

    @contextmanager
    def stored(
        self, adapter: DocumentStoreAdapter, documents: Documents | Iterable[Batch], location: Path
    ) -> Iterator[DocumentHandle]:
        """Store documents, or batches of documents, and yield an open handle. A server is started if the store needs
        one."""
        batches = list(documents)
        adapter.begin(location)
        try:
            adapter.ingest([batches] if batches and isinstance(batches[0], dict) else batches, location)  # type: ignore
            handle = adapter.open(location)
            try:
                yield handle
            finally:
                handle.close()
        finally:
            adapter.end(location)
        assert left_open(location.parent) == []

    def losses_of(self, adapter: DocumentStoreAdapter, kind: str) -> list[DocumentLoss]:
        return [loss for loss in adapter.losses if kind in loss.kinds]

    # --- what comes back -------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("way", ["dicts", "lines"])
    @attached_duckdb()
    def test_documents_come_back_except_for_declared_losses(
        self, way: str, adapter: DocumentStoreAdapter, location: Path, subtests: pytest.Subtests
    ) -> None:
        for number, kind in enumerate(KINDS):
            # Every kind can be given as dicts. Stores convert lines to dicts or dicts to lines, so a few kinds suffice
            # for lines.
            if way == "lines" and (needs_dicts(kind) or number % SOME):
                continue
            with subtests.test(kind):
                self.comes_back(kind, way, adapter, location.with_name(f"{number}{adapter.suffix}"))

    def comes_back(self, kind: str, way: str, adapter: DocumentStoreAdapter, location: Path) -> None:
        """Check that one kind of documents, given as "dicts" or "lines", comes back."""
        documents = KINDS[kind]
        losses = self.losses_of(adapter, kind)
        batches: list[Batch] = [lines_of(documents)] if way == "lines" else [documents]
        if any(loss.view is None for loss in losses):
            with pytest.raises(RefusedData):
                adapter.ingest(batches, location)
            assert left_open(location.parent) == []
            return
        with self.stored(adapter, batches, location) as handle:
            came = found(handle)
            assert handle.count() == len(documents)
        assert first_difference(documents, came, losses) is None
        for loss in losses:
            others = [other for other in losses if other is not loss]
            assert first_difference(documents, came, others) is not None, f"declared, but did not occur: {loss.what}"

    def test_losses_name_kinds_that_exist(self, adapter: DocumentStoreAdapter) -> None:
        for loss in adapter.losses:
            assert loss.kinds, loss.what
            assert loss.kinds <= set(KINDS), loss.what

    def test_mixed_batches_come_back_from_the_same_and_a_new_adapter(
        self, adapter: DocumentStoreAdapter, location: Path
    ) -> None:
        documents = [
            {"id": n, "name": f"n{n}", "at": {"x": n * 3}, "tags": [str(n)] * (n % 3 + 1)} for n in range(5_000)
        ]
        batches: list[Batch] = []
        for first in range(0, 5_000, 700):
            some = documents[first : first + 700]
            batches.append(some if first % 1_400 else lines_of(some))
        with self.stored(adapter, batches, location) as handle:
            assert first_difference(documents, found(handle)) is None
        again = self.registry.build(adapter.variant)
        again.load_library()
        handle = again.open(location)
        assert handle.count() == 5_000
        assert first_difference(documents, found(handle)) is None
        handle.close()

    def test_lines_may_be_blank_and_the_last_newline_may_be_missing(
        self, adapter: DocumentStoreAdapter, location: Path
    ) -> None:
        batches: list[Batch] = [b'{"id": 1, "a": "x"}\n\n  \n{"id":2,"a":"y"}', b"", b"\n", [], b'{"id":3,"a":"z"}\n']
        with self.stored(adapter, batches, location) as handle:
            wanted = [{"id": 1, "a": "x"}, {"id": 2, "a": "y"}, {"id": 3, "a": "z"}]
            assert first_difference(wanted, found(handle)) is None
            assert handle.count() == 3

    def test_escapes_in_names_and_texts_are_decoded(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        text = b'{"id":1,"n\\u00e4me":{"\\u0061":"\\ud83d\\ude00\\/"}}\n{"id":2,"n\\u00e4me":{"\\u0061":"x"}}\n'
        with self.stored(adapter, [text], location) as handle:
            assert {part["näme"]["a"] for part in found(handle, [("näme", "a")])} == {"😀/", "x"}

    def test_folders_called_name_and_value_do_not_become_fields(
        self, adapter: DocumentStoreAdapter, place: Path
    ) -> None:
        folder = place / "run=3" / "key=7" / "id=x" / "document=1" / "new=2020-01-01"
        folder.mkdir(parents=True)
        documents = [{"id": number, "run": 8 + number, "key": "k", "document": {"a": number}} for number in range(5)]
        with self.stored(adapter, documents, folder / f"stored{adapter.suffix}") as handle:
            assert first_difference(documents, found(handle)) is None
            wanted = [{"id": number, "run": 8 + number} for number in range(5)]
            assert first_difference(wanted, found(handle, [("id",), ("run",), ("new",)])) is None
            assert identical(handle.get([3, 7]), [documents[3], None])

    def test_an_empty_store(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        with self.stored(adapter, [], location) as handle:
            assert handle.count() == 0
            assert found(handle) == []
            assert found(handle, [("a",)]) == []
            assert handle.get([1, 2]) == [None, None]

    def test_accepted_is_called_once(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        calls = []
        adapter.ingest([KINDS["plain"]], location, "id", lambda: calls.append(1))
        assert calls == [1]

    # --- parts and keys --------------------------------------------------------------------------------------------

    def test_a_scan_of_paths_returns_these_parts(
        self, adapter: DocumentStoreAdapter, location: Path, subtests: pytest.Subtests
    ) -> None:
        with self.stored(adapter, KINDS["plain"], location) as handle:
            for name, paths in PATHS.items():
                with subtests.test(name):
                    wanted = [parts(document, paths) for document in KINDS["plain"]]
                    assert sorted(map(_text, found(handle, paths))) == sorted(map(_text, wanted))

    @pytest.mark.parametrize("text", ["a'é\"\\", "nul \0 within"])
    def test_a_table_of_fields_has_their_values_and_types(
        self, text: str, adapter: DocumentStoreAdapter, location: Path
    ) -> None:
        documents: Documents = [
            {"id": 0, "n": 2**62 + 1, "x": 0.1, "t": text, "ok": True, "in": {"n": 1, "b.c": "5"}},
            {"id": 1, "n": None, "ok": False, "in": {"n": None}},
            {"id": 2, "n": -5, "x": -2.5e300, "t": "", "ok": None, "in": {"b.c": "true"}},
            {"id": 3, "t": "7"},
        ]
        kinds: dict[FieldPath, FieldKind] = {
            **{("id",): "integer", ("n",): "integer", ("x",): "double", ("t",): "text", ("ok",): "boolean"},
            **{("in", "n"): "integer", ("in", "b.c"): "text"},
        }
        types = {"integer": "int64", "double": "double", "boolean": "bool", "text": "string"}
        try:
            with self.stored(adapter, documents, location) as handle:
                table = handle.read_table([TypedField(path, kind) for path, kind in kinds.items()])
        except RefusedData:
            assert "\0" in text
            return
        columns = [column.to_pylist() for column in table.columns]
        found = [list(row) for row in sorted(zip(*columns, strict=True))]
        assert identical(found, [[value_at(each, path) for path in kinds] for each in documents])
        assert [str(type_).removeprefix("large_") for type_ in table.schema.types] == [
            types[kind] for kind in kinds.values()
        ]

    @attached_duckdb()
    def test_a_scan_of_paths_has_no_undeclared_losses(
        self, adapter: DocumentStoreAdapter, location: Path, subtests: pytest.Subtests
    ) -> None:
        for kind in ("missing and null", "names", "names within", "changing types", "empty name"):
            losses = self.losses_of(adapter, kind)
            if any(loss.view is None for loss in losses):
                continue
            names = HOSTILE_NAMES if "names" in kind else ("a", "c", "")
            paths: list[FieldPath] = [("id",), *((name,) for name in names), *(("in", name, name) for name in names)]
            with subtests.test(kind):
                with self.stored(adapter, KINDS[kind], location.with_name(f"{kind}{adapter.suffix}")) as handle:
                    came = found(handle, paths)
                wanted = [parts(document, paths) for document in KINDS[kind]]
                assert first_difference(wanted, came, losses) is None

    def test_documents_come_in_the_order_of_the_requested_keys(
        self, adapter: DocumentStoreAdapter, location: Path
    ) -> None:
        documents = KINDS["plain"]
        with self.stored(adapter, documents, location) as handle:
            came = handle.get([7, 99, 0, 7, -1, 39])
            assert handle.get([]) == []
            assert handle.get([10**6]) == [None]
        wanted = [documents[7], None, documents[0], documents[7], None, documents[39]]
        assert identical(came, wanted)

    def test_text_keys_are_found(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        documents = KINDS["text keys"]
        keys = [document["id"] for document in documents]
        with self.stored(adapter, documents, location) as handle:
            assert identical(handle.get(keys[::-1]), documents[::-1])
            assert handle.get(["unknown", "'", keys[1] + "x"]) == [None, None, None]

    @pytest.mark.parametrize("kind", ["plain", "text keys"])
    def test_keys_that_no_document_can_have_are_not_found(
        self, kind: str, adapter: DocumentStoreAdapter, location: Path
    ) -> None:
        documents = KINDS[kind]
        there = documents[3]["id"]
        impossible: list[Key] = ["no such key", -1, 2**70, -(2**63) - 1, "k" * 5_000, "\ud800"]
        with self.stored(adapter, documents, location) as handle:
            came = handle.get([*impossible[:3], there, *impossible[3:]])
            assert identical(came, [None, None, None, documents[3], None, None, None])
            if adapter.offers.delete:
                handle.delete([*impossible, there, *impossible])
                assert handle.count() == len(documents) - 1

    def test_a_key_of_another_name(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        name = "the \"key's"
        documents = [{"a": number, name: f"k{number}"} for number in range(20)]
        adapter.ingest([documents], location, name)
        handle = adapter.open(location, name)
        assert identical(handle.get(["k3", "k0", "k20"]), [documents[3], documents[0], None])
        handle.close()

    def test_results_stay_valid_after_close(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        with self.stored(adapter, KINDS["plain"], location) as handle:
            came = found(handle)
            one = handle.get([3])
        handle.close()
        assert left_mapped(location.parent) == []
        assert first_difference(KINDS["plain"], came) is None
        assert identical(one, [KINDS["plain"][3]])

    # --- later writes ----------------------------------------------------------------------------------------------

    @only_for(lambda adapter: adapter.offers.upsert)
    def test_upserts_replace_and_add(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        held = {document["id"]: document for document in KINDS["plain"]}
        changed: Documents = [{"id": 3, "name": [1, "x"]}, {"id": 50, "new": {"a": None}}, {"id": 7, "at": "text"}]
        with self.stored(adapter, KINDS["plain"], location) as handle:
            handle.upsert(changed)
            handle.upsert(b'{"id":3,"name":"last"}\n{"id":51,"n\\u00e4me":true}\n')
            handle.upsert([])
            handle.upsert(b"")
            held |= {document["id"]: document for document in changed}
            held |= {3: {"id": 3, "name": "last"}, 51: {"id": 51, "näme": True}}
            assert first_difference(held.values(), found(handle)) is None
            assert handle.count() == len(held)
            handle.settle()
            assert first_difference(held.values(), found(handle)) is None
        again = adapter.open(location)
        assert first_difference(held.values(), found(again)) is None
        assert identical(again.get([3, 51]), [held[3], held[51]])
        again.close()

    @only_for(lambda adapter: adapter.offers.upsert)
    def test_the_last_document_of_a_key_in_one_upsert_wins(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        with self.stored(adapter, KINDS["plain"], location) as handle:
            handle.upsert([{"id": 1, "a": 1}, {"id": 2, "a": 2}, {"id": 1, "a": 3}])
            assert identical(handle.get([1, 2]), [{"id": 1, "a": 3}, {"id": 2, "a": 2}])
            assert handle.count() == len(KINDS["plain"])

    @only_for(lambda adapter: adapter.offers.delete)
    def test_deleted_documents_are_gone(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        with self.stored(adapter, KINDS["plain"], location) as handle:
            handle.delete([3, 5, 99, 3])
            handle.delete([])
            held = [document for document in KINDS["plain"] if document["id"] not in (3, 5)]
            assert first_difference(held, found(handle)) is None
            assert handle.count() == len(held)
            assert handle.get([3, 4]) == [None, held[3]]
            if adapter.offers.upsert:
                handle.upsert([{"id": 3, "again": 1}])
                assert identical(handle.get([3]), [{"id": 3, "again": 1}])

    @only_for(lambda adapter: adapter.offers.upsert)
    def test_an_upsert_of_an_invalid_batch_changes_nothing(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        wrong: list[Batch] = [*MALFORMED.values(), [{"id": 0, "a": 0}, {"a": 1}], [{"id": 0}, {"id": None}]]
        with self.stored(adapter, KINDS["plain"], location) as handle:
            for batch in wrong:
                with pytest.raises(RefusedData):
                    handle.upsert(batch)
            assert first_difference(KINDS["plain"], found(handle)) is None

    def test_calls_that_are_not_offered_raise_not_implemented(
        self, adapter: DocumentStoreAdapter, location: Path
    ) -> None:
        calls = {
            "upsert": lambda handle: handle.upsert([{"id": 1}]),
            "delete": lambda handle: handle.delete([1]),
            "index": lambda handle: handle.index(("a",)),
            "index/has": lambda handle: handle.has_index(("a",)),
            "index/uses": lambda handle: handle.uses_index("[]"),
        }
        with self.stored(adapter, KINDS["plain"], location) as handle:
            for name, call in calls.items():
                if not getattr(adapter.offers, name.partition("/")[0]):
                    with pytest.raises(NotImplementedError):
                        call(handle)

    # --- hostile input ---------------------------------------------------------------------------------------------

    @attached_duckdb()
    def test_malformed_lines_are_refused(
        self, adapter: DocumentStoreAdapter, location: Path, subtests: pytest.Subtests
    ) -> None:
        for number, (name, text) in enumerate(MALFORMED.items()):
            place = location.with_name(f"{number}{adapter.suffix}")
            with subtests.test(name):
                if adapter.checks_lines:
                    # The user needs the number of the malformed line, because a file may have millions of lines.
                    named = "document 1" if name == "not UTF-8" else ""
                    with pytest.raises(RefusedData, match=named):
                        adapter.ingest([text], place)
                    continue
                adapter.ingest([text], place)
                handle = adapter.open(place)
                with pytest.raises(AdapterError):
                    found(handle)
                handle.close()

    def test_ingest_does_not_change_its_input(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        documents: Documents = msgspec.json.decode(msgspec.json.encode(KINDS["plain"]))
        adapter.ingest([documents], location)
        assert identical(documents, KINDS["plain"])

    def test_a_missing_store_is_named_in_the_error_and_not_created(
        self, adapter: DocumentStoreAdapter, location: Path
    ) -> None:
        with pytest.raises((AdapterError, OSError), match=location.stem):
            adapter.open(location)
        assert not location.exists()

    @pytest.mark.slow
    def test_a_truncated_store_raises_an_error_without_a_crash(
        self, adapter: DocumentStoreAdapter, location: Path
    ) -> None:
        documents = [{"id": n, "text": f"{n * n} " * 40, "at": {"x": n}} for n in range(3_000)]
        adapter.ingest([documents], location)
        files = [path for path in (location, *location.rglob("*")) if path.is_file()]
        largest = max(files, key=_size_bytes)
        os.truncate(largest, _size_bytes(largest) // 2)
        done = run_fresh(SHARED, TELLS_ITS_ERROR, self.variant, str(location))
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() != "", "the truncated store was read without an error"

    def test_reads_unseen_is_declared_if_and_only_if_read_calls_miss_bytes(
        self, adapter: DocumentStoreAdapter, location: Path
    ) -> None:
        """Read all documents.

        Otherwise a memory-mapped store would look like a store that answers from its own memory.
        """
        numbers = random.Random(5)
        adapter.ingest([[{"id": n, "text": numbers.randbytes(60).hex()} for n in range(3_000)]], location)
        before = rchar()
        handle = adapter.open(location)
        found(handle)
        # Read the counter before `close`. When a server ends, the bytes that it read are added to this process's
        # counters.
        asked = rchar() - before
        handle.close()
        least = 3_000 * 60 / 2
        assert (asked > least) != adapter.reads_unseen, (asked, least)

    # --- files -------------------------------------------------------------------------------------------------------

    def test_writes_only_at_its_location(
        self, adapter: DocumentStoreAdapter, location: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        working, temporary = tmp_path / "working", tmp_path / "temporary"
        working.mkdir()
        temporary.mkdir()
        monkeypatch.chdir(working)
        monkeypatch.setenv("TMPDIR", str(temporary))
        with self.stored(adapter, KINDS["plain"], location) as handle:
            found(handle)
        assert list(location.parent.iterdir()) == [location]
        assert list(working.iterdir()) == []
        assert list(temporary.iterdir()) == []
        assert adapter.size_bytes(location) > 0

    def test_ingest_leaves_no_handle_open(self, adapter: DocumentStoreAdapter, location: Path, place: Path) -> None:
        adapter.ingest([KINDS["plain"]], location)
        assert list(open_below(place)) == []
        adapter.stored(location)
        assert left_open(place) == []

    def test_a_scan_may_be_closed_early(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        with self.stored(adapter, KINDS["plain"], location) as handle:
            begun: Any = handle.scan()
            assert next(begun)
            begun.close()

    def test_nothing_is_pickled(
        self, adapter: DocumentStoreAdapter, location: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: Any, **__: Any) -> None:
            raise AssertionError("pickled")

        for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
            monkeypatch.setattr(pickle, name, refuse)
        with self.stored(adapter, KINDS["plain"], location) as handle:
            found(handle)
        assert Can.NO_PICKLE in adapter.capabilities

    def test_the_stored_codec_is_that_of_the_variant(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        adapter.ingest([KINDS["plain"]], location)
        stored = adapter.stored(location)
        assert stored.codec == adapter.values.get("codec", stored.codec)

    @pytest.mark.slow
    def test_its_calls_import_nothing(self, location: Path) -> None:
        done = run_fresh(SHARED, LOADS_NOTHING, self.variant, str(location))
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == ""

    def test_variants_measured_along_with_it_can_be_built(self, adapter: DocumentStoreAdapter) -> None:
        for settings in adapter.beside:
            type(adapter)(settings)


def _text(value: Any) -> str:
    """Return a text that is the same for identical values, whatever the order of their fields."""
    if isinstance(value, dict):
        return repr(sorted((name, _text(inner)) for name, inner in value.items()))
    return repr([_text(item) for item in value]) if isinstance(value, list) else repr(value)


def _size_bytes(path: Path) -> int:
    return path.stat().st_size
