"""SQL expressions for the columns of a query result and for the order of its rows."""

from __future__ import annotations

from collections.abc import Mapping

from document_stores.sql.values import NOTHING, exactly, is_nothing

SAFE = "9e18"
"""SQL constant. If two integers, converted to doubles, differ by less than this, their difference fits into 64 bits."""

_LARGEST = "9223372036854775807"
_BEYOND = "9223372036854775808e0"
"""SQL constant: the smallest double that is larger than every 64-bit integer."""


class Result:
    """A value as several SQL expressions, which are called its parts. There is a part for each kind of value, and only
    the part of the value's kind is not NULL."""

    def __init__(self, parts: Mapping[str, str], json: str | None = None, is_there: str | None = None) -> None:
        """`parts` has an SQL expression for each kind. `json` is SQL for the JSON text of the value, if known.
        `is_there` is an SQL condition that is false if the value is missing. It is needed only if the value may also be
        null."""
        self._parts = {kind: part for kind, part in parts.items() if not is_nothing(part)}
        self._json, self._is_there = json, is_there

    @property
    def parts(self) -> Mapping[str, str]:
        """The parts, by kind, of the kinds that may occur."""
        return self._parts

    def part(self, kind: str) -> str:
        """Return the part of one kind, or SQL for NULL if this kind cannot occur."""
        return self._parts.get(kind, NOTHING[kind])

    def number(self) -> str | None:
        """Return SQL for the value as a (rounded) double if it is a number, or None if values are never numbers."""
        integer, double = self._parts.get("integer"), self._parts.get("double")
        whole = f"CAST({integer} AS DOUBLE PRECISION)"
        if integer is None or double is None:
            return double if integer is None else whole
        return f"coalesce({whole}, {double})"

    def order(self) -> list[str]:
        """Return terms for ORDER BY that sort values as query plans define. NULL comes first."""
        terms = self._numbers()
        terms += [self._parts[kind] for kind in ("text", "boolean") if kind in self._parts]
        if len(self._parts) <= 1 and self._is_there is None:
            return terms
        ranks = {"text": 4, "integer": 3, "double": 3, "boolean": 2}
        cases = [f"WHEN {self._parts[kind]} IS NOT NULL THEN {ranks[kind]}" for kind in self._parts]
        cases += [f"WHEN {self._is_there} THEN 1"] if self._is_there else []
        return [f"(CASE {' '.join(cases)} ELSE 0 END)", *terms]

    def _numbers(self) -> list[str]:
        """Return terms for ORDER BY that sort numbers exactly: by values rounded to doubles, then by whole numbers. An
        integer comes before an equal double, and -0.0 before 0.0."""
        integer, double = self._parts.get("integer"), self._parts.get("double")
        if double is None:
            return [] if integer is None else [integer]
        sign = f"WHEN substr({self._json}, 1, 1) = '-' THEN 1 " if self._json else ""
        if integer is None:
            return [double, f"(CASE {sign}ELSE 2 END)"] if sign else [double]
        whole = f"CASE WHEN {double} >= -{_BEYOND} AND {double} < {_BEYOND} THEN CAST({double} AS BIGINT) END"
        tie = f"(CASE WHEN {integer} IS NOT NULL THEN 0 {sign}ELSE 2 END)"
        return [str(self.number()), f"coalesce({integer}, {whole}, {_LARGEST})", tie]


def extreme(parts: Mapping[str, str], highest: bool) -> Result:
    """Return the highest or lowest value over all kinds, given SQL for the highest or lowest value of each kind."""
    ranks = {"boolean": 2, "integer": 3, "double": 3, "text": 4}
    chosen = dict(parts)
    integer, double = parts.get("integer"), parts.get("double")
    if integer is not None and double is not None:
        wins = exactly(integer, ">" if highest else "<=", double)
        chosen["integer"] = f"CASE WHEN {double} IS NULL OR {wins} THEN {integer} END"
        chosen["double"] = f"CASE WHEN {integer} IS NULL OR NOT {wins} THEN {double} END"
    for kind, part in chosen.items():
        ahead = [parts[other] for other in parts if (ranks[other] - ranks[kind]) * (1 if highest else -1) > 0]
        if ahead:
            none = " AND ".join(f"{other} IS NULL" for other in ahead)
            chosen[kind] = f"(CASE WHEN {none} THEN {part} END)"
    return Result(chosen)


def difference(left: Result, right: Result) -> tuple[Result, str | None]:
    """Return the difference of two results, and an SQL condition that is true if the difference may exceed 64 bits. The
    condition is None if the difference never exceeds 64 bits."""
    one, other = left.number(), right.number()
    if one is None or other is None:
        return Result({}), None
    parts, beyond = {}, None
    whole = [result.parts.get("integer") for result in (left, right)]
    if whole[0] is not None and whole[1] is not None:
        rounded = f"abs(CAST({whole[0]} AS DOUBLE PRECISION) - CAST({whole[1]} AS DOUBLE PRECISION))"
        beyond = f"{rounded} >= {SAFE}"
        parts["integer"] = f"(CASE WHEN {rounded} < {SAFE} THEN {whole[0]} - {whole[1]} END)"
    if "double" in left.parts or "double" in right.parts:
        integers = " AND ".join(f"{part} IS NOT NULL" for part in whole if part is not None)
        both = beyond is not None
        parts["double"] = f"(CASE WHEN NOT ({integers}) THEN {one} - {other} END)" if both else f"({one} - {other})"
    return Result(parts), beyond
