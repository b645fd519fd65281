"""Definition levels as in AsterixDB's tests: facts from apache/asterixdb 66c074e (2023, Apache 2.0),
asterix-column/src/test/resources/result/transformer, whose delimiters are those of the paper.

Not included: nested arrays, whose delimiters AsterixDB does not merge, and nulls of unions, which it puts in one
branch.
"""

import numpy as np
import pytest

from libraries.document_store import messagepack
from libraries.document_store.schema import Schema
from libraries.document_store.shredding import shred
from libraries.document_store.values import ValueKind

NULLS = {"a.b": [(4, 2), (5, 1), (2, 1)], "a.c": [(4, 2), (2, 1), (5, 1)]}
FACTS = {
    "001-arrayObject": (
        [{"a": [{"b": 1}, {"b": 2}, {"c": 3}]}],
        {"a[*].b": [(3, 2), (2, 1), (0, 1)], "a[*].c": [(2, 2), (3, 1), (0, 1)]},
    ),
    "100-addFields": (
        [{"a": 1}, {"a": 1, "b": 2}, {"a": 1, "c": 3}, {"a": 1, "b": 2, "c": 3}],
        {"a": [(1, 4)], "b": [(0, 1), (1, 1), (0, 1), (1, 1)], "c": [(0, 2), (1, 2)]},
    ),
    "101-nestedAddFields": (
        [
            {"a": {"b": {"c": 1}}},
            {"a": {"b": {"c": 1, "d": 2}, "x": {"y": 2}}},
            {"a": {"b": {"c": 1}, "x": {"z": 2}}},
            {"a": {"b": {"c": 1}}},
        ],
        {
            "a.b.c": [(3, 4)],
            "a.b.d": [(2, 1), (3, 1), (2, 2)],
            "a.x.y": [(1, 1), (3, 1), (2, 1), (1, 1)],
            "a.x.z": [(1, 1), (2, 1), (3, 1), (1, 1)],
        },
    ),
    "200-unionPrimitive": (
        [{"a": 1.25}, {"a": 1}, {"a": "test"}, {"a": 2.25}],
        {
            "a INTEGER": [(0, 1), (1, 1), (0, 2)],
            "a DOUBLE": [(1, 1), (0, 2), (1, 1)],
            "a TEXT": [(0, 2), (1, 1), (0, 1)],
        },
    ),
    "201-unionPrimitiveObject": ([{"a": 1}, {"a": {"b": 1}}], {"a": [(1, 1), (0, 1)], "a.b": [(0, 1), (2, 1)]}),
    "204-unionArrayPrimitiveItems": (
        [{"a": [1]}, {"a": ["1"]}, {"a": [False]}, {"a": [1.25]}, {"a": [1, "1", False, 1.25]}],
        {
            "a[*] INTEGER": [(2, 1), *[(0, 1), (1, 1)] * 3, (0, 1), (2, 1), (1, 3), (0, 1)],
            "a[*] DOUBLE": [*[(1, 1), (0, 1)] * 3, (2, 1), (0, 1), (1, 3), (2, 1), (0, 1)],
            "a[*] TEXT": [(1, 1), (0, 1), (2, 1), (0, 1), *[(1, 1), (0, 1)] * 2, (1, 1), (2, 1), (1, 2), (0, 1)],
            "a[*] BOOLEAN": [*[(1, 1), (0, 1)] * 2, (2, 1), (0, 1), (1, 1), (0, 1), (1, 2), (2, 1), (1, 1), (0, 1)],
        },
    ),
    "301-null-primitive": ([*[{"a": None}] * 3, {"a": 1}], {"a INTEGER": [(2, 3), (1, 1)]}),
    "310-null-object0": (
        [*[{"a": None}] * 2, {"a": {"b": 1, "c": 5}}, {"a": {"b": None, "c": None}}],
        {"a.b": [(4, 2), (2, 1), (5, 1)], "a.c": [(4, 2), (2, 1), (5, 1)]},
    ),
    "311-null-object1": (
        [*[{"a": None}] * 2, {"a": {"b": None, "c": 5}}, {"a": {"b": 1, "c": None}}],
        {"a.b INTEGER": NULLS["a.b"], "a.c": NULLS["a.c"]},
    ),
    "322-null-array2": (
        [{"a": None}, {"a": [None]}, {"a": [1]}, {"a": [3, None, 4]}],
        {"a[*] INTEGER": [(4, 1), (5, 1), (0, 1), (2, 1), (0, 1), (2, 1), (5, 1), (2, 1), (0, 1)]},
    ),
}


@pytest.mark.parametrize("name", FACTS)
def test_levels_are_asterixdbs(name):
    documents, wanted = FACTS[name]
    rows = messagepack.encode_all([{"id": number} | document for number, document in enumerate(documents)])
    columns = shred(rows, Schema.new("id", ValueKind.INTEGER)).columns
    for spelled, runs in wanted.items():
        path, _, kind = spelled.partition(" ")
        (levels,) = [
            column.levels
            for column in columns
            if str(column.leaf.path) == path and column.leaf.has_values and kind in ("", column.leaf.kind.name)
        ]
        assert levels.tolist() == np.repeat(*np.array(runs).T).tolist(), spelled
