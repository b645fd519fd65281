"""Decide from bounds, for all parts of a table at once, where a filter can be true, false or null.

A part is a row group of Parquet or a range of rows of F3. Each leaf of the filter gives three bits per part: whether
the leaf may be true, false or null for some row. A set bit proves nothing. A bit that is not set proves that there is
no such row. AND, OR and NOT combine the bits by Kleene's three-valued logic; NOT swaps true and false. Rules for a
leaf:

- Codes are compared non-strictly. `LiteralCodes` bounds the codes of values below and above a literal.
- A NaN makes `!=` true and every other comparison false, and bounds do not cover NaN. For `<`, `<=`, `==`, `>` and
  `>=`, bounds therefore always show whether the result may be *true*. They show whether it may be *false* only if there
  is no NaN.
- A comparison with a null value is null, so null rows do not affect the bits for true and false.
- For a part without rows, no bit is set.

If a column is missing, nested, named twice or compared with a literal of another type, all three bits are set.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from libraries.filters.codes import HIGHEST, LOWEST, CodeKind, LiteralCodes, literal_codes
from libraries.filters.tree import And, Comparison, Constant, In, IsNull, Known, Literal, Not, Or, Predicate, Prefix

Bits: TypeAlias = npt.NDArray[np.bool_]
Codes: TypeAlias = npt.NDArray[np.uint64]


HAS_NULLS, MAY_HOLD_NAN, EXACT = range(3)
"""Numbers of the bits that `Bounds.flag` returns for a chunk, which is the values of a column in one part."""


class BoundedColumn(Protocol):
    """A leaf column: its path in the schema, the kind of its values, and whether each row has one value or null."""

    @property
    def path(self) -> tuple[str, ...]:
        """The names on the path from the schema's root to the column."""

    @property
    def kind(self) -> CodeKind:
        """The kind of the column's values, which determines their codes."""

    @property
    def flat(self) -> bool:
        """Whether each row has one value or null."""


class Bounds(Protocol):
    """What is known of C columns in G parts of a table."""

    @property
    def columns(self) -> Sequence[BoundedColumn]:
        """The columns."""

    @property
    def codes(self) -> Codes:
        """The lowest and highest code of each chunk: uint64[2, C, G].

        The two codes bound all values that are neither null nor NaN. A chunk without such values has (HIGHEST, LOWEST).
        """

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """int64[G]: rows of each part."""

    def flag(self, which: int, column: int) -> Bits:
        """Return one bit (HAS_NULLS, MAY_HOLD_NAN or EXACT) of a column for each part: bool[G]. A chunk is EXACT if
        each of its two codes identifies a single value."""


@dataclass(frozen=True)
class GroupOutcomes:
    """For each part (bool[G] each), whether the filter may be true, false or null for some row."""

    may_be_true: Bits
    may_be_false: Bits
    may_be_null: Bits

    @property
    def certain(self) -> Bits:
        """The parts in which the filter is true for every row, so that rows need no filtering."""
        return self.may_be_true & ~self.may_be_false & ~self.may_be_null


def prune(bounds: Bounds, predicate: Predicate) -> GroupOutcomes:
    """Return for every part which results the filter may have. A part needs to be read only if the filter may be true
    there.

    Literals must have their column's Arrow type (`binding.bind`). A leaf with a literal of another type excludes no
    part.
    """
    verdict = _Pruner(bounds).verdict(predicate)
    rows = bounds.rows > 0
    return GroupOutcomes(verdict.may_be_true & rows, verdict.may_be_false & rows, verdict.may_be_null & rows)


class _Chunks:
    """The metadata of one column's chunks. `has_ordinary` is true where values that are neither null nor NaN may
    exist."""

    def __init__(self, bounds: Bounds, column: int) -> None:
        self.bounds = bounds
        self.column = column
        self.kind = bounds.columns[column].kind
        self.minimum: Codes = bounds.codes[0, column]
        self.maximum: Codes = bounds.codes[1, column]
        self.has_nulls = bounds.flag(HAS_NULLS, column)
        self.has_ordinary = self.minimum <= self.maximum

    def exact(self) -> Bits:
        return self.bounds.flag(EXACT, self.column)

    def with_nan(self, bits: Bits) -> Bits:
        """Return these bits, and set the bits of chunks that may hold NaN."""
        return bits | self.bounds.flag(MAY_HOLD_NAN, self.column) if self.kind.floating else bits

    def has_values(self) -> Bits:
        """Return for each chunk whether it may hold a value that is not null."""
        return self.with_nan(self.has_ordinary)


