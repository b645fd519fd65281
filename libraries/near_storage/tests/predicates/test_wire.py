"""Filters and queries as JSON: any content survives the round trip; hostile bytes raise only RequestError."""

import json
import math
import random
from decimal import Decimal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libraries.filters import limits
from libraries.filters.binding import bind
from libraries.filters.expressions import Translated
from libraries.filters.tests.random_filters import predicate
from libraries.filters.tests.random_tables import TYPES, table, value
from libraries.filters.tree import And, Comparison, Constant, In, IsNull, Known, Literal, Not, Predicate, Prefix
from libraries.filters.values import literal
from libraries.near_storage.errors import RequestError
from libraries.near_storage.predicates import wire
from libraries.near_storage.query import Aggregate, Query

QUERY = Query(
    table="t 1",
    columns=("a", "b.c"),
    where=And((Comparison("<", "a", literal(1.5)), Not(In("b.c", (literal("x"), literal(None)))))),
    aggregates=(Aggregate("count", None, "n"), Aggregate("sum", "d", "sum(d)")),
    group_by=("a", "b.c"),
    limit=5,
    order=("n", "a", "b.c", "sum(d)"),
)


@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.randoms())
def test_filters_come_back_the_same(rng: random.Random) -> None:
    data = table(rng, rng.choices(TYPES, k=3), 5)
    sent = predicate(rng, data)
    for each in (sent, bind(sent, data.schema)):
        back = wire.decode(wire.encode(each))
        assert back == each or repr(back) == repr(each)


@pytest.mark.parametrize("type", [type for type in TYPES if not pa.types.is_dictionary(type)], ids=str)
def test_literals_of_all_types_come_back_the_same(type: pa.DataType) -> None:
    rng = random.Random(25)
    literals = [Literal(None, type)]
    if not pa.types.is_null(type):
        literals += [Literal(value(type, rng), type) for _ in range(40)]
    for sent in literals:
        back = wire.decode(wire.encode(Comparison("==", "x", sent)))
        assert back == Comparison("==", "x", sent) or repr(back) == repr(Comparison("==", "x", sent))


@pytest.mark.parametrize(
    "number", [math.nan, math.inf, -math.inf, -0.0, 0.1, 5e-324, 1.7976931348623157e308, 1e22, 1e-7]
)
def test_floats_come_back_to_the_last_bit(number: float) -> None:
    assert repr(wire.decode(wire.encode(Comparison("<", "x", literal(number))))) == repr(
        Comparison("<", "x", literal(number))
    )


def test_queries_come_back_the_same() -> None:
    for sent in (QUERY, Query("t"), Query("t", columns=(), limit=0)):
        assert wire.decode_query(wire.encode_query(sent)) == sent


def nested(levels: int) -> Predicate:
    found: Predicate = IsNull("x")
    for _ in range(levels - 1):
        found = Not(found)
    return found


