"""Kinds of documents. Each kind has one property that a store may lose.

The kinds in KINDS are dicts. A store that declares losses (changes of values that are allowed) refers to the names of
these kinds. The kinds in TEXT_KINDS exist only as JSON text, because dicts cannot have the property, or because stores
are not required to keep it.
"""

from __future__ import annotations

import math
from typing import Any

Documents = list[dict[str, Any]]

HOSTILE_NAMES = (
    *("a.b", "a", 'quo"te', "it's", "back\\slash", "with space", "$", "$.a", "[0]", "*", "0", "-1", "/", "~1", "a/b"),
    *(
        "é",
        "e\u0301",
        "漢字",
        "😀",
        "line\nbreak",
        "tab\t",
        "`",
        ";",
        "--",
        "%s",
        "{}",
        "?",
        ":name",
        "select",
        "_id",
        "#",
    ),
    *(
        "__proto__",
        "document",
        "key",
        "rowid",
        "value",
        "element1",
        "list",
        "typed_value",
        "metadata",
        *("documents", "k0", "a0_0", "p0", "item0", "item0 of the plan", "some_item", "here", "other", "place", "line"),
        *("arriving", "ranked", "grouped", "$bound_000", ":bound_001", "json", "type", "f0", "Documents too"),
        "\u200b",
        "\\u0041",
    ),
)
"""Field names that are syntax or reserved words in SQL, paths, formats, Python or this project's stores."""

TEXTS = (
    *(
        "",
        " ",
        "x",
        "x" * 70_000,
        "äöü",
        "漢字",
        "😀",
        "e\u0301",
        "\u200b",
        'quo"te',
        "it's",
        "back\\slash",
        "a\nb",
        "\r\n",
    ),
    *("{}", "[1]", "\\u0041", "\x01\x1f\x7f", "\ufeff", "\uffff", "'; DROP TABLE documents; --"),
)


def _numbered(values: Any, name: str = "a") -> Documents:
    return [{"id": number, name: value} for number, value in enumerate(values)]


def _nested(levels: int, array: bool) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value] if array else {"a": value}
    return value


