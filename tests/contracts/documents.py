"""What every document store must hold. A store's own test file names its variant in three lines:

    class TestJsonLines(DocumentStoreContract):
        variant = "json-lines[engine=msgspec,codec=zstd]"

Stores with limits declare them (losses, and what they offer); they do not override tests.
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
    FieldPath,
    Key,
    first_difference,
    identical,
    parts,
)
from adapters.errors import AdapterError, RefusedData
from adapters.registry import Registry
from document_stores.registry import DOCUMENT_STORES
from tests.contracts.adapters import AdapterContract, left_mapped, left_open, only_for, open_below
from tests.contracts.attached_duckdb import attached_duckdb
from tests.contracts.document_kinds import HOSTILE_NAMES, KINDS, Documents
from tests.contracts.document_queries import DocumentQueries
from tests.contracts.fresh import run_fresh
from tests.contracts.projection import rchar

MALFORMED = {
    "cut": b'{"id":0,"a":1}\n{"id":1,"a":\n',
    "no object": b'{"id":0,"a":1}\n[1]\n',
    "not a number": b'{"id":0,"a":1}\n{"id":1,"a":NaN}\n',
    "not UTF-8": b'{"id":0,"a":"x"}\n{"id":1,"a":"\xff\xfe"}\n',
    "no JSON": b'{"id":0,"a":1}\nid: 1\n',
}

PATHS: dict[str, list[FieldPath]] = {
    "one": [("name",)],
    "nested": [("at", "x"), ("id",)],
    "array": [("at", "tags")],
    "whole object": [("at",), ("ok",)],
    "what is not there": [("nowhere",), ("name", "x"), ("at", "x", "y"), ("id",)],
    "nothing": [],
}

SOME = 4
"""Of so many kinds one comes as lines too."""
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
    """As JSON Lines."""
    return b"".join(msgspec.json.encode(document) + b"\n" for document in documents)


def found(handle: DocumentHandle, paths: list[FieldPath] | None = None) -> Documents:
    """All batches of a scan as one list."""
    gathered: Documents = []
    for batch in handle.scan(paths):
        assert batch
        gathered += batch
    return gathered


def needs_dicts(kind: str) -> bool:
    """Whether JSON text cannot say what documents of this kind hold."""
    return kind in ("not finite", "binary")


class DocumentStoreContract(AdapterContract, DocumentQueries):
    """`variant` is the store's own."""

    variant: ClassVar[str]
    registry: ClassVar[Registry] = DOCUMENT_STORES

    @pytest.fixture
    def location(self, adapter: DocumentStoreAdapter, place: Path) -> Path:
        return place / f"stored{adapter.suffix}"

    @contextmanager
    def stored(
        self, adapter: DocumentStoreAdapter, documents: Documents | Iterable[Batch], location: Path
    ) -> Iterator[DocumentHandle]:
        """Documents, or batches of them, in a store that is open; a server of its own is started once."""
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
    def test_documents_come_back_but_for_what_is_declared(
        self, way: str, adapter: DocumentStoreAdapter, location: Path, subtests: pytest.Subtests
    ) -> None:
        for number, kind in enumerate(KINDS):
            # Dicts can hold every kind. Lines are made into those, or those into lines, so some of them will do.
            if way == "lines" and (needs_dicts(kind) or number % SOME):
                continue
            with subtests.test(kind):
                self.comes_back(kind, way, adapter, location.with_name(f"{number}{adapter.suffix}"))

    def comes_back(self, kind: str, way: str, adapter: DocumentStoreAdapter, location: Path) -> None:
        """Documents of one kind; `way` is how they are given."""
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
            assert first_difference(documents, came, others) is not None, f"declared, and not seen: {loss.what}"

    def test_every_loss_names_kinds_that_there_are(self, adapter: DocumentStoreAdapter) -> None:
        for loss in adapter.losses:
            assert loss.kinds, loss.what
            assert loss.kinds <= set(KINDS), loss.what

    def test_many_batches_of_both_kinds_come_back_in_another_process_too(
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

    def test_lines_need_no_last_end_and_may_be_blank(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        batches: list[Batch] = [b'{"id": 1, "a": "x"}\n\n  \n{"id":2,"a":"y"}', b"", b"\n", [], b'{"id":3,"a":"z"}\n']
        with self.stored(adapter, batches, location) as handle:
            wanted = [{"id": 1, "a": "x"}, {"id": 2, "a": "y"}, {"id": 3, "a": "z"}]
            assert first_difference(wanted, found(handle)) is None
            assert handle.count() == 3

    def test_escapes_in_names_and_texts_are_what_they_stand_for(
        self, adapter: DocumentStoreAdapter, location: Path
    ) -> None:
        text = b'{"id":1,"n\\u00e4me":{"\\u0061":"\\ud83d\\ude00\\/"}}\n{"id":2,"n\\u00e4me":{"\\u0061":"x"}}\n'
        with self.stored(adapter, [text], location) as handle:
            assert {part["näme"]["a"] for part in found(handle, [("näme", "a")])} == {"😀/", "x"}

    def test_a_folder_that_says_name_and_value_says_nothing_of_documents(
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

    def test_a_scan_of_paths_gives_what_they_reach(
        self, adapter: DocumentStoreAdapter, location: Path, subtests: pytest.Subtests
    ) -> None:
        with self.stored(adapter, KINDS["plain"], location) as handle:
            for name, paths in PATHS.items():
                with subtests.test(name):
                    wanted = [parts(document, paths) for document in KINDS["plain"]]
                    assert sorted(map(_text, found(handle, paths))) == sorted(map(_text, wanted))

    @attached_duckdb()
    def test_a_scan_of_paths_loses_nothing_else(
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

    def test_keys_are_found_in_the_order_asked(self, adapter: DocumentStoreAdapter, location: Path) -> None:
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
            assert handle.get(["nobody", "'", keys[1] + "x"]) == [None, None, None]

    @pytest.mark.parametrize("kind", ["plain", "text keys"])
    def test_keys_that_no_document_can_have_are_not_there(
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

    def test_what_was_given_stays_after_close(self, adapter: DocumentStoreAdapter, location: Path) -> None:
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
    def test_a_key_that_comes_twice_in_one_upsert_is_the_last(
        self, adapter: DocumentStoreAdapter, location: Path
    ) -> None:
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
    def test_a_wrong_batch_leaves_nothing(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        wrong: list[Batch] = [*MALFORMED.values(), [{"id": 0, "a": 0}, {"a": 1}], [{"id": 0}, {"id": None}]]
        with self.stored(adapter, KINDS["plain"], location) as handle:
            for batch in wrong:
                with pytest.raises(RefusedData):
                    handle.upsert(batch)
            assert first_difference(KINDS["plain"], found(handle)) is None

    def test_what_is_not_offered_is_refused(self, adapter: DocumentStoreAdapter, location: Path) -> None:
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
    def test_lines_that_are_no_documents_are_refused(
        self, adapter: DocumentStoreAdapter, location: Path, subtests: pytest.Subtests
    ) -> None:
        for number, (name, text) in enumerate(MALFORMED.items()):
            place = location.with_name(f"{number}{adapter.suffix}")
            with subtests.test(name):
                if adapter.checks_lines:
                    # Who has millions of lines has to be told which one is broken; what is no object, the reader says.
                    says = "document 1" if name == "not UTF-8" else ""
                    with pytest.raises(RefusedData, match=says):
                        adapter.ingest([text], place)
                    continue
                adapter.ingest([text], place)
                handle = adapter.open(place)
                with pytest.raises(AdapterError):
                    found(handle)
                handle.close()

    def test_the_input_stays_as_it_is(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        documents: Documents = msgspec.json.decode(msgspec.json.encode(KINDS["plain"]))
        adapter.ingest([documents], location)
        assert identical(documents, KINDS["plain"])

    def test_what_is_missing_is_named_and_not_made(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        with pytest.raises((AdapterError, OSError), match=location.stem):
            adapter.open(location)
        assert not location.exists()

    @pytest.mark.slow
    def test_a_store_cut_in_half_is_an_error_and_no_crash(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        documents = [{"id": n, "text": f"{n * n} " * 40, "at": {"x": n}} for n in range(3_000)]
        adapter.ingest([documents], location)
        files = [path for path in (location, *location.rglob("*")) if path.is_file()]
        largest = max(files, key=_size_bytes)
        os.truncate(largest, _size_bytes(largest) // 2)
        done = run_fresh(SHARED, TELLS_ITS_ERROR, self.variant, str(location))
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() != "", "read without an error"

    def test_the_counters_of_read_calls_see_what_it_reads_or_it_says_that_they_do_not(
        self, adapter: DocumentStoreAdapter, location: Path
    ) -> None:
        """By reading all: else a mapping would look like a store that answers from its own memory."""
        numbers = random.Random(5)
        adapter.ingest([[{"id": n, "text": numbers.randbytes(60).hex()} for n in range(3_000)]], location)
        before = rchar()
        handle = adapter.open(location)
        found(handle)
        # What a server has read is added to its parent's counters when it has ended: too late for who measures calls.
        asked = rchar() - before
        handle.close()
        least = 3_000 * 60 / 2
        assert (asked > least) != adapter.reads_unseen, (asked, least)

    # --- what is left on the disk ------------------------------------------------------------------------------------

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

    def test_a_scan_need_not_be_taken_to_its_end(self, adapter: DocumentStoreAdapter, location: Path) -> None:
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

    def test_the_file_says_its_codec(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        adapter.ingest([KINDS["plain"]], location)
        stored = adapter.stored(location)
        assert stored.codec == adapter.values.get("codec", stored.codec)

    @pytest.mark.slow
    def test_its_calls_load_nothing(self, location: Path) -> None:
        done = run_fresh(SHARED, LOADS_NOTHING, self.variant, str(location))
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == ""

    def test_what_is_measured_beside_it_can_be_built(self, adapter: DocumentStoreAdapter) -> None:
        for settings in adapter.beside:
            type(adapter)(settings)


def _text(value: Any) -> str:
    """The same for identical values, whatever the order of their fields."""
    if isinstance(value, dict):
        return repr(sorted((name, _text(inner)) for name, inner in value.items()))
    return repr([_text(item) for item in value]) if isinstance(value, list) else repr(value)


def _size_bytes(path: Path) -> int:
    return path.stat().st_size
