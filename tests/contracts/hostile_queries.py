"""Plans and documents that break careless translations to other query languages.

They contain NULs in texts, nulls and missing fields, names that are keywords, and nested expressions.
tests/contracts/document_queries.py uses them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from libraries.document_queries import (
    Aggregate,
    AnyItem,
    Call,
    Compare,
    Compute,
    Constant,
    Count,
    Filter,
    GroupBy,
    In,
    IsMissing,
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
)
from libraries.document_queries.steps import MOST_NESTING, Field
from libraries.document_queries.values import MAX_DEPTH

Documents = list[dict[str, Any]]

_COUNT = Aggregate("count", "count")
_ITEMS = Unnest(("items",), "item")


def _counted(condition: Any) -> Plan:
    return Plan((Filter(condition), Project((Named("id", field("id")),))))


NULLS_AND_NOTHING: Documents = [
    {"id": 1, "k": None, "in": {"k": None}, "items": [{"k": None}, {"k": 1}], "texts": [None, "x"]},
    {"id": 2, "in": {}, "items": [{}, {"k": None}, {"k": 1}], "texts": [None, None]},
    {"id": 3, "k": 5, "in": {"k": 5}, "items": [{"k": 5}, {"k": 5}, {}], "texts": ["x"]},
    {"id": 4, "k": 5, "texts": ["x", "y"]},
    {"id": 5, "k": None},
]

_K = field("k")
_IN_K = field("in.k")
_K_OF_ITEM = field("k", "item")
OF_NULLS: dict[str, Plan] = {
    "groups": Plan((GroupBy((Named("k", _K),), (_COUNT,)),)),
    "groups within": Plan((GroupBy((Named("k", _IN_K),), (_COUNT,)),)),
    "two keys": Plan((GroupBy((Named("id", field("id")), Named("k", _K)), (_COUNT,)),)),
    "fewest": Plan((GroupBy((Named("k", _K),), (_COUNT,)), TopK((Order("count"),), 1))),
    "most": Plan((GroupBy((Named("k", _IN_K),), (_COUNT,)), TopK((Order("count", True),), 1))),
    "groups of fields of items": Plan((_ITEMS, GroupBy((Named("k", _K_OF_ITEM),), (_COUNT,)))),
    "groups after unnesting": Plan((_ITEMS, GroupBy((Named("k", _K),), (_COUNT,)))),
    "distinct": Plan((Unnest(("items",), "item", distinct=_K_OF_ITEM), Count())),
    "groups of items": Plan((Unnest(("texts",), "item"), GroupBy((Named("k", field("", "item")),), (_COUNT,)))),
    "distinct items": Plan((Unnest(("texts",), "item", distinct=field("", "item")), Count())),
    "ordered": Plan((Project((Named("id", field("id")), Named("k", _K))), TopK((Order("k"),)))),
    "last": Plan((Project((Named("id", field("id")), Named("k", _K))), TopK((Order("k", True),), 2))),
    "ordered by a copy": Plan(
        (Project((Named("id", field("id")), Named("k", _K))), Compute((Named("c", _K),)), TopK((Order("c"),), 2))
    ),
}

_ONE, _SAME = {"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}
OBJECTS_IN_BOTH_ORDERS: Documents = [
    {
        **{"id": n, "k": value, "g": n % 2, "items": [value, _ONE, _SAME, {"a": value}]},
        "d": 7 if n % 2 else (_ONE, _SAME)[n // 2 % 2],
    }
    for n, value in enumerate((_ONE, _SAME, _ONE, _SAME, _SAME, _ONE, "x", "x", "x", "x"))
]
OF_OBJECTS: dict[str, Plan] = {
    "distinct": Plan((Unnest(("items",), "item", distinct=field("", "item")), Count())),
    "distinct fields": Plan((Unnest(("items",), "item", distinct=field("b", "item")), Count())),
    "distinct within": Plan((Unnest(("items",), "item", distinct=field("a", "item")), Count())),
    **{
        f"{function} of {name}, {descending}, {rows}": Plan(
            (
                GroupBy((Named("key", field(name)),), (Aggregate("f", function, field(of) if of else None),)),
                TopK((Order("f", descending),), rows),
            )
        )
        for function, of in (("count", ""), ("count_distinct", "d"), ("min", "d"), ("max", "d"), ("count", "d"))
        for name in ("k", "g", "k.b", "d")
        for descending, rows in ((True, 1), (False, 2))
    },
}

_TEXT = field("t")
_TEXT_ITEM = field("", "text")
ON_NUL: dict[str, Plan] = {
    "groups": Plan((GroupBy((Named("t", _TEXT),), (_COUNT,)),)),
    "lengths": Plan((GroupBy((Named("t", Call("length", (_TEXT,))),), (_COUNT,)),)),
    "extremes": Plan((GroupBy((), (Aggregate("least", "min", _TEXT), Aggregate("most", "max", _TEXT))),)),
    "different": Plan((GroupBy((), (Aggregate("texts", "count_distinct", _TEXT),)),)),
    "projected": Plan((Project((Named("t", _TEXT), Named("n", Call("length", (_TEXT,))))),)),
    **{
        f"{name} {value!r}": _counted(condition)
        for value in ("a", "a\0b", "a\0", "\0", "")
        for name, condition in {
            "equal": Compare(_TEXT, "=", Constant(value)),
            "unequal": Compare(_TEXT, "!=", Constant(value)),
            "above": Compare(_TEXT, ">", Constant(value)),
            "in": In(_TEXT, (value, "x")),
            "begins": Prefix(_TEXT, value),
            "some item": AnyItem(("texts",), "text", Compare(_TEXT_ITEM, "=", Constant(value))),
            "some item begins": AnyItem(("texts",), "text", Prefix(_TEXT_ITEM, value)),
        }.items()
    },
    "items": Plan((Unnest(("texts",), "text"), GroupBy((Named("k", _TEXT_ITEM),), (_COUNT,)))),
    "distinct items": Plan((Unnest(("texts",), "text", distinct=_TEXT_ITEM), Count())),
    "other items": Plan((Unnest(("texts",), "text"), Filter(Compare(_TEXT_ITEM, "!=", Constant("a"))), Count())),
    "extremes of items": Plan((Unnest(("texts",), "text"), GroupBy((), (Aggregate("most", "max", _TEXT_ITEM),)))),
    "longest item": Plan(
        (Unnest(("texts",), "text"), GroupBy((), (Aggregate("most", "max", Call("length", (_TEXT_ITEM,))),)))
    ),
}


def texts_with_nul() -> Documents:
    """Return documents whose texts contain NULs or end with one."""
    texts = ("a\0b", "a", "a\0c", "\0", "a\0b", "", "b")
    return [{"id": n, "t": text, "texts": [text, "a", *texts[:n]]} for n, text in enumerate(texts)]


def without_what_json_lacks(value: Any) -> Any:
    """Replace values that have no JSON notation."""
    if isinstance(value, dict):
        return {name: without_what_json_lacks(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_what_json_lacks(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return 3.25
    return "bytes" if isinstance(value, bytes) else value


def _deep(depth: int) -> dict[str, Plan]:
    call: Any = field("time_us")
    condition: Any = Compare(field("id"), "=", Constant(0))
    for number in range(depth):
        call = Call("floor_divide" if number % 2 else "modulo", (call, Constant(10**12 - number)))
    for number in range(min(depth, MOST_NESTING // 2 - 1)):
        condition = Not(Or((Compare(field("id"), "=", Constant(number)), condition)))
    path = ("0",) * depth
    return {
        f"calls {depth}": Plan((GroupBy((Named("k", call),), (_COUNT, Aggregate("sum", "sum", call))),)),
        f"conditions {depth}": _counted(condition),
        f"numbers as names {depth}": _counted(IsMissing(Field(path))),
        f"names {depth}": _counted(IsMissing(Field(("a",) * min(20 * depth, MAX_DEPTH)))),
    }


DEEP = _deep(2) | _deep(10) | _deep(30) | _deep(60)
"""Nested plans. Their SQL is many times as long as the plan, or cannot be written at all."""


def named_by(names: Iterable[str], of_arrays: bool) -> dict[str, Plan]:
    """Return plans that use these names for fields and items. The fields are arrays of objects, or numbers."""
    plans = {}
    for name in names:
        here, within, item = Field((name,)), Field(("in", name)), Field(("x",), name)
        if of_arrays:
            plans[name] = Plan((Unnest((name,), name, distinct=item), GroupBy((Named(name, item),), (_COUNT,))))
            some = AnyItem((name,), name, Or((Compare(item, "=", Constant(1)), Compare(item, "<", within))))
            plans[f"some {name}"] = Plan((Filter(some), GroupBy((Named(name, within),), (_COUNT,))))
        else:
            first = (GroupBy((Named(name, here), Named("in", within)), (_COUNT,)), TopK((Order("count"),), 3))
            plans[name] = Plan((Filter(Compare(here, ">", within)), *first))
    return plans
