"""The public methods and their errors."""

import os
import random
import subprocess
import sys
import threading
import tracemalloc
from inspect import signature
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from libraries.document_queries import Aggregate, Compare, Constant, GroupBy, Named, Order, Plan, TopK, Unnest, field
from libraries.document_queries.errors import QueryError
from libraries.document_store.errors import (
    ClosedError,
    CorruptError,
    DocumentError,
    DocumentStoreError,
    FullError,
    LockedError,
)
from libraries.document_store.layouts import LAYOUTS
from libraries.document_store.store import DocumentStore
from libraries.document_store.tests.store.model import Disk, differs, opened
from libraries.document_store.tree import background_merge, memtable_flush
from libraries.document_store.tree.manifest import read_manifest, write_manifest
from libraries.durable.calls import OSCalls

ROOT = Path(__file__).parents[4]


@pytest.fixture(params=LAYOUTS)
def store(request, tmp_path):
    with DocumentStore.open(tmp_path / "store", layout=request.param) as opened_store:
        yield opened_store


def numbered(count, **fields):
    return [{"id": number, **fields} for number in range(count)]


# --- documents in and out ------------------------------------------------------------------------------------


def test_json_lines_and_dicts_are_one(store):
    store.upsert(b'{"id": 1, "a": {"b": [1, 2.5, null]}}\n\n{"id": 2}\n')
    store.upsert([{"id": 3, "raw": b"\0", "nan": float("inf")}])
    assert store.get_many([3, 1, 9, 1]) == [
        {"id": 3, "raw": b"\0", "nan": float("inf")},
        {"id": 1, "a": {"b": [1, 2.5, None]}},
        None,
        {"id": 1, "a": {"b": [1, 2.5, None]}},
    ]
    assert store.get(2) == {"id": 2}


def test_the_last_of_two_documents_with_one_key_stays(store):
    store.upsert([{"id": 1, "a": 1}, {"id": 1, "a": 2}])
    store.flush()
    store.upsert([{"id": 1, "b": 3}])
    assert list(store.scan()) == [{"id": 1, "b": 3}]
    assert store.count() == 1


def test_a_deleted_document_can_come_back(store):
    store.upsert(numbered(3))
    store.flush()
    store.delete([1, 1, 7])
    assert store.get(1) is None
    assert store.count() == 2
    store.flush()
    store.upsert([{"id": 1, "again": True}])
    assert store.get(1) == {"id": 1, "again": True}


def test_parts_of_documents_are_alike_in_memory_and_stored(store):
    documents = [
        {"id": 0, "a": {"b": 1, "c": 2}, "d": [{"e": 1}]},
        {"id": 1, "a": None, "d": {"e": 2}},
        {"id": 2, "a": {"b": None}, "d": []},
        {"id": 3, "a": {}, "x.y": 5},
        {"id": 4, "a": [1], "d": {}},
    ]
    wanted = [{"a": {"b": 1}, "d": [{"e": 1}]}, {"d": {"e": 2}}, {"a": {"b": None}, "d": []}, {"x.y": 5}, {"d": {}}]
    store.upsert(documents)
    paths = ["a.b", ("d",), r"x\.y"]
    assert list(store.scan(paths)) == wanted
    store.flush()
    assert list(store.scan(paths)) == wanted
    assert list(store.scan(["a.b"], where=Compare(field("id"), "<", Constant(1)))) == [{"a": {"b": 1}}]
    with pytest.raises(QueryError, match=r"d\[\*\].*have no \[\*\]"):
        store.scan(["d[*].e"])


