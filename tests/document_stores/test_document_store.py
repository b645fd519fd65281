"""This project's store keeps the contract in each of its layouts."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from adapters.errors import RefusedData
from bench_runner.suites.document_questions import QUESTIONS, Question
from data_generator.catalogue import resolve
from data_generator.documents import json_lines, key_of
from document_stores.registry import DOCUMENT_STORES
from document_stores.shared.document_encoding import parsed
from libraries.document_queries import from_json, run_over_documents
from libraries.document_store import kernels
from libraries.document_store.queries.executor import WAYS, execute
from libraries.document_store.store import DocumentStore
from libraries.document_store.tests.queries.fuzz import answer
from libraries.document_store.tests.queries.memory import MemorySnapshot
from libraries.document_store.values import ValueKind
from tests.contracts.documents import DocumentStoreContract


class TestColumns(DocumentStoreContract):
    variant = "document-store[layout=amax]"


class TestRows(DocumentStoreContract):
    variant = "document-store[layout=vector,codec=none]"


@pytest.mark.slow
class TestOpenRows(DocumentStoreContract):
    variant = "document-store[layout=open,codec=snappy,sync=none]"


@pytest.mark.parametrize(("flushes", "waits"), [(1, False), (2, True)])
def test_late_merges_show_nothing_where_none_waits(flushes: int, waits: bool, tmp_path: Path) -> None:
    late, soon = (DOCUMENT_STORES.build(f"document-store[layout=vector,merges={word}]") for word in ("late", "soon"))
    with DocumentStore.open(tmp_path / "stored", layout="vector", merges="late") as store:
        for flush in range(flushes):
            store.upsert([{"id": number, "flush": flush} for number in range(100)])
            store.flush()
    for adapter in (late, soon):
        adapter.load_library()
    told = late.shows_nothing(tmp_path / "stored")
    assert (told is None) == waits
    assert waits or "no merge waits" in str(told)
    assert soon.shows_nothing(tmp_path / "stored") is None


@cache
def generated(name: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the key of a data set, and 400 of its documents in order."""
    dataset = resolve(name, {}, rows=400)
    key = key_of(dataset.schema)
    documents = [document for batch in dataset.batches() for document in parsed(json_lines(batch))]
    return key, sorted(documents, key=lambda document: document[key])


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: f"{question.dataset}-{question.name}")
def test_questions_have_answers_that_all_ways_give(question: Question) -> None:
    key, documents = generated(question.dataset)
    plan = from_json(question.plan)
    expected = answer(lambda: run_over_documents(documents, plan, key))
    assert expected
    assert "QueryError" not in expected
    kind = ValueKind.TEXT if isinstance(documents[0][key], str) else ValueKind.INTEGER
    snapshot = MemorySnapshot(documents, sizes=(150, 50, 100), kind=kind, key=key)
    for way in WAYS:
        assert answer(lambda way=way: execute(snapshot, plan, way)) == expected, way


def test_nothing_is_measured_where_its_c_was_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise Python would be measured under the store's name."""
    monkeypatch.setattr(kernels, "NATIVE", False)
    with pytest.raises(RefusedData, match="'make setup' builds it"):
        DOCUMENT_STORES.build("document-store[layout=amax]").load_library()
