"""The SQL for ClickHouse's JSON, without ClickHouse."""

from __future__ import annotations

from typing import Any

import pytest
import sqlglot

from adapters.document_store import RefusedQuery
from document_stores.shared.dropped_paths import DroppedPaths
from document_stores.sql.answer import Selection
from document_stores.sql.clickhouse_dialect import ClickhouseDialect, bound
from document_stores.sql.clickhouse_values import ClickhouseValue, literal, quoted
from document_stores.sql.translation import Known, Translation
from libraries.document_queries import (
    Aggregate,
    Call,
    Exists,
    Filter,
    GroupBy,
    IsType,
    Named,
    Plan,
    field,
)
from libraries.document_queries.plan import arrays_of
from tests.contracts.document_queries import ON_EVENTS

OBJECTS = Plan((Filter(IsType(field("a"), "object")), GroupBy((), (Aggregate("n", "count"),))))
COUNTED = Plan((GroupBy((), (Aggregate("n", "count", field("a")),)),))
DISTINCT = Plan((GroupBy((), (Aggregate("n", "count_distinct", field("a")),)),))
HIGHEST = Plan((GroupBy((), (Aggregate("n", "max", field("a")),)),))
PRESENT = Plan((Filter(Exists(field("a"))), GroupBy((), (Aggregate("n", "count"),))))


def translated(plan: Plan, lines: bytes = b"", known: Known | None = None) -> Selection:
    """Return the SELECT of a plan over documents from which ClickHouse drops what `lines` lose."""
    dropped = DroppedPaths()
    dropped.add(lines)
    value = ClickhouseValue("document", dropped=dropped)
    return Translation(plan, ClickhouseDialect(), "documents", value, "key", known or {}).selection()


@pytest.mark.parametrize("plan", [plan for plan in ON_EVENTS.values() if not arrays_of(plan)])
def test_selects_are_valid_and_have_no_placeholders_left(plan: Plan) -> None:
    selection = translated(plan)
    text = bound(selection.text, selection.parameters)
    assert "\0" not in text
    assert sqlglot.parse_one(text, read="clickhouse").key == "select"


@pytest.mark.parametrize("plan", [plan for plan in ON_EVENTS.values() if arrays_of(plan)])
def test_items_of_arrays_are_refused(plan: Plan) -> None:
    with pytest.raises(RefusedQuery, match="items of arrays"):
        translated(plan)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("it's \\ a\0b`", r"'it\'s \\ a\0b\`'"),
        (True, "true"),
        (-(2**63), "-9223372036854775808"),
        (2.0**53, "9007199254740992.0"),
        (0.1, "0.1"),
    ],
)
def test_constants_are_escaped(value: Any, written: str) -> None:
    assert literal(value) == written


def test_names_are_escaped_as_in_stored_paths() -> None:
    assert quoted(("a.b", "c`d\\")) == r"`a%2Eb`.`c\`d\\`"
    for name in ("", "a\0b"):
        with pytest.raises(ValueError, match="cannot express"):
            quoted((name,))


def test_length_counts_characters() -> None:
    plan = Plan((GroupBy((Named("n", Call("length", (field("a"),))),), (Aggregate("count", "count"),)),))
    assert "lengthUTF8(document.`a`.:String)" in translated(plan).text


@pytest.mark.parametrize("plan", [OBJECTS, COUNTED, DISTINCT, HIGHEST, PRESENT])
@pytest.mark.parametrize("lines", [b'{"a":{}}\n', b'{"a":{"b":{"c":null}}}\n'])
def test_a_field_that_was_an_empty_object_is_not_counted_as_missing(plan: Plan, lines: bytes) -> None:
    with pytest.raises(RefusedQuery):
        translated(plan, lines)
    translated(plan, b'{"b":{}}\n')


@pytest.mark.parametrize("plan", [OBJECTS, COUNTED, DISTINCT, HIGHEST])
def test_a_field_that_was_null_counts_as_missing(plan: Plan) -> None:
    translated(plan, b'{"a":null}\n')


def test_a_null_is_not_taken_for_a_missing_field() -> None:
    with pytest.raises(RefusedQuery):
        translated(PRESENT, b'{"a":null}\n')


def test_a_field_that_all_documents_have_was_never_dropped() -> None:
    lines = b'{"a":{}}\n'
    translated(DISTINCT, lines, {field("a"): frozenset({"text"})})
    with pytest.raises(RefusedQuery):
        translated(DISTINCT, lines, {field("a"): frozenset({"text", None})})
