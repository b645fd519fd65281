"""Keys and documents that a store cannot hold are refused before anything is stored, and never found."""

import shutil

import pytest

from libraries import document_store
from libraries.document_queries.errors import QueryError
from libraries.document_queries.json_form import from_json
from libraries.document_queries.plan import field
from libraries.document_queries.steps import Compare, Constant, Field
from libraries.document_store import store as store_module
from libraries.document_store.encodings import chunk
from libraries.document_store.errors import DocumentError, DocumentStoreError
from libraries.document_store.layouts import LAYOUTS
from libraries.document_store.layouts.layout import LEAF_BYTES
from libraries.document_store.messagepack import encode
from libraries.document_store.schema import Schema
from libraries.document_store.shredding.shredder import shred
from libraries.document_store.store import MOST_ROW_BYTES, DocumentStore
from libraries.document_store.values import ValueKind

INTEGERS = list(range(1_000))
TEXTS = [f"key {number}" for number in range(1_000)]


def test_a_number_of_5000_digits_is_named_by_its_size(tmp_path):
    """Python refuses to print it."""
    with document_store.DocumentStore.open(tmp_path) as store:
        store.upsert([{"id": 1}])
        for call in (store.get, lambda key: store.get_many([key]), lambda key: store.delete([key])):
            with pytest.raises(DocumentError, match="not an integer of 16,610 bits"):
                call(10**5000)
        with pytest.raises(DocumentError, match="id: an integer of more than 64 bits"):
            store.upsert([{"id": 10**5000}])
    with pytest.raises(QueryError, match=r"an integer of 5,000 digits \(1{20}\.\.\.\); it must fit in 64 bits"):
        from_json('[{"is": "limit", "rows": ' + "1" * 5000 + "}]")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("stored", "asked"), [(INTEGERS, TEXTS), (TEXTS, INTEGERS)])
def test_keys_of_the_other_kind_are_not_there(tmp_path, layout, stored, asked):
    """Enough keys that the key filters admit some of them."""
    with DocumentStore.open(tmp_path, layout=layout) as store:
        store.upsert([{"id": key} for key in stored])
        store.flush()
        store.upsert([{"id": stored[0], "a": 1}])
        assert store.get_many(asked) == [None] * len(asked)
        assert store.get(asked[0]) is None
        assert store.get(stored[0]) == {"id": stored[0], "a": 1}


def test_a_key_with_surrogates_is_refused(tmp_path):
    with DocumentStore.open(tmp_path) as store:
        store.upsert([{"id": "é"}])
        store.flush()
        for call in (store.get, lambda key: store.delete([key]), lambda key: store.upsert([{"id": key}])):
            with pytest.raises(DocumentError):
                call("a\ud800")
        assert store.get("é") == {"id": "é"}
        assert store.count() == 1


@pytest.mark.parametrize("path", ["\ud800", "a.\udfff", ["a", 1], ["\ud800"]])
def test_a_step_that_no_field_can_have_is_refused(tmp_path, path):
    with DocumentStore.open(tmp_path) as store:
        store.upsert([{"id": 1}])
        for call in (store.index, lambda path: store.to_arrow([path]), lambda path: list(store.scan([path]))):
            with pytest.raises(QueryError, match="a path has the step"):
                call(path)


def test_a_folder_that_cannot_be_is_no_failed_disk(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "store", tmp_path / ("x" * 300)):
        with pytest.raises(DocumentStoreError, match="cannot hold a store") as raised:
            DocumentStore.open(folder)
        assert str(folder) in str(raised.value)


@pytest.mark.parametrize("given", [{"a": "x" * 2_000}, {"a": [["x"], []] * 600}])
def test_a_document_that_no_leaf_could_hold_is_refused(tmp_path, monkeypatch, given):
    """Otherwise it would be in the log, and every later flush would fail."""
    monkeypatch.setattr(chunk, "MOST_TEXT_BYTES", 1_500)
    monkeypatch.setattr(chunk, "MOST_TOKENS", 1_500)
    monkeypatch.setattr(store_module, "MOST_ROW_BYTES", 1_000)
    with DocumentStore.open(tmp_path, layout="amax") as store:
        with pytest.raises(DocumentError, match=r"exceeds \d+ MiB"):
            store.upsert([{"id": 1}, {"id": 2, **given}])
        store.upsert([{"id": 3}])
        store.flush()
        assert store.count() == 1


