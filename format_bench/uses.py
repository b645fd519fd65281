"""What a user does with a table, in words: 'take 100 rows 1000 times a day, read all once'.

Words become spelled operations and how often they are done a day. What an operation's parameters may be is
bench_runner's to say; what a time is worth is the reports'.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping

from adapters.predicate import Kind
from bench_runner.errors import PlanError
from bench_runner.operations import operation_of
from format_bench.errors import RequestError
from reports.analysis.recommendation.preferences import DOCUMENT_PARTS, PARTS, USE, WEIGHED, Use

EXAMPLE = "take 100 rows 1000 times a day, read all once"
CAN_BE_SAID = (
    "take N rows [of K columns] [reopened], read all, read K columns, scan P percent [by range|equal|in|null|prefix] "
    "[of K columns], append N rows, save; of documents: get N documents, read K fields; each 'M times a day|hour|week'"
)
_A_DAY = {"day": 1.0, "hour": 24.0, "week": 1 / 7}
_NUMBER = r"(\d+(?:,\d{3})*(?:\.\d+)?)"
_TIMES = {"once": 1.0, "twice": 2.0}
_OFTEN = re.compile(rf"(?:^|\s+)(once|twice|{_NUMBER}\s+times?)(?:\s+(?:a|an|per|each|every)\s+(\w+))?$")
_OF_COLUMNS = rf"(?:\s+of\s+{_NUMBER}\s+columns?)?"
_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (
        re.compile(rf"take\s+{_NUMBER}\s+rows?{_OF_COLUMNS}(\s+reopened)?"),
        lambda said: _spelled(
            "take", rows=said[1], handle="reopened" if said[3] else "kept", **({"columns": said[2]} if said[2] else {})
        ),
    ),
    (re.compile(r"read\s+all(?:\s+rows)?|read"), lambda said: "read"),
    (re.compile(rf"read\s+{_NUMBER}\s+columns?"), lambda said: _spelled("project", columns=said[1])),
    (
        re.compile(
            rf"(?:scan|filter)\s+{_NUMBER}\s*(?:%|percent)(?:\s+by\s+({'|'.join(kind.value for kind in Kind)}))?"
            rf"{_OF_COLUMNS}"
        ),
        lambda said: _spelled(
            "scan",
            selectivity=f"{float(_plain(said[1])) / 100:.10g}",
            kind=said[2] or Kind.RANGE.value,
            **({"columns": said[3]} if said[3] else {}),
        ),
    ),
    (re.compile(rf"get\s+{_NUMBER}\s+documents?"), lambda said: _spelled("get", documents=said[1])),
    (re.compile(rf"read\s+{_NUMBER}\s+fields?"), lambda said: _spelled("fields", paths=said[1])),
    (re.compile(rf"append\s+{_NUMBER}\s+rows?"), lambda said: _spelled("append", rows=said[1])),
    (re.compile(r"save(?:\s+all)?"), lambda said: "save"),
    (re.compile(r"(\w+\[[^\[\]]*\])"), lambda said: _operation("--use", said[1])[0]),
)
"""What a clause may be, without how often, and the operation that it means. One that is spelled means itself."""
_WHOLE_TITLES = {"read": "read all", "save": "save all"}
_WORDS = ("take", "read", "scan", "filter", "append", "get", "save")


def parse_uses(text: str) -> dict[str, float]:
    """Spelled operations with how often a day each is done: 'take 100 rows 10 times an hour' is
    {'take[rows=100,handle=kept]': 240.0}. What is said twice adds up. Raises RequestError."""
    found: dict[str, float] = {}
    for clause in _clauses(text):
        spelled, per_day = _clause(clause)
        found[spelled] = found.get(spelled, 0.0) + per_day
    if not found:
        raise RequestError(f"--use {text!r}: says nothing\n  {_what_can_be_said()}")
    return found


def uses_of(per_day: Mapping[str, float]) -> tuple[Use, ...]:
    """Of spelled operations with how often a day each is done. Raises RequestError for what is no operation, or no
    number above 0."""
    found: dict[str, Use] = {}
    if not per_day:
        raise RequestError(f"--use: says nothing\n  {_what_can_be_said()}")
    for text, times in per_day.items():
        spelled, title = _operation("--use", text)
        known = (*_WHOLE_TITLES, *PARTS, *DOCUMENT_PARTS)
        if spelled.partition("[")[0] not in known:
            raise RequestError(f"--use {text}: is no use that is weighed\n  there are: {', '.join(known)}")
        if isinstance(times, bool) or not isinstance(times, int | float) or not 0 < times < float("inf"):
            raise RequestError(f"--use: {text} is done {times!r} times a day\n  give a number above 0")
        found[spelled] = Use(spelled, title, times + (found[spelled].per_day if spelled in found else 0.0))
    return tuple(found.values())


def words_of(use: Use) -> str:
    """A clause that means a use."""
    if use.per_day == 1:
        return f"{use.operation} once a day"
    by_week = round(use.per_day * 7)
    if by_week / 7 == use.per_day and not use.per_day.is_integer():
        return f"{use.operation} {by_week} times a week"
    return f"{use.operation} {use.per_day!r} times a day".replace(".0 times", " times")


def weighed(weights: Mapping[str, float]) -> tuple[dict[str, float], dict[str, str]]:
    """Weights with every operation on a part of a table spelled in full, and the words for people of those. Raises
    RequestError for what is neither such an operation nor a name of what is weighed."""
    found: dict[str, float] = {}
    titles: dict[str, str] = {}
    for name, weight in weights.items():
        if name in (*WEIGHED, USE):
            found[name] = float(weight)
            continue
        if name.partition("[")[0] not in (*PARTS, *DOCUMENT_PARTS):
            known = ", ".join((*WEIGHED, *PARTS, *DOCUMENT_PARTS))
            raise RequestError(f"--prefer: nothing is called {name!r}\n  there are: {known}, e.g. take[rows=10]")
        spelled, titles_of = _operation("--prefer", name)
        if spelled in found:
            raise RequestError(f"--prefer: {spelled} stands there twice\n  give it one weight")
        found[spelled] = float(weight)
        titles[spelled] = titles_of
    return found, titles


def _operation(option: str, text: str) -> tuple[str, str]:
    """Its spelling with every parameter that names have, and its title."""
    try:
        operation = operation_of(text)
    except PlanError as error:
        raise RequestError(str(error).replace("--operations", option)) from None
    if operation.name == "fields":
        return operation.spelled, f"read {operation.title.removesuffix(' of all documents')}"
    return operation.spelled, _WHOLE_TITLES.get(operation.spelled, operation.title)


def _clauses(text: str) -> Iterator[str]:
    """At each comma that does not part thousands, and stands in no bracket."""
    for part in re.split(r",(?!\d{3}\b)(?![^\[\]]*\])|;|\band\b", text):
        if part.strip():
            yield " ".join(part.lower().split())


def _clause(clause: str) -> tuple[str, float]:
    often = _OFTEN.search(clause)
    per_day = 1.0
    if often is not None:
        unit = often[3] or "day"
        if unit not in _A_DAY:
            raise RequestError(f"--use {clause!r}: {unit!r} is no time to count by\n  say a day, an hour, a week")
        times = _TIMES.get(often[1]) or float(_plain(often[2] or "0"))
        per_day = times * _A_DAY[unit]
        if per_day <= 0:
            raise RequestError(f"--use {clause!r}: is done no time at all\n  leave it out, or say how often")
    said = clause[: often.start()].strip() if often is not None else clause
    for form, spelled in _FORMS:
        match = form.fullmatch(said)
        if match is not None:
            return spelled(match), per_day
    raise RequestError(f"--use {clause!r}: is not understood{_guess(said)}\n  {_what_can_be_said()}")


def _guess(said: str) -> str:
    first = said.partition(" ")[0]
    near = difflib.get_close_matches(first, _WORDS, n=1)
    return f" (did you mean {near[0]!r}?)" if near and first not in _WORDS else ""


def _what_can_be_said() -> str:
    return f"say: {CAN_BE_SAID}; e.g. --use '{EXAMPLE}'"


def _plain(number: str) -> str:
    return number.replace(",", "")


def _spelled(name: str, **parameters: str) -> str:
    told = ",".join(f"{key}={_plain(value)}" for key, value in parameters.items())
    return _operation("--use", f"{name}[{told}]")[0]