def test_a_table_has_the_keys_order_and_json_text_for_values_of_several_kinds(store):
    store.upsert([{"id": 3, "a": 1}, {"id": 1, "a": "x"}])
    store.flush()
    store.upsert([{"id": 2, "a": None, "l": [1, 2.5, {}]}, {"id": 0, "o": {"p": {}}, "a": [None]}])
    with pytest.warns(UserWarning, match="has values of several types") as warned:
        table = store.to_arrow(["id", "a", "l", "o"])
    assert sorted(str(each.message).split()[0] for each in warned) == ["a", "l[*]"]
    assert {each.filename for each in warned} == {__file__}
    assert table.column("id").to_pylist() == [0, 1, 2, 3]
    assert table.column("a").to_pylist() == ["[null]", '"x"', None, "1"]
    assert table.column("l").to_pylist() == [None, None, ["1", "2.5", "{}"], None]
    assert table.column("o").to_pylist() == [{"p": {}}, None, None, None]


def test_a_caller_names_the_type_of_a_column_of_mixed_values(store):
    store.upsert([{"id": 0, "a": 1}, {"id": 1, "a": 2.5}, {"id": 2, "a": "x"}, {"id": 3}, {"id": 4, "a": True}])
    wanted = {
        pa.int64(): [1, None, None, None, None],
        pa.float64(): [1.0, 2.5, None, None, None],
        pa.string(): [None, None, "x", None, None],
        pa.bool_(): [None, None, None, None, True],
    }
    for type_, values in wanted.items():
        column = store.to_arrow(["a"], types={"a": type_}).column("a")
        assert (column.type, column.to_pylist()) == (type_, values)
    with pytest.raises(QueryError, match=r"types, a: int32 is not supported; allowed are bool, int64"):
        store.to_arrow(["a"], types={"a": pa.int32()})
    with pytest.raises(QueryError, match="`types` has the column 'b', but the answer has only the columns a"):
        store.to_arrow(["a"], types={"b": pa.int64()})


def test_integers_next_to_doubles_become_doubles_only_if_none_changes(store):
    store.upsert([{"id": 0, "a": 2**53, "l": [1, 0.5]}, {"id": 1, "a": 0.5, "l": [2**53 + 1, 0.5]}])
    assert store.to_arrow(["a"]).column("a").to_pylist() == [2.0**53, 0.5]
    store.upsert([{"id": 2, "a": 2**53 + 1}])
    with pytest.warns(UserWarning, match="a has values of several types"):
        assert store.to_arrow(["a"]).column("a").to_pylist() == ["9007199254740992", "0.5", "9007199254740993"]
    with pytest.raises(QueryError, match=r"beyond 2\*\*53"):
        store.to_arrow(["a"], types={"a": pa.float64()})
    with pytest.warns(UserWarning, match=r"l\[\*\] has"):
        assert store.to_arrow(["l"]).column("l").to_pylist() == [["1", "0.5"], ["9007199254740993", "0.5"], None]


# --- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("documents", "says"),
    [
        (b'{"id": 1}\n{"id": 2, "a": 9223372036854775808}', "document 1 of the batch, a: "),
        (b'{"id": 1}\n{"id": 2, "a": {"b": 1, "b": 2}}', "document 1 of the batch, a.b: "),
        (b'{"id": 1}\n{"b": 2}', "document 1 of the batch, id: the key must be"),
        (
            [{"id": 1}, {"id": "x"}],
            "document 1 of the batch, id: the key is a text, but the first key of the batch is an integer",
        ),
        ([{"id": 1.0}], "document 0 of the batch, id: the key must be"),
        ([{"id": True}], "document 0 of the batch, id: the key must be"),
        ([{"id": 1}, {"id": 2, "a": {"b": 1j}}], "document 1 of the batch, a.b: a document cannot hold a complex"),
        ([{"id": "é" * 2100}], "document 0 of the batch, id: the key has more than 4096 bytes"),
    ],
)
def test_nothing_of_a_batch_with_a_fault_is_stored(tmp_path, documents, says):
    with DocumentStore.open(tmp_path / "store") as store:
        with pytest.raises(DocumentError) as error:
            store.upsert(documents)
        assert says in str(error.value)
        assert store.count() == 0