class _Pruner:
    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.all = np.ones(len(bounds.rows), np.bool_)
        self.none = np.zeros(len(bounds.rows), np.bool_)
        self.unknown = GroupOutcomes(self.all, self.all, self.all)
        self.looked_up: dict[str, _Chunks | None] = {}

    def verdict(self, predicate: Predicate) -> GroupOutcomes:
        match predicate:
            case And(parts):
                return self.conjunction([self.verdict(part) for part in parts])
            case Or(parts):
                return _negated(self.conjunction([_negated(self.verdict(part)) for part in parts]))
            case Not(part):
                return _negated(self.verdict(part))
            case Constant(value):
                return self.decided(value)
        chunks = self.chunks(predicate.column)
        if chunks is None:
            return self.unknown
        match predicate:
            case IsNull():
                return GroupOutcomes(chunks.has_nulls, chunks.has_values(), self.none)
            case Known(value=value):
                return self.known(chunks, value)
            case Prefix(text=text):
                return self.prefix(chunks, text)
            case In(literals=literals):
                return self.membership(chunks, literals)
            case Comparison(operator, _, literal):
                if literal.value is None:
                    return self.decided(None)
                if _is_nan(literal):
                    return self.known(chunks, operator == "!=")
                codes = literal_codes(chunks.kind, literal)
                return self.unknown if codes is None else self.comparison(chunks, operator, codes)

    def chunks(self, name: str) -> _Chunks | None:
        """Return the chunks of the flat column with this name, if there is exactly one."""
        if name not in self.looked_up:
            places = [place for place, column in enumerate(self.bounds.columns) if column.path[0] == name]
            known = len(places) == 1 and self.bounds.columns[places[0]].flat
            self.looked_up[name] = _Chunks(self.bounds, places[0]) if known else None
        return self.looked_up[name]

    def conjunction(self, parts: list[GroupOutcomes]) -> GroupOutcomes:
        """Apply Kleene's AND. The result is null only if no part is false and at least one part is null."""
        if not parts:
            return self.decided(True)
        return GroupOutcomes(
            _every(part.may_be_true for part in parts),
            _some(part.may_be_false for part in parts),
            _some(part.may_be_null for part in parts) & _every(part.may_be_true | part.may_be_null for part in parts),
        )

    def decided(self, value: bool | None) -> GroupOutcomes:
        return GroupOutcomes(*(self.all if value is choice else self.none for choice in (True, False, None)))

    def known(self, chunks: _Chunks, value: bool) -> GroupOutcomes:
        one = GroupOutcomes(chunks.has_values(), self.none, chunks.has_nulls)
        return one if value else _negated(one)

    def comparison(self, chunks: _Chunks, operator: str, codes: LiteralCodes) -> GroupOutcomes:
        low, high = chunks.minimum, chunks.maximum
        match operator:
            case "!=":
                return _negated(self.comparison(chunks, "==", codes))
            case "==":
                true = _at_most(low, codes.high) & _at_least(high, codes.low)
                false = _at_most(low, codes.below) | _above(chunks, codes)
            case "<":
                true, false = _at_most(low, codes.below), _at_least(high, codes.low)
            case "<=":
                true, false = _at_most(low, codes.high), _above(chunks, codes)
            case ">":
                true, false = _above(chunks, codes), _at_most(low, codes.high)
            case _:
                true, false = _at_least(high, codes.low), _at_most(low, codes.below)
        some = chunks.has_ordinary
        return GroupOutcomes(true & some, chunks.with_nan(false & some), chunks.has_nulls)

    def prefix(self, chunks: _Chunks, text: str) -> GroupOutcomes:
        if chunks.kind.name not in ("text", "binary", "fixed"):
            return self.unknown
        begin = text.encode()
        low = int.from_bytes(begin[:8].ljust(8, b"\0"), "big")
        high = int.from_bytes(begin[:8].ljust(8, b"\xff"), "big")
        some = chunks.has_ordinary
        true = some & _at_most(chunks.minimum, high) & _at_least(chunks.maximum, low)
        # A code shows whether its value has the prefix, unless the prefix exceeds 8 bytes or ends in the padding byte.
        if len(begin) > 8 or begin.endswith(b"\0"):
            return GroupOutcomes(true, some, chunks.has_nulls)
        false = some & (_at_most(chunks.minimum, low - 1) | _at_least(chunks.maximum, high + 1))
        return GroupOutcomes(true, false, chunks.has_nulls)

    def membership(self, chunks: _Chunks, literals: tuple[Literal, ...]) -> GroupOutcomes:
        """Evaluate IN. If no literal equals the value, the result is false, or null if one of the literals is null."""
        given = [item for item in literals if item.value is not None and not _is_nan(item)]
        codes = []
        for item in given:
            found = literal_codes(chunks.kind, item)
            if found is None:
                return self.unknown
            if found.low <= found.high:
                codes.append(found)
        if not codes:
            equal = self.known(chunks, False)
        elif len(codes) == 1:
            equal = self.comparison(chunks, "==", codes[0])
        else:
            equal = self.equal_to_one(chunks, sorted(codes))
        if any(item.value is None for item in literals):
            return GroupOutcomes(equal.may_be_true, self.none, equal.may_be_false | equal.may_be_null)
        return equal

    def equal_to_one(self, chunks: _Chunks, codes: list[LiteralCodes]) -> GroupOutcomes:
        """Return whether values may equal one of several literals, whose codes are given in ascending order.

        In each chunk only one literal matters: the first literal whose code is at least the chunk's minimum. If the
        chunk's maximum is below this literal, no literal is within the bounds. The result may be false unless all
        values equal this literal.
        """
        ends = np.array([_limited(code) for code in codes], np.uint64)
        first = np.searchsorted(ends[:, 2], chunks.minimum)
        beyond = first == len(codes)
        first[beyond] = 0
        below, low, _, above, above_if_exact = ends[first].T
        less = (chunks.minimum <= below) & np.array([code.below >= LOWEST for code in codes])[first]
        greater = (chunks.maximum >= above_if_exact) | ((chunks.maximum >= above) & ~chunks.exact())
        greater &= np.array([code.above <= HIGHEST for code in codes])[first]
        some = chunks.has_ordinary
        true = some & ~beyond & (chunks.maximum >= low)
        return GroupOutcomes(true, chunks.with_nan(some & (less | greater | beyond)), chunks.has_nulls)


