"""Rows and JSON Lines: allowed values are preserved, all others are refused with document and path."""

import codecs
import json
import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libraries.document_queries.paths import ITEMS, Path, parse
from libraries.document_queries.values import MAX_DEPTH
from libraries.document_store import json_text, kernels, messagepack
from libraries.document_store.errors import DocumentError
from libraries.document_store.tests.random_documents import NAMES, documents
from libraries.document_store.values import ValueKind, same

BUILT = kernels.NATIVE
both = pytest.mark.parametrize("way", ["both"], indirect=True)
"""For random documents, which take longer to make than to test: a test calls `ways()` itself."""


@pytest.fixture(params=[False, True], ids=["python", "native"], autouse=True)
def way(request, monkeypatch):
    if request.param is True and not BUILT:
        pytest.skip("the kernels are not built: python -m libraries.build")
    monkeypatch.setattr(kernels, "NATIVE", BUILT if request.param == "both" else request.param)


def ways():
    """Set one way after the other; the fixture resets it."""
    for native in (False, True) if BUILT else (False,):
        kernels.NATIVE = native
        yield


@dataclass
class Point:
    x: int


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


@both
@settings(max_examples=50, deadline=None)
@given(documents())
def test_rows_are_documents(found):
    for _ in ways():
        rows = messagepack.encode_all(found)
        assert same([messagepack.decode(row) for row in rows], found)
        assert messagepack.keys_of(rows, "id") == list(range(len(found)))