def test_keys_are_of_one_kind_in_a_store(store):
    store.delete(["x"])
    store.upsert(numbered(2))
    for _ in range(2):
        with pytest.raises(DocumentError, match="'x' must be of the kind integer"):
            store.upsert([{"id": "x"}])
        with pytest.raises(DocumentError, match="'x' must be of the kind integer"):
            store.delete(["x"])
        store.flush()
    with pytest.raises(DocumentError, match=r"^key 0 of the batch: the key must be an integer of .* text, not 1\.5"):
        store.get(1.5)
    for ask in (store.delete, store.get_many):
        with pytest.raises(DocumentError, match=r"^key 1 of the batch: the key is a text, but the first key"):
            ask([1, "x"])


def test_another_layout_or_key_than_the_stores_is_refused(tmp_path):
    DocumentStore.open(tmp_path, layout="open", compression="none").close()
    assert DocumentStore.open(tmp_path).stats().layout == "open"
    with pytest.raises(LockedError):
        DocumentStore.open(tmp_path)


@pytest.mark.parametrize("other", [{"layout": "amax"}, {"key": "name"}, {"compression": "zstd"}])
def test_other_settings_than_the_stores_are_refused(tmp_path, other):
    DocumentStore.open(tmp_path, layout="open", compression="none").close()
    with pytest.raises(DocumentStoreError, match=f"this store's {next(iter(other))} is"):
        DocumentStore.open(tmp_path, **other)
    DocumentStore.open(tmp_path).close()


def test_after_closing_nothing_works_and_a_second_close_is_harmless(store):
    store.close()
    store.close()
    for call in (store.count, store.scan, store.flush, lambda: store.upsert(numbered(1)), lambda: store.get(1)):
        with pytest.raises(ClosedError):
            call()