KINDS: dict[str, Documents] = {
    "plain": [
        {"id": n, "name": f"n{n}", "size": n / 7 + 0.1, "ok": n % 2 == 0, "at": {"x": n, "tags": [f"t{n % 3}", "u"]}}
        for n in range(40)
    ],
    "text keys": [{"id": text, "a": n} for n, text in enumerate(TEXTS) if len(text) < 1_000],
    "integer keys": [{"id": n, "a": n} for n in (0, -1, 2**63 - 1, -(2**63), 2**53 + 1)],
    "booleans": _numbered([True, False]),
    "integers": _numbered([0, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "doubles": _numbered([0.1, -0.0, 0.0, 1e300, 5e-324, -1.5, 1.0, 2.0**53, 1.7976931348623157e308, 123456789.123]),
    "texts": _numbered(TEXTS),
    "texts like others": _numbered(
        ["2020-01-01", "2020-01-01 10:00:00", "1", "1.5", "true", "null", "NaN", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"]
    ),
    "dates as text": _numbered(["2020-01-01", "2021-12-31"]),
    "times as text": _numbered(["2020-01-01 10:00:00", "2020-01-01T10:00:00.123Z"]),
    "NUL in a text": _numbered(["a\0b", "\0", "b"]),
    "NUL in a name": [{"id": 0, "a": {"b\0c": 1}}],
    "not finite": _numbered([math.nan, math.inf, -math.inf, 1.5]),
    "binary": _numbered([b"", b"\0\xff", b"abc"]),
    "nulls": _numbered([1, None, 2]),
    "only nulls": _numbered([None, None]),
    "missing": [{"id": 0, "a": 1, "b": {"c": "x", "d": "y"}}, {"id": 1, "b": {"d": "z"}}, {"id": 2, "a": 2}],
    "missing and null": [{"id": 0, "a": 1}, {"id": 1, "a": None}, {"id": 2}, {"id": 3, "a": 4}],
    "integers and doubles": _numbered([1, 1.5, 2, -7]),
    "mixed scalars": _numbered([1, "1", True, "x", None]),
    "object or scalar": _numbered([1, {"x": 1}, "x"]),
    "object or array": _numbered([{"x": 1}, [{"x": 1}, {"x": 2}]]),
    "mixed items": _numbered([[1, "x", None, {"b": 2.5}, [True]]]),
    "arrays": _numbered([[1, 2, 3], [4]]),
    "empty arrays": _numbered([[], [1], []]),
    "only empty arrays": _numbered([[], []]),
    "nested arrays": _numbered([[[1, 2], [], [3]], [[]], []]),
    "nulls in arrays": _numbered([[None, 1, None], [None], [2]]),
    "objects in arrays": _numbered([[{"x": 1, "y": "a"}, {"x": 2, "y": "b"}], [{"x": 3, "y": "c"}], []]),
    "empty objects": [{"id": 0, "a": {}}, {"id": 1, "a": {}}],
    "object or empty object": [{"id": 0, "a": {}}, {"id": 1, "a": {"b": 1}}],
    "deep objects": [{"id": 0, "a": _nested(62, array=False)}],
    "deep arrays": [{"id": 0, "a": _nested(62, array=True)}],
    "names": [{"id": n, **{name: n * 100 + m for m, name in enumerate(HOSTILE_NAMES)}} for n in range(3)],
    "names within": [
        {"id": n, "in": {name: {name: n * 100 + m} for m, name in enumerate(HOSTILE_NAMES)}} for n in (0, 1)
    ],
    "empty name": [{"id": 0, "": 1, "a": {"": 2}}, {"id": 1, "": 3, "a": {"": 4}}],
    "encoded dot in a name": [{"id": 0, "a%2Eb": 1, "b": {"%2E": 2}}],
    "names that differ by case": [{"id": 0, "a": 1, "A": 2, "b": {"É": 1, "é": 2}}],
    "names of ours": [
        {
            **{"id": n, "documents": {"id": n + 10, "a": 5, "documents": n}, "a": n, "key": f"k{n}"},
            **{"document": {"key": n}, "line": n, "item0 of the plan": n},
        }
        for n in range(3)
    ],
    "references": [
        {
            **{"id": n, "$ref": "of the document", "$id": n, "a": {"$ref": "c", "$id": n, "$db": "d"}},
            "b": [{"$ref": "c", "$id": {"x": {"$ref": "e", "$id": [n]}}, "z": {"$ref": "f", "$id": "g"}}],
            "c": {"d": {"$ref": n, "$id": n}, "e": {"$ref": "c"}, "f": {"$id": n}, "g": {"$oid": "0" * 24}},
        }
        for n in (0, 1)
    ],
    "references to no database": [{"id": 0, "a": {"b": [{"$ref": "c", "$id": 1, "$db": None}]}}],
    "changing fields": [{"id": n, **{f"f{n * 7 + m}": m for m in range(7)}} for n in range(30)],
    "changing types": [
        {"id": n, "a": ([n], n, n / 3, str(n), {"b": [n]}, None, True)[n % 7], "c": {"d": (n, {"e": n})[n % 2]}}
        for n in range(42)
    ],
}
"""Name of a kind -> its documents. The key field is `id`, which is an int in all kinds but 'text keys'."""

BIG_INTEGERS, DUPLICATE_NAMES, ORDER = "integers over 64 bits", "duplicate names", "order of fields"
TEXT_KINDS: dict[str, bytes] = {
    BIG_INTEGERS: b'{"id":0,"a":9223372036854775808}\n{"id":1,"a":1180591620717411303425}\n'
    b'{"id":2,"a":-9223372036854775809}\n',
    DUPLICATE_NAMES: b'{"id":0,"a":1,"b":{"c":1,"d":0,"c":2},"a":2}\n{"id":1,"a":3,"b":{"c":3,"d":0,"c":4},"a":4}\n',
    ORDER: b'{"id":0,"zz":1,"y":2,"a":{"d":1,"bb":2,"c":3}}\n{"zz":1,"id":1,"a":{"c":1,"bb":2,"d":3},"y":2}\n',
}
"""Name of a kind -> its documents as JSON Lines. The key field is `id`."""