@pytest.mark.parametrize(
    ("document", "path", "words"),
    [
        ({"a": {"b": [1, 2**63]}}, r"a.b[*]", "more than 64 bits"),
        ({"a": 2**70}, "a", "more than 64 bits"),
        ({"a": -(2**63) - 1}, "a", "more than 64 bits"),
        ({"x.y": {1: 2}}, r"x\.y", "names must be texts"),
        ({"a": ["\ud800"]}, "a[*]", "UTF-8"),
        ({"a": nested(MAX_DEPTH)}, "a" + "[*]" * MAX_DEPTH, "64 steps"),
        ({"a": [object()]}, "a[*]", "cannot hold a object"),
        ({"a": [{"t": datetime(2020, 1, 1, tzinfo=UTC)}]}, "a[*].t", "with a time zone; store it as text"),
        ({"a": [{"t": datetime(9020, 1, 1, 0, 0, 0, 5, tzinfo=UTC)}]}, "a[*].t", "with a time zone; store it as text"),
        ({"a": 1j}, "a", "cannot hold a complex"),
        ({"u": UUID(int=7), "a": [{"b": np.str_("x")}]}, "a[*].b", "cannot hold a str_"),
        ({"u": Decimal(1), "a": {"b": np.float64(1)}}, "a.b", "cannot hold a float64"),
    ],
)
def test_documents_that_are_refused(document, path, words):
    with pytest.raises(DocumentError, match=words) as raised:
        messagepack.encode_all([{}, document])
    assert (raised.value.document, raised.value.path) == (1, path)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (b"\x82\xa1a\x01\xa1a\x02", "twice"),
        (b"\x81\xa1a\x82\xa1b\x01\xa1b\x02", "twice"),
        (b"\xde\x00\x14" + b"".join(b"\xa2%02d\x01" % n for n in [*range(19), 3]), "twice"),
        (b"\x81\xa1\xff\x01", "UTF-8"),
        (b"\x81\xa1a\xa2\xc0\x80", "UTF-8"),
        (b"\x81\xa1a\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "more than 64 bits"),
        (b"\x81\xa1a\xd6\xff\x00\x00\x00\x00", "with a time zone"),
        (b"\x81\xa1a\xd6\x07\x00\x00\x00\x00", "0xd6"),
        (b"\x81\xa1a\xc1", "0xc1"),
        (b"\x81\x01\x01", "names must be texts"),
        (b"\x81\xa1a\x01\x01", "followed by 1 bytes"),
        (b"\x81\xa1a\xdd\xff\xff\xff\xff", "truncated"),
        (b"\x81\xa1a\xdb\xff\xff\xff\xff", "truncated"),
        (b"\x91\x01", "object"),
        (b"", "truncated"),
    ],
)
def test_rows_that_are_refused(row, words):
    with pytest.raises(DocumentError, match=words) as raised:
        messagepack.check_rows([b"\x80", row])
    assert raised.value.document == 1


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ((1, [math.nan, (b"x",)]), [1, [math.nan, [b"x"]]]),
        ({7}, [7]),
        (frozenset("a"), ["a"]),
        (date(2020, 1, 2), "2020-01-02"),
        (time(1, 2), "01:02:00"),
        (datetime(2020, 1, 2), "2020-01-02T00:00:00"),
        (timedelta(seconds=1), "PT1S"),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (Decimal("1.50"), "1.50"),
        (ValueKind.TEXT, 4),
        (Point(1), {"x": 1}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_types_are_stored_as_what_the_docstring_says(given, stored):
    (row,) = messagepack.encode_all([{"a": [given]}])
    assert same(messagepack.decode(row), {"a": [stored]})


def test_rows_that_others_wrote():
    """Longer headers than necessary, and narrow doubles."""
    row = b"\xdf\x00\x00\x00\x02\xd9\x01a\xca\x3f\x80\x00\x00\xdb\x00\x00\x00\x01b\xd3\x00\x00\x00\x00\x00\x00\x00\x05"
    messagepack.check(row)
    assert same(messagepack.decode(row), {"a": 1.0, "b": 5})


def test_keys_are_there_and_of_one_kind():
    rows = [msgspec.msgpack.encode(document) for document in ({"k": 1}, {"k": "x"}, {"a": 1}, {"k": True}, {"k": 1.0})]
    assert messagepack.keys_of(rows[:1], "k") == [1]
    for wrong in (rows[:2], rows[:3], rows[3:4], rows[4:]):
        with pytest.raises(DocumentError, match="key"):
            messagepack.keys_of(wrong, "k")
    odd = "the \"key's"
    texts = [msgspec.msgpack.encode({"a": [{"k": 1}], odd: text, "z": 1}) for text in ("", "é", "x" * 300)]
    assert messagepack.keys_of(texts, odd) == ["", "é", "x" * 300]
    assert messagepack.keys_of([], "k") == []
    messagepack.check_rows(rows[:1], "k", ValueKind.INTEGER)
    with pytest.raises(DocumentError, match="kind integer, the store's keys are text"):
        messagepack.check_rows(rows[:1], "k", ValueKind.TEXT)


# --- JSON Lines ------------------------------------------------------------------------------------------


def in_json(value):
    if isinstance(value, dict):
        return all(map(in_json, value.values()))
    if isinstance(value, list):
        return all(map(in_json, value))
    return not isinstance(value, bytes) and (not isinstance(value, float) or math.isfinite(value))


@both
@settings(max_examples=80, deadline=None)
@given(documents(), st.booleans(), st.sampled_from([None, 1]))
def test_json_comes_through(found, escaped, indent):
    found = [document for document in found if in_json(document)]
    lines = [json.dumps(document, ensure_ascii=escaped, indent=indent).replace("\n", "\t") for document in found]
    for _ in ways():
        rows = json_text.rows_of("\n\r\n".join(lines).encode())
        assert same([messagepack.decode(row) for row in rows], found)
        assert rows == [msgspec.msgpack.encode(document) for document in found]


@both
@settings(max_examples=80, deadline=None)
@given(st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**63), 2**63 - 1)))
def test_numbers_are_exact(number):
    for _ in ways():
        (row,) = json_text.rows_of(b'{"a": %s}' % repr(number).encode())
        assert same(messagepack.decode(row), {"a": number})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("123456789012345678901234567890.0", 123456789012345678901234567890.0),
        ("0.1e1", 1.0), ("1E+2", 100.0), ("5e-324", 5e-324), ("1.7976931348623157e308", 1.7976931348623157e308),
        ("9007199254740993.0", 9007199254740992.0), ("-0", 0), ("-0.0", -0.0), ("1e-400", 0.0),
        ("0." + "0" * 400 + "1", 0.0), ("8.5" + "0" * 900, 8.5),
        (r'"\u00e9\ud83d\ude00\n\/"', "é😀\n/"), (r'"\\\""', '\\"'), ('"\u2028"', "\u2028"),
    ],
)  # fmt: skip
def test_spellings_of_values(text, value):
    (row,) = json_text.rows_of(f'  {{"a"\t:{text} }}\r'.encode())
    assert same(messagepack.decode(row), {"a": value})


