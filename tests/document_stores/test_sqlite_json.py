"""SQLite's JSON keeps the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.document_store import identical
from document_stores.sqlite_json import SqliteHandle, SqliteJson
from libraries.document_queries import (
    And,
    Compare,
    Constant,
    Count,
    Filter,
    In,
    Not,
    Or,
    Plan,
    field,
    from_json,
    run_over_documents,
    to_json,
)
from libraries.document_queries.steps import Condition
from tests.contracts.documents import DocumentStoreContract

KINDS = (None, "text", "", "7", True, False, [1], {"a": 1}, 2.5, -0.0, 7.0, 1e300, 2**53, 2**53 + 1, -(2**63), "ü")
"""Values of the field in some documents; in the others it is a number or missing."""
CONSTANTS = (7, 7.5, 0, -0.0, 1, "7", "text", "", "ü", True, 2**53, 2**53 + 1, 9007199254740992.0, 1e300, None, 2.5)
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


class TestSqlite(DocumentStoreContract):
    variant = "sqlite-json[engine=sqlite3]"

    def test_groups_are_kept_in_memory(self, adapter: SqliteJson, location: Path) -> None:
        """A worker may write only at its location, so SQLite cannot use temporary files elsewhere."""
        adapter.ingest([b'{"id": 1}\n'], location)
        handle = adapter.open(location)
        assert list(handle._rows("PRAGMA temp_store")) == [(2,)]
        handle.close()

    @pytest.mark.parametrize("mixed", [False, True])
    def test_an_index_is_taken(self, adapter: SqliteJson, location: Path, mixed: bool) -> None:
        """Whether all values have one kind, as users know, or the kind of each has to be tested."""
        handle = stored(adapter, location, mixed)
        for plan in (
            counting(And((Compare(at("n"), ">=", Constant(5)), Compare(at("n"), "<=", Constant(7))))),
            counting(Compare(at("n"), "=", Constant(5))),
            counting(Compare(Constant(5), ">", at("n"))),
            counting(In(at("n"), (3, 4))),
            counting(Compare(at("t"), "=", Constant("t5"))),
            counting(Compare(at("t"), ">", Constant("t998"))),
        ):
            told = handle.statement(plan)
            explained = list(handle._rows(f"EXPLAIN QUERY PLAN {told.text}", told.parameters))
            assert any("SEARCH documents USING INDEX field_" in row[3] for row in explained), (plan, explained)
            assert not any("SCAN documents" in row[3] for row in explained), (plan, explained)
        handle.close()

    def test_an_index_means_the_same_whatever_the_kinds_and_wherever_it_stands(
        self, adapter: SqliteJson, location: Path
    ) -> None:
        handle = stored(adapter, location, True, 40)
        held = [document for batch in handle.scan() for document in batch]
        other = Compare(at("t"), "<", Constant("t5"))
        for path in ("n", "t"):
            for operator in OPERATORS:
                for value in CONSTANTS:
                    compared = Compare(at(path), operator, Constant(value))
                    for condition in (compared, Not(compared), And((other, compared)), Or((other, Not(compared)))):
                        plan = counting(condition)
                        right = run_over_documents(held, from_json(plan))
                        assert identical(handle.query(plan), right), (path, operator, value)
        handle.close()

    def test_names_that_differ_in_letter_case_have_an_index_each(self, adapter: SqliteJson, location: Path) -> None:
        adapter.ingest([[{"id": 1, "a": 1, "A": 2}]], location)
        handle = adapter.open(location)
        for path in (("a",), ("A",), ("a",), ('no"path',)):
            handle.index(path)
        handle.close()
        again = adapter.open(location)
        again.index(("A",))
        assert len(again._indexed) == 2
        again.close()


def at(name: str) -> object:
    return field(f"at.{name}")


def counting(condition: Condition) -> str:
    return to_json(Plan((Filter(condition), Count())))


def stored(adapter: SqliteJson, location: Path, mixed: bool, numbers: int = 1_000) -> SqliteHandle:
    """Return documents with two fields that have an index each."""
    documents = [{"id": number, "at": {"n": number, "t": f"t{number}"}} for number in range(numbers)]
    if mixed:
        documents += [{"id": 1_000 + number, "at": {"n": kind, "t": kind}} for number, kind in enumerate(KINDS)]
        documents.append({"id": 2_000, "at": {}})
    adapter.ingest([documents], location)
    handle = adapter.open(location)
    handle.index(("at", "n"))
    handle.index(("at", "t"))
    return handle
