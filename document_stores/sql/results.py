"""SQL for the columns of an answer, computed over the groups or documents that a plan selects, and for their order."""

from __future__ import annotations

from collections.abc import Mapping

from document_stores.sql.values import NOTHING, exactly, is_nothing

SAFE = "9e18"
"""A difference of integers has 64 bits if its rounded value is below this."""

_LARGEST = "9223372036854775807"
_BEYOND = "9223372036854775808e0"
"""The first double above all integers."""


class Result:
    """A value as one SQL expression (part) for each kind. A part is NULL unless the value is of its kind."""

    def __init__(self, parts: Mapping[str, str], json: str | None = None, is_there: str | None = None) -> None:
        """`json` is the JSON text of the value, if known. `is_there` distinguishes null from missing, if both occur."""
        self._parts = {kind: part for kind, part in parts.items() if not is_nothing(part)}
        self._json, self._is_there = json, is_there

    @property
    def parts(self) -> Mapping[str, str]:
        """The parts of kinds that may occur."""
        return self._parts

    def part(self, kind: str) -> str:
        """Return the part of one kind, NULL if there is none."""
        return self._parts.get(kind, NOTHING[kind])

    def number(self) -> str | None:
        """Return the value as a rounded double if it is a number; None if values are never numbers."""
        integer, double = self._parts.get("integer"), self._parts.get("double")
        whole = f"CAST({integer} AS DOUBLE PRECISION)"
        if integer is None or double is None:
            return double if integer is None else whole
        return f"coalesce({whole}, {double})"

    def order(self) -> list[str]:
        """Return terms for ORDER BY that sort values as a plan does. NULL comes first."""
        terms = self._numbers()
        terms += [self._parts[kind] for kind in ("text", "boolean") if kind in self._parts]
        if len(self._parts) <= 1 and self._is_there is None:
            return terms
        ranks = {"text": 4, "integer": 3, "double": 3, "boolean": 2}
        cases = [f"WHEN {self._parts[kind]} IS NOT NULL THEN {ranks[kind]}" for kind in self._parts]
        cases += [f"WHEN {self._is_there} THEN 1"] if self._is_there else []
        return [f"(CASE {' '.join(cases)} ELSE 0 END)", *terms]

    def _numbers(self) -> list[str]:
        """Return terms that sort numbers exactly: by rounded values, then as whole numbers, then integers before
        doubles and -0.0 before 0.0."""
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
    """Return the highest or lowest value of all kinds. `parts` has the highest or lowest value of each kind."""
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
    """Return the difference of two results, and the condition under which it may exceed 64 bits."""
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