@pytest.mark.parametrize(
    ("line", "path", "words"),
    [
        ('{"a": {"b": 1, "b": 2}}', "a.b", "twice"),
        ('{"a": [NaN]}', "a[*]", "NaN"),
        ('{"a": -Infinity}', "a", "Infinity"),
        ('{"a": 1e999}', "a", "range of a double"),
        ('{"a": 9223372036854775808}', "a", "more than 64 bits"),
        ('{"a": ' + "9" * 5000 + "}", "a", "more than 64 bits"),
        (r'{"a": "\ud800"}', "a", "UTF-8"),
        (r'{"a": "\udc00\ud800"}', "a", "UTF-8"),
        ('{"a": ' + "[" * 64 + "]" * 64 + "}", "", ""),
        ('{"a": ' + "[" * 65 + "]" * 65 + "}", "a" + "[*]" * 64, "64 steps"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "", "64 steps"),
        ('{"a": 01}', "", "not valid JSON"),
        ('{"a": 1.}', "", "not valid JSON"),
        ('{"a": .5}', "", "not valid JSON"),
        ('{"a": 1,}', "", "not valid JSON"),
        ('{"a": "\t"}', "", "not valid JSON"),
        (r'{"a": "\x"}', "", "not valid JSON"),
        (r'{"a": "\u12"}', "", "not valid JSON"),
        ('{"a": 1} 2', "", "not valid JSON"),
        ('{"a": tru}', "", "not valid JSON"),
        ('{"a": "', "", "not valid JSON"),
        ('{"a"', "", "not valid JSON"),
        ("[1]", "", "not an object"),
    ],
)
def test_json_that_is_refused(line, path, words):
    lines = b'{"id": 1}\n\n' + line.encode() + b'\n{"id": 2}'
    if not words:
        assert len(json_text.rows_of(lines)) == 3
        return
    with pytest.raises(DocumentError, match=words) as raised:
        json_text.rows_of(lines)
    assert (raised.value.document, raised.value.path) == (1, path)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (b'{"a": "\xff"}', "a"),
        (b'{"a": {"b": ["x", {"c": "\xe6\x97"}]}, "d": 1}', "a.b[*].c"),
        (b'{"a": {"\xff": 1}}', "a"),
        # The field of these bytes cannot be determined.
        (b'{"a": 1, \xff"b": 2}', ""),
        (b'["\xff"]', ""),
    ],
)
def test_json_that_is_not_utf8_is_named_by_its_document_and_path(line, path):
    with pytest.raises(DocumentError, match="UTF-8") as raised:
        json_text.rows_of(b'{"id": 1}\n' + line + b'\n{"id": 2}')
    assert (raised.value.document, raised.value.path or "") == (1, path)


def test_a_byte_order_mark_may_stand_before_the_first_line_alone():
    mark = codecs.BOM_UTF8
    assert json_text.rows_of(mark + b'{"a": 1}\n{"a": 2}') == json_text.rows_of(b'{"a": 1}\n{"a": 2}')
    assert json_text.rows_of(mark) == []
    with pytest.raises(DocumentError, match="not valid JSON") as raised:
        json_text.rows_of(b'{"a": 1}\n' + mark + b'{"a": 2}')
    assert raised.value.document == 1


# --- values and paths ------------------------------------------------------------------------------------


@given(st.lists(st.one_of(st.just(ITEMS), st.sampled_from([*NAMES, "a\\", '""', "[*]", "."])), max_size=5))
def test_paths_are_spelled_and_read(steps):
    assert parse(str(Path(steps))) == Path(steps)


def test_what_is_the_same():
    assert same(float("nan"), float("nan"))
    assert not any(same(*pair) for pair in ((1, 1.0), (1, True), (0.0, -0.0), ({}, []), ({"a": None}, {})))


def test_numbers_of_any_length_are_read():
    long = b"0." + b"1" * 5_000
    found = [msgspec.msgpack.decode(row) for row in json_text.rows_of(b'{"a": 1}\n\n{"a": %s}\n{"a": 2}\n' % long)]
    assert found == [{"a": 1}, {"a": float(long)}, {"a": 2}]
    with pytest.raises(DocumentError, match="document 2"):
        json_text.rows_of(b'{"a": 1}\n{"a": %s}\n{"a": }' % long)
