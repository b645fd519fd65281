"""Codes keep the order of values, so that a leaf is skipped only if nothing in it can match."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from libraries.document_store.layouts.prefixes import (
    HIGHEST,
    LOWEST,
    NO_VALUES,
    code_of,
    codes_of_numbers,
    codes_of_texts,
    may_hold,
)
from libraries.document_store.shredding import Texts
from libraries.document_store.values import ValueKind

integers = st.integers(min_value=-(2**63), max_value=2**63 - 1)
doubles = st.floats(allow_nan=False)
VALUES = {
    ValueKind.INTEGER: integers,
    ValueKind.DOUBLE: doubles,
    ValueKind.TEXT: st.text(max_size=12),
    ValueKind.BINARY: st.binary(max_size=12),
    ValueKind.BOOLEAN: st.booleans(),
}


def codes(kind, values):
    if kind is ValueKind.TEXT:
        values = [value.encode() for value in values]
    if kind in (ValueKind.TEXT, ValueKind.BINARY):
        texts = Texts.of(values)
        return codes_of_texts(texts.offsets, texts.data)
    dtype = {ValueKind.INTEGER: np.int64, ValueKind.DOUBLE: np.float64, ValueKind.BOOLEAN: np.bool_}[kind]
    return codes_of_numbers(kind, np.array(values, dtype))


@pytest.mark.parametrize("kind", VALUES)
def test_codes_never_prune_what_matches(kind):
    @given(st.lists(VALUES[kind], max_size=6), VALUES[kind], VALUES[kind])
    def check(values, low, high):
        found = codes(kind, values)
        assert found == (
            (min(code_of(kind, v) for v in values), max(code_of(kind, v) for v in values)) if values else NO_VALUES
        )
        for start, end in ((low, high), (low, None), (None, high)):
            matches = any((start is None or v >= start) and (end is None or v <= end) for v in values)
            assert may_hold(found, kind, start, end) or not matches

    check()


@given(doubles, doubles)
@example(-0.0, 0.0)
@example(0.0, -0.0)
@example(-math.inf, -1.7976931348623157e308)
def test_doubles_prune_whatever_they_can(first, second):
    column = codes(ValueKind.DOUBLE, [first])
    assert may_hold(column, ValueKind.DOUBLE, second, None) == (first >= second)
    assert may_hold(column, ValueKind.DOUBLE, None, second) == (first <= second)


@given(integers, doubles)
@example(2**53 + 1, float(2**53))
@example(2**63 - 1, float(2**63))
@example(-5, -5.5)
def test_integers_and_doubles_bound_each_other(integer, double):
    assert may_hold(codes(ValueKind.INTEGER, [integer]), ValueKind.INTEGER, double, None) or not integer >= double
    assert may_hold(codes(ValueKind.INTEGER, [integer]), ValueKind.INTEGER, None, double) or not integer <= double
    assert may_hold(codes(ValueKind.DOUBLE, [double]), ValueKind.DOUBLE, integer, None) or not double >= integer
    assert may_hold(codes(ValueKind.DOUBLE, [double]), ValueKind.DOUBLE, None, integer) or not double <= integer


def test_integers_and_doubles_prune_each_other():
    assert not may_hold(codes(ValueKind.INTEGER, [3, 5]), ValueKind.INTEGER, 5.5, None)
    assert not may_hold(codes(ValueKind.DOUBLE, [3.5]), ValueKind.DOUBLE, 4, None)


def test_a_nan_is_no_bound_and_hides_none():
    nan = math.nan
    assert codes(ValueKind.DOUBLE, [nan, 1.0, 2.0, -nan]) == codes(ValueKind.DOUBLE, [1.0, 2.0])
    assert codes(ValueKind.DOUBLE, [nan]) == NO_VALUES
    assert may_hold(codes(ValueKind.DOUBLE, [1.0]), ValueKind.DOUBLE, nan, 0.5)
    assert may_hold(codes(ValueKind.DOUBLE, [1.0]), ValueKind.DOUBLE, 5.0, nan)


def test_texts_of_one_prefix_are_not_told_apart():
    column = codes(ValueKind.TEXT, ["abcdefgh-m"])
    assert may_hold(column, ValueKind.TEXT, "abcdefgh-z", None)
    assert may_hold(column, ValueKind.TEXT, None, "abcdefgh-a")
    assert not may_hold(column, ValueKind.TEXT, "abcdefgi", None)
    assert not may_hold(column, ValueKind.TEXT, None, "abcdefg")


def test_bounds_of_another_kind_prove_nothing():
    for kind, bound in (
        (ValueKind.INTEGER, "5"),
        (ValueKind.INTEGER, True),
        (ValueKind.TEXT, b"a"),
        (ValueKind.BOOLEAN, 7),
        (ValueKind.NULL, 0),
    ):
        assert may_hold((LOWEST, LOWEST), kind, bound, bound)
        assert may_hold((HIGHEST, HIGHEST), kind, bound, bound)
