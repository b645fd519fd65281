"""What stores do to each kind of documents is found by a round trip. The tests control what their store does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from adapters.contract import Stored
from adapters.document_store import Batch, Document, DocumentHandle, DocumentLoss, DocumentStoreAdapter
from adapters.errors import RefusedData
from bench_runner.worker.document_fidelity import DICTS_LOSE, probe
from bench_runner.worker.messages import KindOutcome
from data_generator.generated.document_kinds import BIG_INTEGERS, DUPLICATE_NAMES, KINDS, ORDER, TEXT_KINDS
from document_stores.registry import DOCUMENT_STORES
from document_stores.shared.json_losses import BINARY_AS_BASE64, MINUS_ZERO_AS_ZERO, refused

Change = Callable[[Document], Document]


class Memory(DocumentStoreAdapter):
    """Keeps documents in a dictionary, and applies `change` to what is read. `hook` decides between duplicate names."""

    format = "memory-documents"
    engine = "dict"
    title = "Memory"
    distributions = ()
    suffix = ".memory"
    capabilities = frozenset()

    def __init__(self, change: Change = dict, *losses: DocumentLoss, hook: Callable[[Any], Document] = dict) -> None:
        super().__init__()
        self.change, self.declared, self.hook = change, losses, hook
        self.kept: dict[Path, list[Document]] = {}

    @property
    def losses(self) -> tuple[DocumentLoss, ...]:
        return self.declared

    def load_library(self) -> None:
        """Do nothing."""

    def ingest(self, batches: Iterable[Batch], location: Path, *_: Any) -> None:
        (batch,) = batches
        if isinstance(batch, bytes):
            batch = [json.loads(line, object_pairs_hook=self.hook) for line in batch.splitlines()]
        self.kept[location] = [self.change(document) for document in batch]

    def open(self, location: Path, key: str = "id") -> DocumentHandle:
        kept = self.kept[location]

        class Handle(DocumentHandle):
            def count(self) -> int:
                return len(kept)

            def scan(self, paths: Any = None) -> Any:
                yield kept

            def get(self, keys: Any) -> Any:
                raise AssertionError

            def close(self) -> None:
                """Do nothing."""

        return Handle()

    def stored(self, location: Path) -> Stored:
        return Stored()


def found(adapter: DocumentStoreAdapter, folder: Path) -> Mapping[str, KindOutcome]:
    return {record.kind: record for record in probe(adapter, folder / "new")}


def everywhere(change: Callable[[Any], Any]) -> Change:
    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: changed(inner) for name, inner in value.items()}
        return [changed(inner) for inner in value] if isinstance(value, list) else change(value)

    return changed


def test_all_kinds_are_exact_where_nothing_changes(tmp_path: Path) -> None:
    records = found(Memory(), tmp_path)
    assert list(records) == [*KINDS, *TEXT_KINDS]
    assert {record.outcome for record in records.values()} == {"exact"}
    assert {kind: record.target_alone for kind, record in records.items() if record.target_alone} == DICTS_LOSE


def test_a_change_that_is_not_declared_is_an_error_of_its_kind_alone(tmp_path: Path) -> None:
    records = found(Memory(everywhere(lambda value: value or 0.0 if type(value) is float else value)), tmp_path)
    assert [kind for kind, record in records.items() if record.outcome != "exact"] == ["doubles"]
    assert records["doubles"].outcome == "error"
    assert "-0.0" in records["doubles"].how
    assert not records["doubles"].cause


def test_declared_losses_are_named_with_bound_and_cause(tmp_path: Path) -> None:
    zero = everywhere(lambda value: value or 0.0 if type(value) is float else value)
    record = found(Memory(zero, MINUS_ZERO_AS_ZERO), tmp_path)["doubles"]
    assert (record.outcome, record.how, record.bound, record.cause) == (
        "lossy",
        MINUS_ZERO_AS_ZERO.what,
        MINUS_ZERO_AS_ZERO.bound,
        "format",
    )


@pytest.mark.parametrize("loss", [BINARY_AS_BASE64, refused("bytes", MINUS_ZERO_AS_ZERO.cause, "binary")])
def test_a_declared_loss_that_does_not_occur_is_an_error(loss: DocumentLoss, tmp_path: Path) -> None:
    record = found(Memory(dict, loss), tmp_path)["binary"]
    assert record.outcome == "error"
    assert record.how == f"declared, but did not occur: {loss.what}"


def test_a_refusal_has_the_stores_words(tmp_path: Path) -> None:
    def change(document: Document) -> Document:
        if "" in document:
            raise RefusedData("a field has no name")
        return document

    record = found(Memory(change), tmp_path)["empty name"]
    assert (record.outcome, record.how) == ("refused", "RefusedData: a field has no name")


def nearest(value: Any) -> Any:
    return float(value) if type(value) is int and abs(value) > 2**63 else value


def spelled_out(value: Any) -> Any:
    return str(value) if type(value) is int and abs(value) >= 2**64 else value


def by_name(document: Document) -> Document:
    return {name: by_name(value) if isinstance(value, dict) else value for name, value in sorted(document.items())}


@pytest.mark.parametrize(
    ("kind", "adapter", "how"),
    [
        (BIG_INTEGERS, Memory(everywhere(nearest)), "becomes a double"),
        (BIG_INTEGERS, Memory(everywhere(spelled_out)), "becomes a text"),
        (DUPLICATE_NAMES, Memory(hook=lambda pairs: dict(reversed(pairs))), "the first value of a name is kept"),
        (ORDER, Memory(by_name), "sorted by their names"),
        (ORDER, Memory(lambda document: dict(reversed(document.items()))), "in another order"),
    ],
)
def test_what_stores_need_not_keep_is_described(kind: str, adapter: Memory, how: str, tmp_path: Path) -> None:
    record = found(adapter, tmp_path)[kind]
    assert record.outcome == "lossy"
    assert how in record.how
    assert record.bound


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (BIG_INTEGERS, everywhere(lambda value: value % 2**63 if type(value) is int else value)),
        (DUPLICATE_NAMES, lambda document: {name: value for name, value in document.items() if name != "a"}),
        (ORDER, lambda document: {name: value for name, value in document.items() if name != "y"}),
    ],
)
def test_a_change_that_is_not_understood_is_an_error(kind: str, change: Change, tmp_path: Path) -> None:
    record = found(Memory(change), tmp_path)[kind]
    assert (record.outcome, record.cause) == ("error", "")


@pytest.mark.parametrize("variant", ["duckdb-variant", "json-lines", "sqlite-json", "document-store[layout=amax]"])
def test_stores_have_no_undeclared_changes(variant: str, tmp_path: Path) -> None:
    adapter = DOCUMENT_STORES.build(variant)
    adapter.load_library()
    records = found(adapter, tmp_path)
    assert [record for record in records.values() if record.outcome == "error"] == []