def test_another_process_cannot_open_the_store(tmp_path):
    script = (
        "import sys\nfrom libraries.document_store.store import DocumentStore\n"
        "from libraries.document_store.errors import LockedError\n"
        "try:\n    DocumentStore.open(sys.argv[1]).close()\nexcept LockedError as error:\n    sys.exit(str(error))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    other = [sys.executable, "-c", script, str(tmp_path / "store")]
    with DocumentStore.open(tmp_path / "store"):
        refused = subprocess.run(other, env=environment, capture_output=True, text=True)
        assert (refused.returncode, "in use, by this or another process" in refused.stderr) == (1, True)
    assert subprocess.run(other, env=environment).returncode == 0


# --- damage and full disks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_byte_that_changed_is_refused_wherever_it_is(tmp_path, layout):
    """Change each file of a store in turn, at many positions."""
    with DocumentStore.open(tmp_path, layout=layout) as store:
        store.index("a")
        store.upsert([{"id": number, "a": f"a {number}"} for number in range(300)])
    wanted = {number: {"id": number, "a": f"a {number}"} for number in range(300)}
    missed = 0
    for path in sorted(tmp_path.iterdir()):
        content = path.read_bytes()
        for at in range(0, len(content), max(1, len(content) // 25)):
            path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
            try:
                with DocumentStore.open(tmp_path) as store:
                    assert differs(store, wanted) is None
                missed += 1
            except CorruptError:
                pass
        path.write_bytes(content)
    # Only bytes that are never read are unchecked: at most the padding of a page.
    assert missed <= 2


def test_a_manifest_that_is_gone_is_told(tmp_path):
    with DocumentStore.open(tmp_path) as store:
        store.upsert(numbered(3))
    (tmp_path / "manifest").unlink()
    with pytest.raises(CorruptError, match="manifest is missing, but component-"):
        DocumentStore.open(tmp_path)


def test_a_store_of_another_format_is_told_and_left_alone(tmp_path):
    """Otherwise its columns would be decoded as others."""
    with DocumentStore.open(tmp_path) as store:
        store.upsert([{"id": 1, "a": 0.5}])
        store.flush()
    found = read_manifest(OSCalls(), tmp_path)
    write_manifest(OSCalls(), tmp_path, msgspec.structs.replace(found, format=found.format - 1))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(
        CorruptError, match=rf"format {found.format - 1}, but this release reads only format {found.format};"
    ):
        DocumentStore.open(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("after", range(40))
def test_a_full_disk_is_told_and_the_store_stays_of_use(after):
    disk = Disk()
    store = opened(disk, disk.root / "store", "open")
    store.index("a")
    store.upsert(numbered(30, a=1))
    model = {found["id"]: found for found in numbered(30, a=1)}
    disk.fail(after, 28)
    told = None
    while told is None:
        found = {"id": len(model), "a": "x" * 300}
        try:
            store.upsert([found])
            model[found["id"]] = found
        except FullError as error:
            told = str(error)
    assert "the disk is full" in told
    assert differs(store, model) is None
    disk.heal()
    for _ in range(3):
        # The first call raises the error of a merge that failed meanwhile.
        try:
            store.upsert([{"id": 5, "a": 7}])
        except FullError:
            continue
    model[5] = {"id": 5, "a": 7}
    store.flush()
    assert differs(store, model) is None
    store.close()
    again = opened(disk, disk.root / "store", None)
    assert differs(again, model) is None
    again.close()


def test_leftovers_go_and_files_of_the_users_stay(tmp_path):
    own = ["log-2024.txt", "log-2024", "index-1.html", "component-7", "manifesto", "manifest.parts", "lock.txt"]
    left = ["component-000000000900", "index-000000000901.part", "log-000000000000", "manifest.part"]
    for name in own:
        (tmp_path / name).write_bytes(b"x")
    DocumentStore.open(tmp_path).close()
    for name in left:
        (tmp_path / name).write_bytes(b"x")
    with DocumentStore.open(tmp_path) as store:
        store.upsert(numbered(2))
    found = {path.name for path in tmp_path.iterdir()}
    assert found >= set(own)
    assert not found & set(left)
    # File numbers are never reused.
    (component,) = (name for name in found if name.startswith("component-0"))
    assert component > "component-000000000901"


def test_a_flush_that_fails_leaves_no_files():
    disk = Disk()
    store = opened(disk, disk.root / "store", "open")
    store.upsert(numbered(30))
    before = {name for name in disk.files(disk.root / "store") if name.startswith("component")}
    disk.fail(6, 28)
    for _ in range(3):
        with pytest.raises(FullError):
            store.flush()
    assert {name for name in disk.files(disk.root / "store") if name.startswith("component")} == before
    disk.heal()
    store.flush()
    store.close()


# --- readers, merges and threads -----------------------------------------------------------------------------


def test_files_go_after_their_last_reader(tmp_path):
    store = DocumentStore.open(tmp_path, layout="open")
    store.upsert(numbered(10))
    store.flush()
    scan = store.scan()
    first = next(scan)
    old = [path for path in tmp_path.iterdir() if path.name.startswith("component-")]
    store.upsert(numbered(10, a=1))
    store.flush()
    store.wait_for_merges()
    assert old[0].exists()
    assert len([path for path in tmp_path.iterdir() if path.name.startswith("component-")]) == 2
    assert [first, *scan] == numbered(10)
    assert not old[0].exists()
    never_begun = store.scan()
    old = [path for path in tmp_path.iterdir() if path.name.startswith("component-")]
    store.upsert(numbered(10, a=2))
    store.flush()
    store.wait_for_merges()
    assert old[0].exists()
    del never_begun
    assert not old[0].exists()
    store.close()


def test_the_error_of_a_merge_reaches_the_next_call_once(tmp_path, monkeypatch):
    store = DocumentStore.open(tmp_path, layout="open")

    def fails(*arguments):
        raise CorruptError("a page was changed")

    with monkeypatch.context() as patched:
        patched.setattr(memtable_flush.layouts, "merge_components", fails)
        store.upsert(numbered(10))
        store.flush()
        store.upsert(numbered(10))
        store.flush()
        with pytest.raises(CorruptError, match=r"A merge in the background failed.*a page was changed"):
            store.wait_for_merges()
        assert store.count() == 10
        with pytest.raises(CorruptError, match="A merge in the background failed"):
            store.wait_for_merges()
    store.wait_for_merges()
    assert store.stats().components == 1
    store.close()


def test_too_many_components_let_a_flush_wait_for_merges(tmp_path, monkeypatch):
    """There are never more than 5, however slow merges are."""
    may_merge = threading.Event()
    merge = background_merge.layouts.merge_components

    def slow(*arguments):
        assert may_merge.wait(30)
        return merge(*arguments)

    monkeypatch.setattr(background_merge.layouts, "merge_components", slow)
    store = DocumentStore.open(tmp_path, layout="open")
    for number in range(5):
        store.upsert(numbered(10, a=number))
        store.flush()
    assert store.stats().components == 5
    store.upsert(numbered(10, a=5))
    waiting = threading.Thread(target=store.flush)
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    assert store.stats().components == 5
    assert store.get(3) == {"id": 3, "a": 5}
    may_merge.set()
    waiting.join(30)
    store.wait_for_merges()
    assert store.stats().components < 5
    assert store.count() == 10
    store.close()


def test_late_merges_begin_when_there_is_no_more_room_and_change_no_answer(tmp_path):
    with DocumentStore.open(tmp_path, layout="amax", merges="late") as store:
        store.index("a")
        for number in range(4):
            store.upsert(numbered(10, a=number))
            store.delete([number])
            store.flush()
        store.wait_for_merges()
        assert (store.stats().components, store.stats().index_files) == (4, 4)
    with DocumentStore.open(tmp_path, merges="late") as store:
        assert store.stats().components == 4
        assert list(store.scan()) == [{"id": key, "a": 3} for key in range(10) if key != 3]
        assert store.get_many([0, 3, 9]) == [{"id": 0, "a": 3}, None, {"id": 9, "a": 3}]
        store.upsert(numbered(10, a=5))
        store.flush()
        store.wait_for_merges()
        assert (store.stats().components, store.stats().index_files) == (1, 1)
    with DocumentStore.open(tmp_path) as store:
        assert [document["a"] for document in store.scan()] == [5] * 10
    with pytest.raises(ValueError, match=r"merges .*soon, late.*'never'"):
        DocumentStore.open(tmp_path, merges="never")


def test_closing_without_waiting_gives_a_merge_up(tmp_path, monkeypatch):
    merge = background_merge.layouts.merge_components
    begun, go_on = threading.Event(), threading.Event()

    def slow(*arguments):
        begun.set()
        assert go_on.wait(30)
        return merge(*arguments)

    monkeypatch.setattr(background_merge.layouts, "merge_components", slow)
    store = DocumentStore.open(tmp_path, layout="open")
    for number in range(2):
        store.upsert(numbered(10, a=number))
        store.flush()
    assert begun.wait(30)
    stopping = threading.Thread(target=store.close, args=(False,))
    stopping.start()
    while not store._tree._merger._stopped:
        pass
    go_on.set()
    stopping.join(30)
    monkeypatch.undo()
    names = [path.name for path in tmp_path.iterdir() if path.name.startswith("component-")]
    assert len(names) == 2
    with DocumentStore.open(tmp_path) as store:
        assert store.get(3) == {"id": 3, "a": 1}


def test_readers_beside_a_writer_see_whole_batches(tmp_path):
    """Each batch sets one number in all documents, so a scan must never see two numbers."""
    store = DocumentStore.open(tmp_path, layout="open", sync="none", memtable_bytes=20_000)
    store.upsert(numbered(50, a=0))
    ended = threading.Event()
    mixed = []

    def read():
        while not ended.is_set():
            found = {document["a"] for document in store.scan()}
            if len(found) != 1:
                mixed.append(found)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(60):
        store.upsert(numbered(50, a=number))
    ended.set()
    for reader in readers:
        reader.join()
    store.close()
    assert mixed == []


def test_counting_reads_keys_alone(tmp_path):
    with DocumentStore.open(tmp_path, layout="amax", compression="none") as store:
        store.upsert([{"id": number, "a": random.Random(number).randbytes(1000)} for number in range(500)])
        store.flush()
        before = store.stats().bytes_read
        assert store.count() == 500
        assert store.stats().bytes_read - before < 200_000
        assert len(list(store.scan())) == 500
        assert store.stats().bytes_read - before > 500_000


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pages_that_are_kept_are_read_once_and_never_those_of_another_file(tmp_path, layout):
    with DocumentStore.open(tmp_path, layout=layout, cache_bytes=1 << 20) as store:
        expected = {}
        for round_number in range(6):
            changed = numbered(300, a=round_number)[round_number:]
            store.upsert(changed)
            expected |= {document["id"]: document for document in changed}
            store.flush()
            store.wait_for_merges()
            assert {document["id"]: document for document in store.scan()} == expected
            before = store.stats().bytes_read
            assert {document["id"]: document for document in store.scan()} == expected
            assert store.stats().bytes_read == before
        assert 0 < store.stats().cached_bytes <= 1 << 20


def test_columns_that_are_kept_are_decoded_once_and_nobody_may_change_them(tmp_path):
    plan = Plan((GroupBy((Named("a", field("a")),), (Aggregate("n", "count"),)),))
    with DocumentStore.open(tmp_path, layout="amax", cache_bytes=1 << 20) as store:
        store.upsert([{"id": number, "a": "xyz"[number % 3], "b": number} for number in range(900)])
        store.flush()
        answer = store.query(plan)
        assert {row["a"]: row["n"] for row in answer} == {"x": 300, "y": 300, "z": 300}
        kept, before = store.stats().cached_bytes, store.stats().bytes_read
        assert store.query(plan) == answer
        assert (store.stats().cached_bytes, store.stats().bytes_read) == (kept, before)
        with store.snapshot() as snapshot:
            (part,) = snapshot.parts()
            (column,) = part.coded_columns([1]).values()
            (again,) = part.coded_columns([1]).values()
        assert column is again
        assert not any(array.flags.writeable for array in column.arrays)


def test_the_cache_is_on_by_default_and_keeps_no_more_than_promised(tmp_path):
    """Questions about many columns, look-ups and scans share the limit, which Python's memory keeps too."""
    assert signature(DocumentStore.open).parameters["cache_bytes"].default == 128 << 20
    most_bytes, names = 1 << 20, [f"field {number}" for number in range(24)]
    with DocumentStore.open(tmp_path, sync="none", cache_bytes=most_bytes) as store:
        store.upsert([{"id": key} | {name: f"{name} {key}" for name in names} for key in range(4_000)])
        store.flush()
        for is_measured in (False, True):
            if is_measured:
                tracemalloc.start()
            for name in names:
                groups = GroupBy((Named("a", field(name)),), (Aggregate("n", "count"),))
                assert len(store.query(Plan((groups, TopK((Order("a"),), 3))))) == 3
                assert store.stats().cached_bytes <= most_bytes
            assert [document["id"] for document in store.get_many([3, 3_999])] == [3, 3_999]
            assert sum(1 for _ in store.scan()) == 4_000
        kept = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert most_bytes // 2 < store.stats().cached_bytes <= most_bytes
        assert kept < 2 * most_bytes


def test_a_scan_does_not_evict_the_columns_of_questions(tmp_path):
    plan = Plan((GroupBy((Named("a", field("a")),), (Aggregate("n", "count"),)),))
    with DocumentStore.open(tmp_path, sync="none", cache_bytes=400_000) as store:
        store.upsert([{"id": key, "a": key % 5, "b": f"{key * 7919} of many"} for key in range(20_000)])
        store.flush()
        answer = store.query(plan)
        before = store.stats().bytes_read
        assert sum(1 for _ in store.scan()) == 20_000
        read_by_scan = store.stats().bytes_read - before
        assert read_by_scan > 0
        assert store.query(plan) == answer
        assert store.stats().bytes_read == before + read_by_scan


def test_questions_about_updated_documents_use_cached_columns(tmp_path):
    """The cache has whole columns of a leaf; questions take the values of visible documents, also those in arrays."""
    count = (Aggregate("n", "count"),)
    plans = (
        Plan((GroupBy((Named("a", field("a")),), count),)),
        Plan((Unnest(("b",), "item"), GroupBy((Named("a", field("", of="item")),), count))),
    )
    answers = {None: 200, "x": 299, "y": 299, "z": 100}, {"t": 598, "u": 299}
    with DocumentStore.open(tmp_path, merges="late") as store:
        store.upsert([{"id": n, "a": [None, "x", "y"][n % 3], "b": ["t", "u"][: n % 3]} for n in range(900)])
        store.flush()
        store.upsert([{"id": n, "a": "z"} for n in range(0, 900, 9)])
        store.delete([1, 2])
        for plan, answer in zip(plans, answers, strict=True):
            assert {row["a"]: row["n"] for row in store.query(plan)} == answer
        before = store.stats().bytes_read
        for plan, answer in zip(plans, answers, strict=True):
            assert {row["a"]: row["n"] for row in store.query(plan)} == answer
        assert store.stats().bytes_read == before


def test_what_is_kept_is_of_one_leaf_of_one_file(tmp_path):
    plan = Plan((GroupBy((Named("a", field("a")),), (Aggregate("n", "count"),)),))
    with DocumentStore.open(tmp_path, layout="amax", cache_bytes=8 << 20, merges="late") as store:
        for first in (0, 40_000):
            store.upsert([{"id": number, "a": f"of {number // 15_000}"} for number in range(first, first + 40_000)])
            store.flush()
        assert store.stats().components == 2
        expected = {f"of {number}": 15_000 for number in range(5)} | {"of 5": 5_000}
        for _ in range(2):
            assert {row["a"]: row["n"] for row in store.query(plan)} == expected


@pytest.mark.parametrize("layout", LAYOUTS)
def test_merges_keep_nothing_of_what_they_read(tmp_path, layout):
    with DocumentStore.open(tmp_path, layout=layout, cache_bytes=1 << 20) as store:
        for round_number in range(8):
            store.upsert(numbered(300, a=round_number))
            store.flush()
        store.wait_for_merges()
        assert store.stats().components < 8
        assert store.stats().cached_bytes == 0


def test_the_old_value_of_a_document_leaves_the_index(store):
    store.upsert([{"id": number, "a": number % 3} for number in range(9)])
    store.index("a")
    store.index("a")
    store.upsert([{"id": 0, "a": 2}, {"id": 9, "a": 0}])
    store.delete([3])
    for _ in range(2):
        with store.snapshot() as snapshot:
            assert snapshot.index_keys("a", 0, 0).tolist() == [6, 9]
            assert snapshot.index_keys("a", 1.5, None).tolist() == [0, 2, 5, 8]
            assert snapshot.index_keys("b", 0, 0) is None
            assert snapshot.most() >= snapshot.count() == 9
            with pytest.raises(QueryError, match="the same kind"):
                snapshot.index_keys("a", 0, "x")
            assert [row.keys.tolist() for row in snapshot.parts(snapshot.index_keys("a", 0, 0))]
        store.flush()
        store.wait_for_merges()