def test_the_limit_of_a_document_keeps_a_leaf_within_those_of_a_chunk():
    assert MOST_ROW_BYTES + LEAF_BYTES <= chunk.MOST_TEXT_BYTES
    assert 2 * (MOST_ROW_BYTES + LEAF_BYTES) <= chunk.MOST_TOKENS
    for dense in ([[]] * 1_000, [[[]]] * 1_000, [[[], []]] * 1_000, [0] * 1_000, [[0], []] * 1_000, [{}, []] * 1_000):
        row = encode({"id": 1, "a": dense})
        columns = shred([row], Schema.new("id", ValueKind.INTEGER)).columns
        assert max(len(column.levels) for column in columns) <= 2 * len(row)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("layout", "columns"),
        ("compression", "gzip"),
        ("sync", "always"),
        ("merges", "never"),
        ("key", 3),
        ("key", b"id"),
        ("key", "\ud800"),
        ("memtable_bytes", "32MB"),
        ("memtable_bytes", 0),
        ("cache_bytes", -1),
    ],
)
def test_settings_that_there_are_not_make_no_store(tmp_path, name, given):
    with pytest.raises(ValueError, match=name):
        DocumentStore.open(tmp_path / "store", **{name: given})
    assert not (tmp_path / "store").exists()


def test_what_is_no_list_is_refused(tmp_path):
    """A text is a sequence too, of characters."""
    with DocumentStore.open(tmp_path) as store:
        store.upsert([{"id": key} for key in ("a", "b", "abc")])
        for call, error in (
            (lambda: store.delete("abc"), DocumentError),
            (lambda: store.scan("id"), QueryError),
            (lambda: store.to_arrow("id"), QueryError),
            (lambda: store.upsert({"id": 1}), DocumentError),
            (lambda: store.upsert('{"id": 1}'), DocumentError),
            (lambda: store.upsert([1]), DocumentError),
            (lambda: store.scan(where=Compare(Field(("id",)), "==", Constant("a"))), QueryError),
            (lambda: store.scan(where=Compare(Field("id"), "=", Constant("a"))), QueryError),
            (lambda: store.scan(where="id"), QueryError),
        ):
            with pytest.raises(error):
                call()
        assert store.count() == 3
        assert [found["id"] for found in store.scan(where=Compare(field("id"), "=", Constant("a")))] == ["a"]


def test_a_file_of_somebody_else_whose_name_ends_in_many_digits(tmp_path):
    (tmp_path / "export-20240101120000000000").touch()
    with DocumentStore.open(tmp_path) as store:
        store.upsert([{"id": 1}])
        store.flush()
        assert store.get(1) == {"id": 1}
    assert (tmp_path / "export-20240101120000000000").exists()


def test_an_old_scan_takes_no_file_of_the_next_store(tmp_path):
    """File numbers start again if the folder was removed; readers of the old files must not remove files by name."""

    def documents(first):
        return [{"id": number} for number in range(first, first + 2_000)]

    store = DocumentStore.open(tmp_path / "store", memtable_bytes=10_000)
    store.upsert(documents(0))
    store.flush()
    scan = store.scan()
    next(scan)
    for first in range(0, 8_000, 1_000):
        store.upsert(documents(first))
        store.flush()
    store.wait_for_merges()
    store.close()
    shutil.rmtree(tmp_path / "store")
    with DocumentStore.open(tmp_path / "store", memtable_bytes=10_000) as anew:
        for first in range(0, 8_000, 1_000):
            anew.upsert(documents(first))
            anew.flush()
        del scan
    with DocumentStore.open(tmp_path / "store") as again:
        assert again.count() == 9_000


def test_what_is_no_list_and_no_plan_is_refused_in_words(tmp_path):
    with DocumentStore.open(tmp_path) as store:
        for call, error, words in (
            (lambda: store.upsert(tmp_path / "events.jsonl"), DocumentError, "a list of dicts, or as JSON Lines"),
            (lambda: store.delete(1), DocumentError, r"write \[1\]"),
            (
                lambda: store.query((Compare(field("a"), "=", Constant(1)),)),
                QueryError,
                r"a query must be a Plan, .* \(got tuple\)",
            ),
        ):
            with pytest.raises(error, match=words):
                call()