def test_the_limits_hold_at_both_ends() -> None:
    full = And((IsNull("x"),) * (limits.MOST_NODES - 1))
    listed = In("x", (literal(2**63 - 1),) * limits.MOST_LITERALS)
    long = Prefix("x", "ä" * (limits.MOST_LITERAL_BYTES // 2))
    named = IsNull("n" * limits.MOST_NAME_BYTES)
    for allowed in (nested(limits.MOST_DEPTH), full, listed, long, named):
        assert wire.decode(wire.encode(allowed)) == allowed
    too_much = {
        "levels": (nested(limits.MOST_DEPTH + 1), nested(100_000)),
        "conditions": (And(full.parts * 2), And((full, full))),
        "literals": (In("x", listed.literals * 2), And((listed, listed))),
        "bytes": (
            Prefix("x", long.text + "ä"),
            Comparison("==", "x", literal(b"x" * (limits.MOST_LITERAL_BYTES + 1))),
            IsNull("n" * (limits.MOST_NAME_BYTES + 1)),
            And((Comparison("==", "x", literal("x" * limits.MOST_LITERAL_BYTES)),) * 20),
        ),
    }
    for words, refused in too_much.items():
        for each in refused:
            with pytest.raises(RequestError, match=words):
                wire.encode(each)


def plain(tree: Predicate) -> dict[str, object]:
    """Return the JSON of a tree that breaks limits, as a hostile client would write it."""
    match tree:
        case Not(part):
            return {"op": "not", "part": plain(part)}
        case And(parts):
            return {"op": "and", "parts": [plain(part) for part in parts]}
        case In(column, literals):
            entries = [{"type": "int64", "value": str(each.value)} for each in literals]
            return {"op": "in", "column": column, "literals": entries}
        case Prefix(column, text):
            return {"op": "prefix", "column": column, "text": text}
    return {"op": "null", "column": tree.column}  # type: ignore[union-attr]


def message(content: object) -> bytes:
    return json.dumps({"version": 1, "filter": content}).encode()


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (nested(limits.MOST_DEPTH + 1), "levels"),
        (nested(450), "levels"),
        (And((IsNull("x"),) * limits.MOST_NODES), "conditions"),
        (And((And((IsNull("x"),) * 3_000), And((IsNull("x"),) * 3_000))), "conditions"),
        (In("x", (literal(1),) * (limits.MOST_LITERALS + 1)), "literals"),
        (And((In("x", (literal(1),) * 6_000),) * 2), "literals"),
        (Prefix("x", "x" * (limits.MOST_LITERAL_BYTES + 1)), "bytes"),
        (IsNull("ä" * (limits.MOST_NAME_BYTES // 2 + 1)), "bytes"),
    ],
)
def test_a_server_trusts_no_client_with_the_limits(tree: Predicate, words: str) -> None:
    with pytest.raises(RequestError, match=words):
        wire.decode(message(plain(tree)))


LITERALS = [
    ("int8", "128"),
    ("int8", 5),
    ("int8", "5.0"),
    ("int8", "٥"),
    ("int64", "9" * 5_000),
    ("int64", " 5"),
    ("uint8", "-1"),
    ("float32", "0.1"),
    ("float64", 0.5),
    ("float64", "infinity"),
    ("float64", "1_0"),
    ("float64", "0x1p3"),
    ("bool", "true"),
    ("bool", 1),
    ("string", 5),
    ("binary", "ä"),
    ("binary", "YQ"),
    ("binary", "Y!Q=="),
    ("fixed_size_binary[2]", "YQ=="),
    ("fixed_size_binary[99999]", "YQ=="),
    ("decimal128(5, 2)", "1.234"),
    ("decimal128(5, 2)", "1000"),
    ("decimal128(5, 2)", "1e2"),
    ("decimal128(39, 2)", "1"),
    ("decimal32(10, 2)", "1"),
    ("decimal128(0, 0)", "0"),
    ("date32", "2147483648"),
    ("timestamp[us, a\nb]", "5"),
    ("timestamp[us, ]", "5"),
    ("timestamp[fs]", "5"),
    ("list<int64>", "5"),
    ("dictionary", "5"),
    ("int65", "5"),
    (5, "5"),
    (None, "5"),
    ("null", "5"),
]


@pytest.mark.parametrize(("type", "value"), LITERALS, ids=range(len(LITERALS)))
def test_a_literal_is_a_value_of_its_type(type: object, value: object) -> None:
    content = {"op": "compare", "operator": "<", "column": "x", "literal": {"type": type, "value": value}}
    with pytest.raises(RequestError):
        wire.decode(message(content))


MALFORMED = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"{}",
    b'{"version":1}',
    b'{"version":2,"filter":{"op":"constant","value":true}}',
    b'{"version":"1","filter":{"op":"constant","value":true}}',
    b'{"version":1,"filter":{"op":"constant","value":1}}',
    b'{"version":1,"filter":{"op":"constant","value":true},"more":1}',
    b'{"version":1,"filter":{"op":"constant"}}',
    b'{"version":1,"filter":{"op":["and"],"parts":[]}}',
    b'{"version":1,"filter":{"op":"and","parts":{}}}',
    b'{"version":1,"filter":{"op":"and","parts":[null]}}',
    b'{"version":1,"filter":{"op":"null","column":5}}',
    b'{"version":1,"filter":{"op":"null","column":"\\ud800"}}',
    b'{"version":1,"filter":{"op":"prefix","column":"x","text":null}}',
    b'{"version":1,"filter":{"op":"known","column":"x","value":null}}',
    b'{"version":1,"filter":{"op":"compare","operator":"=","column":"x","literal":{"type":"int8","value":"1"}}}',
    b'{"version":1,"filter":{"op":"compare","operator":[],"column":"x","literal":{"type":"int8","value":"1"}}}',
    b'{"version":1,"filter":{"op":"compare","operator":"<","column":"x","literal":5}}',
    b'{"version":1,"filter":{"op":"in","column":"x","literals":"abc"}}',
    b'{"version":NaN,"filter":1}',
    b'\xff{"version":1}',
    b"[" * 100_000,
    b'{"version":1,"filter":' + b'{"op":"not","part":' * 30_000,
    b"1" * 10_000,
    b" " * (wire.MOST_BYTES + 1),
]


@pytest.mark.parametrize("sent", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_messages_are_refused(sent: bytes) -> None:
    for decode in (wire.decode, wire.decode_query):
        with pytest.raises(RequestError):
            decode(sent)


def test_long_messages_are_not_even_read() -> None:
    whole = wire.encode_query(QUERY)
    assert wire.decode_query(whole.ljust(wire.MOST_BYTES)) == QUERY
    with pytest.raises(RequestError, match="at most 1048576 are allowed"):
        wire.decode_query(whole.ljust(wire.MOST_BYTES + 1))


@pytest.mark.parametrize(
    "changed",
    [
        {"table": ""},
        {"table": 5},
        {"table": "t" * 2_000},
        {"columns": "abc"},
        {"columns": [5]},
        {"columns": ["a"] * (wire.MOST_COLUMNS + 1)},
        {"group_by": None},
        {"limit": -1},
        {"limit": True},
        {"limit": 1.0},
        {"limit": 2**63},
        {"order": [None]},
        {"aggregates": [{"function": "median", "column": "a", "name": "b"}]},
        {"aggregates": [{"function": "min", "column": 5, "name": "b"}]},
        {"aggregates": [{"function": "min", "column": "a", "name": None}]},
        {"aggregates": [{"function": "min", "column": "a"}]},
        {"where": {"op": "nothing"}},
        {"version": 2},
    ],
    ids=str,
)
def test_malformed_queries_are_refused(changed: dict[str, object]) -> None:
    whole = msgspec.json.decode(wire.encode_query(QUERY))
    assert wire.decode_query(msgspec.json.encode(whole)) == QUERY
    with pytest.raises(RequestError):
        wire.decode_query(msgspec.json.encode(whole | changed))


def mutated(sent: bytes, rng: random.Random) -> bytes:
    """Flip, cut, double or replace bytes, with characters that JSON uses."""
    changed = bytearray(sent)
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(changed) + 1)
        end = min(start + rng.choice((0, 1, 1, 5, 30)), len(changed))
        pieces = (
            b"",
            bytes([rng.randrange(256)]),
            bytes(changed[start:end]) * 2,
            b'"',
            b"[",
            b"}",
            b"null",
            b"1e999",
            b"-",
            b"\\ud800",
        )
        changed[start:end] = rng.choice(pieces)
    return bytes(changed)


def assert_bounded(mutations: int, seed: int) -> None:
    """Check that mutated messages raise RequestError, or decode to what can be encoded again and bound or refused."""
    rng = random.Random(seed)
    data = table(rng, TYPES, 3)
    for _ in range(mutations):
        sent = wire.encode_query(QUERY) if rng.random() < 0.2 else wire.encode(predicate(rng, data))
        sent = mutated(sent, rng)
        for decode, encode in ((wire.decode, wire.encode), (wire.decode_query, wire.encode_query)):
            try:
                decoded = decode(sent)
                assert encode(decode(encode(decoded))) == encode(decoded)
                if not isinstance(decoded, Query):
                    bind(decoded, data.schema)
            except RequestError:
                continue


def test_mutated_messages_end_in_a_tree_or_an_error() -> None:
    assert_bounded(1_500, seed=26)


def test_decimals_keep_their_digits() -> None:
    sent = Comparison("==", "x", Literal(Decimal("1E+2"), pa.decimal128(5, -2)))
    assert wire.decode(wire.encode(sent)) == sent
    assert wire.decode(wire.encode(Known("x", True))) == Known("x", True)
    assert wire.decode(wire.encode(Constant(None))) == Constant(None)


def test_what_is_too_long_for_a_message_is_left_to_the_client() -> None:
    addresses = [f"https://example.org/{number:0100}" for number in range(9_000)]
    schema = pa.schema({"text": pa.string()})
    assert wire.translated(pc.field("text").isin(addresses[:1_000]), schema).complete
    assert wire.translated(pc.field("text").isin(addresses), schema) == Translated(None, False)