def _negated(verdict: GroupOutcomes) -> GroupOutcomes:
    return GroupOutcomes(verdict.may_be_false, verdict.may_be_true, verdict.may_be_null)


def _every(bits: Iterable[Bits]) -> Bits:
    return functools.reduce(np.logical_and, bits)


def _some(bits: Iterable[Bits]) -> Bits:
    return functools.reduce(np.logical_or, bits)


def _above(chunks: _Chunks, codes: LiteralCodes) -> Bits:
    """Return for each chunk whether a value may be greater than the literal."""
    greater = _at_least(chunks.maximum, codes.above)
    if codes.above_if_exact == codes.above:
        return greater
    return _at_least(chunks.maximum, codes.above_if_exact) | (greater & ~chunks.exact())


def _at_most(codes: Codes, limit: int) -> Bits:
    if limit < LOWEST:
        return np.zeros(len(codes), np.bool_)
    return codes <= np.uint64(min(limit, HIGHEST))


def _at_least(codes: Codes, limit: int) -> Bits:
    if limit > HIGHEST:
        return np.zeros(len(codes), np.bool_)
    return codes >= np.uint64(max(limit, LOWEST))


def _limited(codes: LiteralCodes) -> list[int]:
    return [min(max(code, LOWEST), HIGHEST) for code in codes]


def _is_nan(literal: Literal) -> bool:
    return isinstance(literal.value, float) and math.isnan(literal.value)
