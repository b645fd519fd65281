"""Contract of queries: a store returns the answer of the reference implementation over the same documents, or refuses
the query. `DocumentStoreContract` inherits it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from adapters.document_store import DocumentLoss, DocumentStoreAdapter, RefusedQuery, identical, seen
from adapters.errors import RefusedData
from data_generator.generated.document_kinds import HOSTILE_NAMES
from document_stores.shared.json_losses import without_empty_objects, without_nulls
from libraries.document_queries import (
    Aggregate,
    And,
    AnyItem,
    Call,
    Compare,
    Compute,
    Constant,
    Count,
    Exists,
    Filter,
    GroupBy,
    In,
    IsMissing,
    IsNull,
    IsType,
    Limit,
    Named,
    Not,
    Or,
    Order,
    Plan,
    Prefix,
    Project,
    TopK,
    Unnest,
    field,
    from_json,
    run_over_documents,
    to_json,
)
from libraries.document_queries.errors import QueryError
from libraries.document_queries.plan import arrays_of
from libraries.document_queries.steps import Field
from libraries.document_queries.tests.strategies import documents, plans
from tests.contracts.adapters import only_for
from tests.contracts.attached_duckdb import attached_duckdb
from tests.contracts.hostile_queries import (
    DEEP,
    NULLS_AND_NOTHING,
    OBJECTS_IN_BOTH_ORDERS,
    OF_NULLS,
    OF_OBJECTS,
    ON_NUL,
    named_by,
    texts_with_nul,
    without_what_json_lacks,
)
from tests.contracts.projection import rchar

Documents = list[dict[str, Any]]


def events() -> Documents:
    """Return similar documents, as a service writes them. Some fields are missing, but no field changes its type."""
    generator = random.Random(7)
    made = []
    for number in range(300):
        event: dict[str, Any] = {
            "id": number,
            "did": f"did:{number % 23}",
            "time_us": 1_600_000_000_000_000 + number**3,
            "offset": number - 150,
        }
        event["kind"] = "commit" if number % 9 else "identity"
        if number % 9:
            collection = generator.choice(("post", "like", "repost", "fol'low"))
            event["commit"] = {"operation": generator.choice(("create", "delete")), "collection": collection}
            event["tags"] = [{"text": generator.choice("abcdé"), "at": place} for place in range(number % 4)]
        event["text"] = "x😀" * (number % 13)
        event["note"] = '{"a": null, "b":[null]}'
        made.append(event)
    return made


VALUES = (
    *(1, 1.0, True, "1", "true", None, 0, -3, 2.5, -2.5, "abc", "", "é", 2**53 + 1, 2.0**53, -(2**63), 1e300, False),
    *([1, "x"], [], {}, {"x": 1}, {"x": {"y": 2}}, [{"x": 1}, 5], "null", "[1]", '{"x":1}'),
    *({"a": 1, "b": 2}, {"b": 2, "a": 1}, "\x0b\x1f", "\x0b\x1f\\u001f", '"'),
)


def mixed(values: Sequence[Any] = VALUES) -> Documents:
    """Return documents whose fields change their type, are null or missing, and have names that are hard to quote."""
    generator = random.Random(11)
    made = []
    for number in range(250):
        document: dict[str, Any] = {"id": number}
        for name in ("a", "b", "a.b", "c'd", "0"):
            if generator.random() < 0.8:
                document[name] = generator.choice(values)
        document["items"] = generator.choice((None, 5, {"x": 1}, [generator.choice(values) for _ in range(number % 5)]))
        document["in"] = {"a": generator.choice(values), "n": number % 7}
        made.append(document)
    return made


def _equal(path: str, value: Any, of: str = "") -> Compare:
    return Compare(field(path, of), "=", Constant(value))


_COUNT = Aggregate("count", "count")
_CREATED = And((_equal("kind", "commit"), _equal("commit.operation", "create")))
_TAGS = Unnest(("tags",), "tag")
_MANY = 1_600_000_000_000_000 + 1_200
_FEW = Filter(Compare(field("id"), "<", Constant(50)))
"""Filter for few documents, because the reference implementation compares each document with many values."""
_HOUR = Call("modulo", (Call("floor_divide", (field("time_us"), Constant(3_600_000_000))), Constant(24)))

ON_EVENTS: dict[str, Plan] = {
    "count": Plan((Count(),)),
    "groups": Plan((GroupBy((Named("event", field("commit.collection")),), (_COUNT,)), TopK((Order("count", True),)))),
    "distinct users": Plan(
        (
            Filter(_CREATED),
            GroupBy(
                (Named("event", field("commit.collection")),),
                (_COUNT, Aggregate("users", "count_distinct", field("did"))),
            ),
            TopK((Order("count", True),)),
        )
    ),
    "hours": Plan(
        (
            Filter(And((_CREATED, In(field("commit.collection"), ("post", "fol'low"))))),
            GroupBy((Named("event", field("commit.collection")), Named("hour", _HOUR)), (_COUNT,)),
            TopK((Order("hour"), Order("event"))),
        )
    ),
    "first": Plan(
        (
            GroupBy((Named("did", field("did")),), (Aggregate("first", "min", field("time_us")),)),
            TopK((Order("first"),), 3),
        )
    ),
    "longest span": Plan(
        (
            GroupBy(
                (Named("did", field("did")),),
                (Aggregate("first", "min", field("time_us")), Aggregate("last", "max", field("time_us"))),
            ),
            Compute((Named("span", Call("minus", (field("last"), field("first")))),)),
            TopK((Order("span", True),), 3),
        )
    ),
    "ties": Plan((GroupBy((Named("did", field("did")),), (_COUNT,)), TopK((Order("count", True),), 4))),
    "longest texts": Plan(
        (
            GroupBy((Named("did", field("did")),), (Aggregate("longest", "max", Call("length", (field("text"),))),)),
            TopK((Order("longest", True),), 5),
        )
    ),
    "figures": Plan(
        (
            Filter(Compare(field("time_us"), ">=", Constant(1_600_000_000_500_000))),
            GroupBy(
                (),
                (
                    *(Aggregate(function, function, field("time_us")) for function in ("sum", "avg", "min", "max")),
                    *(Aggregate("texts", "max", field("text")), Aggregate("commits", "count", field("commit"))),
                ),
            ),
        )
    ),
    "none": Plan(
        (Filter(_equal("kind", "nothing")), GroupBy((), (_COUNT, Aggregate("most", "max", field("time_us")))))
    ),
    "no groups": Plan((Filter(_equal("kind", "nothing")), GroupBy((Named("did", field("did")),), (_COUNT,)))),
    "tags": Plan((_TAGS, GroupBy((Named("tag", field("text", "tag")),), (_COUNT,)), TopK((Order("count", True),)))),
    "tagged": Plan((Filter(AnyItem(("tags",), "tag", _equal("text", "é", "tag"))), Count())),
    "pairs": Plan(
        (
            Unnest(("tags",), "one", distinct=field("text", "one")),
            Unnest(("tags",), "other", distinct=field("text", "other")),
            Filter(Compare(field("text", "one"), "<", field("text", "other"))),
            GroupBy((Named("one", field("text", "one")), Named("other", field("text", "other"))), (_COUNT,)),
        )
    ),
    "below zero": Plan(
        (
            GroupBy((Named("part", Call("floor_divide", (field("offset"), Constant(50)))),), (_COUNT,)),
            TopK((Order("part"),)),
        )
    ),
    "rest below zero": Plan(
        (
            GroupBy((Named("rest", Call("modulo", (field("offset"), Constant(50)))),), (_COUNT,)),
            TopK((Order("rest"),), 9),
        )
    ),
    "constants first": Plan(
        (
            Filter(And((Compare(Constant(-20), "<=", field("offset")), Compare(Constant(30), ">", field("offset"))))),
            Count(),
        )
    ),
    "late tags": Plan((_TAGS, Filter(Compare(field("at", "tag"), ">", Constant(0))), Count())),
    "projected": Plan(
        (
            Filter(Or((Prefix(field("commit.collection"), "re"), _equal("did", "did:3")))),
            Project((Named("when", field("time_us")), Named("what", field("commit.collection")))),
            Limit(7),
        )
    ),
    "not": Plan((Filter(Not(_equal("commit.operation", "create"))), Count())),
    "functions of nothing": Plan(
        (_TAGS, GroupBy((), (_COUNT, Aggregate("f", "min", Call("floor_divide", (field("nothing"), Constant(3)))))))
    ),
    "many integers": Plan((_FEW, Filter(In(field("time_us"), tuple(range(1_600_000_000_000_000, _MANY)))), Count())),
    "many texts": Plan((_FEW, Filter(In(field("did"), tuple(f"did:{n}" for n in range(7, 1_107)))), Count())),
    "not many texts": Plan((_FEW, Filter(Not(In(field("did"), tuple(f"did:{n}" for n in range(7, 607))))), Count())),
    "numbers": Plan((Filter(Compare(field("id"), "<", Constant(7.5))), Project((Named("id", field("id")),)))),
}
AFTER_WRITES = (
    *("count", "distinct users", "first", "figures", "tags", "tagged", "pairs", "projected", "not", "many texts"),
    "below zero",
)
"""Plans that together contain each kind of step."""


def _counted(condition: Any) -> Plan:
    return Plan((Filter(condition), Project((Named("id", field("id")),))))


_A = field("a")
_ITEMS = Unnest(("items",), "item")
ON_MIXED: dict[str, Plan] = {
    **{
        f"{operator} {value!r}": _counted(Compare(_A, operator, Constant(value)))
        for operators, values in (
            (("=", "!=", "<", ">="), (1, True, "abc", 2**53 + 1, None)),
            (("=", "<"), (2.5, "1", 2.0**53, -(2**63), 1e300, "é", "\x0b\x1f", '"')),
        )
        for operator in operators
        for value in values
    },
    **{
        f"not {value!r}": _counted(Not(Compare(_A, "=", Constant(value))))
        for value in (1, True, "true", "null", "[1]", None)
    },
    **{
        f"is {kind}": _counted(IsType(_A, kind))
        for kind in ("null", "boolean", "integer", "double", "text", "array", "object")
    },
    "exists": _counted(Exists(_A)),
    "missing": _counted(IsMissing(_A)),
    "null": _counted(IsNull(_A)),
    "not in": _counted(Not(In(_A, (1, "abc", True)))),
    "in": _counted(In(_A, (1, "\x0b\x1f", "\x0b\x1f\\u001f", True))),
    "whole is object": _counted(IsType(Field(()), "object")),
    "whole": Plan((Project((Named("doc", Field(())), Named("a", _A))),)),
    "fields": _counted(Compare(_A, "<", field("b"))),
    "equal fields": _counted(Compare(_A, "=", field("b"))),
    "hostile": _counted(
        Or((Compare(Field(("a.b",)), "=", Constant(1)), Compare(Field(("c'd",)), "=", Constant("abc"))))
    ),
    "number's name": _counted(Exists(Field(("a", "0")))),
    "within": _counted(And((Exists(field("in.a.x.y")), Compare(field("in.n"), ">", Constant(2))))),
    "groups": Plan((GroupBy((Named("in", field("in.n")),), (Aggregate("values", "count", _A), _COUNT)),)),
    "kinds of items": Plan((Unnest(("items",), "item"), Filter(IsType(field("", "item"), "text")), Count())),
    "null items": Plan((Unnest(("items",), "item"), Filter(IsNull(field("", "item"))), Count())),
    "items' fields": Plan((Unnest(("items",), "item"), Filter(Exists(field("x", "item"))), Count())),
    "some item": _counted(AnyItem(("items",), "item", Compare(field("", "item"), ">", Constant(1)))),
    "scalar groups": Plan(
        (
            Filter(Not(Or((IsType(_A, "array"), IsType(_A, "object"))))),
            GroupBy((Named("a", _A),), (_COUNT, Aggregate("least", "min", field("id")))),
            TopK((Order("count", True),), 6),
        )
    ),
    "extremes": Plan(
        (
            Filter(Not(Or((IsType(_A, "array"), IsType(_A, "object"))))),
            GroupBy((Named("n", field("in.n")),), (Aggregate("least", "min", _A), Aggregate("most", "max", _A))),
            TopK((Order("most", True),), 3),
        )
    ),
    "everything": Plan((Project((Named("a", _A), Named("in", field("in")), Named("items", field("items")))),)),
    "equal item": _counted(AnyItem(("items",), "item", _equal("", "\x0b\x1f", "item"))),
    "equal items": Plan((_ITEMS, Filter(_equal("", "\x0b\x1f", "item")), Count())),
    "groups of wholes": Plan((GroupBy((Named("doc", Field(())),), (_COUNT,)),)),
    "distinct items": Plan((Unnest(("items",), "item", distinct=field("", "item")), Count())),
    "distinct fields of items": Plan((Unnest(("items",), "item", distinct=field("x", "item")), Count())),
    "groups of items": Plan((_ITEMS, GroupBy((Named("item", field("", "item")),), (_COUNT,)))),
    **{
        f"first groups of anything, {descending}": Plan(
            (GroupBy((Named("a", _A),), (_COUNT,)), TopK((Order("count", descending),), 1))
        )
        for descending in (True, False)
    },
    **{
        f"first groups by {function} of anything": Plan(
            (GroupBy((Named("n", field("in.n")),), (Aggregate("f", function, _A),)), TopK((Order("f"),), 1))
        )
        for function in ("min", "max", "count_distinct")
    },
    "groups of anything": Plan((GroupBy((Named("a", _A),), (_COUNT,)),)),
    "extremes of anything": Plan((GroupBy((), (Aggregate("least", "min", _A), Aggregate("most", "max", _A))),)),
    "sum of anything": Plan((GroupBy((), (Aggregate("sum", "sum", _A),)),)),
}

OF_CONTAINERS = {name for name in ON_MIXED if "anything" in name} | {
    *("groups of wholes", "distinct items", "distinct fields of items", "groups of items")
}
"""Queries that a store may refuse: groups by arrays or objects, and groups and sums of doubles."""


NAMES_AT_A_TIME = 11

LITTLE_BYTES = 4_096
"""Upper limit of the bytes that are read if nothing but the I/O counter itself is read."""


@cache
def _answer(plan: str, documents: bytes) -> list[dict[str, Any]]:
    """Return the reference answer over documents in MessagePack.

    It is cached, because all stores get the same queries.
    """
    return run_over_documents(msgspec.msgpack.decode(documents), from_json(plan))


def _or_error(made: Callable[[], Any]) -> Any:
    """Return the rows, or "QueryError" if the query raises it."""
    try:
        return made()
    except QueryError:
        return "QueryError"


def _stores(adapter: DocumentStoreAdapter, *kinds: str) -> bool:
    """Return whether documents of these kinds can be stored, possibly with a loss."""
    return not any(loss.view is None for loss in adapter.losses if loss.kinds & set(kinds))


def _keeps(adapter: DocumentStoreAdapter, *kinds: str) -> bool:
    """Return whether documents of these kinds can be stored without a loss."""
    return not any(loss.kinds & set(kinds) for loss in adapter.losses)


def _of_items(adapter: DocumentStoreAdapter, plans: dict[str, Plan]) -> set[str]:
    """Return the names of the plans that read items of arrays, if the store cannot read them."""
    if "unnest" in adapter.offers.operators:
        return set()
    return {name for name, plan in plans.items() if arrays_of(plan)}


answers_queries = only_for(lambda adapter: adapter.offers.operators)


class DocumentQueries:
    """Tests for stores that offer operators."""

    @attached_duckdb()
    def _answered(
        self,
        adapter: DocumentStoreAdapter,
        documents: Documents,
        plans: dict[str, Plan],
        location: Path,
        losses: Sequence[DocumentLoss] = (),
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Return the wrong answers and the refusals, each by the plan's name."""
        adapter.begin(location)
        adapter.ingest([documents], location)
        handle = adapter.open(location)
        wrong, refused = {}, {}
        held = msgspec.msgpack.encode(documents)
        for name, plan in plans.items():
            text = to_json(plan)
            try:
                found: Any = _or_error(lambda text=text: handle.query(text))
            except RefusedQuery as error:
                refused[name] = str(error)
                continue
            wanted = _or_error(lambda text=text: _answer(text, held))
            if not identical(seen(found, losses), seen(wanted, losses)):
                wrong[name] = f"wanted {str(wanted)[:400]}, found {str(found)[:400]}"
        handle.close()
        adapter.end(location)
        return wrong, refused

    @answers_queries
    def test_queries_of_events_are_answered(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        wrong, refused = self._answered(adapter, events(), ON_EVENTS, location)
        assert wrong == {}, wrong
        assert set(refused) == _of_items(adapter, ON_EVENTS), refused

    @answers_queries
    @only_for(lambda adapter: _stores(adapter, "changing types", "missing and null"))
    def test_queries_of_changing_types_are_answered_or_refused(
        self, adapter: DocumentStoreAdapter, location: Path
    ) -> None:
        losses = [loss for loss in adapter.losses if loss.kinds & {"changing types", "missing and null"}]
        documents = mixed()
        allowed = set(OF_CONTAINERS)
        if losses:
            # A store with such a loss gets documents without nulls, and may refuse queries that distinguish null from
            # missing.
            documents = [without_nulls(document) for document in documents]
            allowed |= {
                *("exists", "missing", "null", "is null", "number's name", "within", "items' fields", "null items"),
                "scalar groups",
            }
        if not _keeps(adapter, "empty objects"):
            # Queries of documents with empty objects are refused, which another test checks.
            documents = [without_empty_objects(document) for document in documents]
        allowed |= _of_items(adapter, ON_MIXED)
        of_doubles = [loss for loss in adapter.losses if "doubles" in loss.kinds]
        wrong, refused = self._answered(adapter, documents, ON_MIXED, location, [*losses, *of_doubles])
        assert wrong == {}, wrong
        assert set(refused) <= allowed, refused

    @answers_queries
    @pytest.mark.rule(14)
    def test_prepare_reads_nothing_that_another_handle_has_learned(
        self, adapter: DocumentStoreAdapter, location: Path
    ) -> None:
        """A cold call uses a handle that learned from another one, so `prepare` must not read the queried data (rule
        14)."""
        documents = [{"id": number, "kind": "k", "time_us": number % 50, "text": "x" * 99} for number in range(3_000)]
        adapter.ingest([documents], location)
        plan = to_json(Plan((Filter(Compare(field("time_us"), "<", Constant(3))), Count())))
        first = adapter.open(location)
        first.prepare(plan)
        first.close()
        second = adapter.open(location)
        second.learn_from(first)
        before = rchar()
        second.prepare(plan)
        assert rchar() - before < LITTLE_BYTES
        assert second.query(plan) == run_over_documents(documents, from_json(plan))
        second.close()

    @answers_queries
    @only_for(lambda adapter: _keeps(adapter, "changing types", "missing and null", "NUL in a text"))
    def test_queries_of_texts_with_nul_are_answered_or_refused(
        self, adapter: DocumentStoreAdapter, location: Path
    ) -> None:
        with_nul = ("a\0b", "a\0c", "\0", ["a\0b", "a", "a\0c"], {"x": "a\0b"}, {"x": "a"})
        wrong, _ = self._answered(adapter, mixed((*VALUES, *with_nul, "a", "b")), ON_MIXED, location)
        assert wrong == {}, wrong
        wrong, _ = self._answered(adapter, texts_with_nul(), ON_NUL, location.with_stem("texts"))
        assert wrong == {}, wrong

    @answers_queries
    def test_null_and_missing_are_two_groups_or_refused(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        losses = [loss for loss in adapter.losses if "missing and null" in loss.kinds]
        wrong, refused = self._answered(adapter, NULLS_AND_NOTHING, OF_NULLS, location, losses)
        assert wrong == {}, wrong
        assert losses or not refused, refused

    @answers_queries
    @only_for(lambda adapter: _stores(adapter, "object or scalar", "missing and null"))
    def test_comparing_objects_ignores_the_order_of_fields_or_is_refused(
        self, adapter: DocumentStoreAdapter, location: Path
    ) -> None:
        losses = [loss for loss in adapter.losses if loss.kinds & {"object or scalar", "missing and null"}]
        wrong, _ = self._answered(adapter, OBJECTS_IN_BOTH_ORDERS, OF_OBJECTS, location, losses)
        assert wrong == {}, wrong

    @answers_queries
    @pytest.mark.parametrize("of_arrays", [False, True], ids=["scalars", "arrays"])
    @attached_duckdb()
    def test_hostile_names_are_field_names_in_queries(
        self, of_arrays: bool, adapter: DocumentStoreAdapter, location: Path
    ) -> None:
        """Only a few names are used at a time, because engines take longer per field if there are many fields."""
        for first in range(0, len(HOSTILE_NAMES), NAMES_AT_A_TIME):
            names = HOSTILE_NAMES[first : first + NAMES_AT_A_TIME]
            documents: Documents = [
                {
                    **{"id": n, "in": dict.fromkeys(names, n % 2)},
                    **{name: [{"x": m, "y": n}, {"x": n % 2}] if of_arrays else n + m for m, name in enumerate(names)},
                }
                for n in range(4)
            ]
            place = location.with_name(f"{first}{adapter.suffix}")
            plans = named_by(names, of_arrays)
            wrong, refused = self._answered(adapter, documents, plans, place)
            assert wrong == {}, wrong
            for name in _of_items(adapter, plans):
                refused.pop(name)
            assert all(any(sign in '"\\' or sign < " " for sign in name) for name in refused), refused

    @answers_queries
    @only_for(lambda adapter: _keeps(adapter, "missing and null", "integers and doubles", "doubles"))
    @pytest.mark.slow
    @attached_duckdb()
    def test_random_plans_are_answered_or_refused(self, adapter: DocumentStoreAdapter, place: Path) -> None:
        numbers = itertools.count()

        @settings(
            max_examples=25, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
        )
        @given(documents(8), plans())
        def run(drawn: Documents, plan: Plan) -> None:
            held = [without_what_json_lacks(document) for document in drawn]
            folder = place / str(next(numbers))
            folder.mkdir()
            try:
                wrong, _ = self._answered(adapter, held, {"drawn": plan}, folder / f"stored{adapter.suffix}")
            except RefusedData:
                return
            assert wrong == {}, wrong

        run()

    @answers_queries
    def test_deeply_nested_plans_are_answered_or_refused(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        wrong, _ = self._answered(adapter, events()[:20], DEEP, location)
        assert wrong == {}, wrong

    @only_for(lambda adapter: adapter.offers.index)
    def test_an_index_is_reported_by_every_handle_and_used_for_its_path_only(
        self, adapter: DocumentStoreAdapter, location: Path
    ) -> None:
        """The store reports whether a query uses an index. Figures of index scans rely on this report."""
        documents = [{"id": number, "at": {"n": number, "m": number}} for number in range(2_000)]
        adapter.ingest([documents], location)
        handle = adapter.open(location)
        plans = {
            name: to_json(Plan((Filter(_equal(f"at.{name}", 7)), Count())))  # type: ignore[arg-type]
            for name in ("n", "m")
        }
        assert not handle.has_index(("at", "n"))
        assert not handle.uses_index(plans["n"])
        handle.index(("at", "n"))
        handle.close()
        again = adapter.open(location)
        assert [again.has_index(("at", name)) for name in ("n", "m")] == [True, False]
        assert [again.uses_index(plan) for plan in plans.values()] == [True, False]
        assert [again.query(plan) for plan in plans.values()] == [[{"count": 1}]] * 2
        again.close()

    @answers_queries
    @only_for(lambda adapter: adapter.offers.upsert)
    def test_queries_see_later_writes(self, adapter: DocumentStoreAdapter, location: Path) -> None:
        adapter.ingest([events()], location)
        handle = adapter.open(location)
        paths = [("time_us",), ("commit", "collection")] if adapter.offers.index else []
        for path in paths:
            handle.index(path)
            handle.index(path)
        held = {document["id"]: document for document in events()}
        # The store must not remember that no document had this field.
        of_new = to_json(Plan((Filter(_equal("new", 6)), Count())))
        assert handle.query(of_new) == [{"count": 0}]
        changed = [
            {"id": number, "did": "new", "kind": "commit", "time_us": number, "new": number}
            for number in range(0, 90, 3)
        ]
        handle.upsert(changed)
        assert handle.query(of_new) == [{"count": 1}]
        handle.delete(list(range(100, 130)))
        held.update((document["id"], document) for document in changed)
        for number in range(100, 130):
            del held[number]
        by_index = {
            "range": Plan((Filter(Compare(field("time_us"), "<", Constant(60))), Project((Named("id", field("id")),)))),
            "equal": Plan((Filter(_equal("commit.collection", "fol'low")), Count())),
        }
        documents = msgspec.msgpack.encode(list(held.values()))
        for plan in {**{name: ON_EVENTS[name] for name in AFTER_WRITES}, **by_index}.values():
            assert identical(handle.query(to_json(plan)), _answer(to_json(plan), documents))
        handle.close()
