"""Parse how a user uses a table, such as 'take 100 rows 1000 times a day, read all once'.

The result maps the full name of each operation, such as 'take[rows=100,handle=kept]', to how often per day it is done.
bench_runner checks the parameters of operations, and the reports combine these numbers with measured times.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

from adapters.errors import RefusedData
from adapters.spelling import spell
from bench_runner.data_kinds import DOCUMENTS
from bench_runner.errors import PlanError
from bench_runner.operations import OPERATIONS, Operation, operation_of, parameters
from bench_runner.operations.documents.ask import Sql
from bench_runner.operations.parameters import Parameter
from bench_runner.variants import operation_name_of
from format_bench.errors import RequestError
from reports.analysis.recommendation import preferences
from reports.analysis.recommendation.preferences import USE, WEIGHED, Use

EXAMPLE = "take 100 rows 1000 times a day, read all once"
_A_DAY = {"day": 1.0, "hour": 24.0, "week": 1 / 7}
_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
_TIMES = {"once": 1.0, "twice": 2.0}
_OFTEN = re.compile(rf"(?:^|\s+)(once|twice|({_NUMBER})\s+times?)(?:\s+(?:a|an|per|each|every)\s+(\w+))?$")
_SQL = re.compile(r"""\bsql\s+('(?:[^']|'')*'|"(?:[^"]|"")*")""", re.IGNORECASE)
"""An SQL query in single or double quotes. A quote within it is doubled."""
_NUMBERED = re.compile(r"sql #(\d+)")
_SPELLED = re.compile(r"[\w-]+\[[^\[\]]*\]")

USES: Mapping[str, type[Operation]] = {name: operation for name, operation in OPERATIONS.items() if operation.use}
"""Name -> operation, for the operations that `--use` understands. The attribute `use` of an operation is a pattern:
`[...]` is optional, and `a|b` are alternatives. `{rows:N}` matches a number for the parameter `rows`, which help texts
call N. `{kind}` matches any word that the parameter `kind` allows. `{handle:reopened}` matches only this one word. A
number before 'percent' is a percentage."""
PARTS = tuple(name for name in USES if name not in WEIGHED)
"""Names of the operations on a part of the data."""

_TOKEN = re.compile(
    r"(?P<space>\s*)"
    r"(?:(?P<open>\[)|(?P<close>\])|\{(?P<parameter>\w+)(?::(?P<shown>\w+))?\}|(?P<word>[^\s\[\]{}]+))"
)


def _parameters(operation: type[Operation]) -> dict[str, Parameter]:
    return {item.name: parameters.of(item) for item in fields(operation)}


def _form(operation: type[Operation]) -> re.Pattern[str]:
    """Return a regular expression for the pattern `use` of an operation, with a group for each parameter."""
    known = _parameters(operation)

    def expression(token: re.Match[str]) -> str:
        space, word = r"\s+" * bool(token["space"]), token["word"]
        if token["open"]:
            return f"(?:{space}"
        if token["close"]:
            return ")?"
        if word == "percent":
            return r"\s*(?:%|percent)"
        if word:
            return f"{space}(?:{re.sub('s$', 's?', word)})"
        words, shown = known[token["parameter"]].words, token["shown"]
        said = "|".join(words) if shown is None else shown if shown in words else _NUMBER
        return f"{space}(?P<{token['parameter']}>{said})"

    return re.compile(_TOKEN.sub(expression, operation.use))


def _told(operation: type[Operation]) -> str:
    """Return the pattern of an operation as help texts show it: 'take N rows [of K columns] [reopened]'."""
    known = _parameters(operation)
    shown = {name: "'SELECT ...'" if each.text else "|".join(each.words) for name, each in known.items()}
    said = re.sub(r"\{(\w+)(?::(\w+))?\}", lambda each: each[2] or shown[each[1]], operation.use)
    return re.sub(r"^(\w+)\|\w+", r"\1", said)


_FORMS = {name: _form(operation) for name, operation in USES.items() if name != Sql.name}
_WORDS = tuple(word for operation in USES.values() for word in operation.use.split()[0].split("|"))
OF_DOCUMENTS_ONLY = tuple(name for name in PARTS if OPERATIONS[name]().kinds == (DOCUMENTS,))
"""Operations that apply to documents and to no other kind of data."""
CAN_BE_SAID = (
    f"{', '.join(_told(USES[name]) for name in USES if name not in OF_DOCUMENTS_ONLY)}; for documents: "
    f"{', '.join(_told(USES[name]) for name in OF_DOCUMENTS_ONLY)}; each with 'M times a day|hour|week'"
)


def parse_weights(text: str) -> dict[str, float]:
    """Return the weights in a text: 'read=3,take[rows=10]=2' is {'read': 3.0, 'take[rows=10]': 2.0}.

    Raises PreferenceError for an invalid text.
    """
    return preferences.parse_weights(text, PARTS)


def parse_uses(text: str) -> dict[str, float]:
    """Return the full name of each operation in a text, with its number per day.

    'take 100 rows 10 times an hour' is {'take[rows=100,handle=kept]': 240.0}. If the text names an operation twice, the
    two numbers are added. Raises RequestError for a text that is not understood.
    """
    found: dict[str, float] = {}
    queries: list[str] = []

    def numbered(query: re.Match[str]) -> str:
        mark = query[1][0]
        queries.append(query[1][1:-1].replace(2 * mark, mark))
        return f"sql #{len(queries) - 1}"

    for clause in _clauses(_SQL.sub(numbered, text)):
        spelled, per_day = _clause(clause, queries)
        found[spelled] = found.get(spelled, 0.0) + per_day
    if not found:
        raise RequestError("`uses` names no operation.", _what_can_be_said(), parameter="uses", given=text)
    return found


def uses_of(per_day: Mapping[str, float]) -> tuple[Use, ...]:
    """Return a Use for each operation. `per_day` maps names such as 'take[rows=100]' to numbers per day. An SQL query
    is named by 'sql ' and its text.

    Raises RequestError for an unknown operation, or a number that is not above 0.
    """
    found: dict[str, Use] = {}
    if not per_day:
        raise RequestError(
            "`uses` names no operation.",
            "Map each operation to how often it is done per day, e.g. {'take[rows=100]': 1000, 'read': 1}.",
            parameter="uses",
            given=per_day,
        )
    for text, times in per_day.items():
        query = re.fullmatch(r"sql\s+(.+)", text, re.IGNORECASE | re.DOTALL)
        spelled, title = _operation("uses", text if query is None else _spelled_query(query[1]))
        if operation_name_of(spelled).name not in USES:
            raise RequestError(
                f"`uses` cannot have the operation {text}.",
                f"Choose among {', '.join(USES)}.",
                parameter="uses",
                given=text,
                allowed=tuple(USES),
            )
        if isinstance(times, bool) or not isinstance(times, int | float) or not 0 < times < float("inf"):
            raise RequestError(
                f"`uses`: the number of times per day for {text} must be a number above 0 (got {times!r}).",
                parameter="uses",
                given=times,
                allowed="a number above 0",
            )
        found[spelled] = Use(spelled, title, times + (found[spelled].per_day if spelled in found else 0.0))
    return tuple(found.values())


def words_of(use: Use) -> str:
    """Return the use as a text that `parse_uses` converts back to the same use."""
    operation = operation_of(use.operation)
    name = f"""sql '{operation.text.replace("'", "''")}'""" if isinstance(operation, Sql) else use.operation
    if use.per_day == 1:
        return f"{name} once a day"
    by_week = round(use.per_day * 7)
    if by_week / 7 == use.per_day and not use.per_day.is_integer():
        return f"{name} {by_week} times a week"
    often = f"{use.per_day!r} times a day".replace(".0 times", " times")
    return f"{name} {often}"


def weighed(weights: Mapping[str, float]) -> tuple[dict[str, float], dict[str, str]]:
    """Return two dicts: name -> weight, and name -> title. Only operations on a part of the data, such as take, have
    titles.

    In both dicts, the names of these operations have all parameters. Raises RequestError for a name that cannot have a
    weight.
    """
    found: dict[str, float] = {}
    titles: dict[str, str] = {}
    for name, weight in weights.items():
        if name in (*WEIGHED, USE):
            found[name] = float(weight)
            continue
        if operation_name_of(name).name not in PARTS:
            known = ", ".join((*WEIGHED, *PARTS))
            raise RequestError(
                f"`weights` cannot weigh {name!r}.",
                f"Choose among {known}, e.g. take[rows=10].",
                parameter="weights",
                given=name,
                allowed=(*WEIGHED, *PARTS),
            )
        spelled, titles_of = _operation("weights", name)
        if spelled in found:
            raise RequestError(
                f"`weights` names {spelled} twice.", "Give it one weight.", parameter="weights", given=name
            )
        found[spelled] = float(weight)
        titles[spelled] = titles_of
    return found, titles


def _operation(parameter: str, text: str) -> tuple[str, str]:
    """Return the full name of an operation with all parameters, and its title. `parameter` is the API's parameter that
    has this text. Raises RequestError, which names `parameter`, if the operation is unknown."""
    try:
        operation = operation_of(text, parameter)
    except PlanError as error:
        raise RequestError(
            error.problem, error.next_step, parameter=parameter, given=error.given, allowed=error.allowed
        ) from None
    if isinstance(operation, Sql):
        try:
            operation.plan  # noqa: B018  # refuses a query that cannot be measured
        except RefusedData as refused:
            raise RequestError(f"`{parameter}`: {refused}.", parameter=parameter, given=operation.text) from None
    return operation.spelled, operation.use_title


def _spelled_query(text: str) -> str:
    if not text.strip():
        raise RequestError(
            "`uses`: the SQL is empty.",
            "Write e.g. sql 'SELECT count(*) FROM docs' 10 times a day.",
            parameter="uses",
            given=text,
        )
    return spell(Sql.name, {"query": parameters.quoted(text)})


def _clauses(text: str) -> Iterator[str]:
    """Yield the parts of a text between commas, semicolons and the word 'and'.

    Commas within brackets, and commas that separate thousands in a number, do not split the text.
    """
    for part in re.split(r",(?!\d{3}\b)(?![^\[\]]*\])|;|\band\b", text):
        if part.strip():
            yield " ".join(part.lower().split())


def _clause(clause: str, queries: Sequence[str]) -> tuple[str, float]:
    """Return the full name of a clause's operation and its number per day. `sql #0` means the first of `queries`."""
    often = _OFTEN.search(clause)
    per_day = 1.0
    if often is not None:
        unit = often[3] or "day"
        if unit not in _A_DAY:
            raise RequestError(
                f"`uses`: {unit!r} in {clause!r} is not a known period.",
                "Write 'a day', 'an hour' or 'a week'.",
                parameter="uses",
                given=clause,
                allowed=("day", "hour", "week"),
            )
        times = _TIMES.get(often[1]) or float(_plain(often[2] or "0"))
        per_day = times * _A_DAY[unit]
        if per_day <= 0:
            raise RequestError(
                f"`uses`: the number of times in {clause!r} must be above 0.",
                "Write a number above 0, or omit this operation.",
                parameter="uses",
                given=clause,
            )
    said = clause[: often.start()].strip() if often is not None else clause
    if (query := _NUMBERED.fullmatch(said)) is not None and int(query[1]) < len(queries):
        return _operation("uses", _spelled_query(queries[int(query[1])]))[0], per_day
    if _SPELLED.fullmatch(said):
        return _operation("uses", said)[0], per_day
    for name, form in _FORMS.items():
        if (match := form.fullmatch(said)) is not None:
            return _spelled(name, match.groupdict()), per_day
    raise RequestError(
        f"`uses`: {clause!r} is not understood{_guess(said)}.", _what_can_be_said(), parameter="uses", given=clause
    )


def _guess(said: str) -> str:
    first = said.partition(" ")[0]
    near = difflib.get_close_matches(first, _WORDS, n=1)
    return f" (did you mean {near[0]!r}?)" if near and first not in _WORDS else ""


def _what_can_be_said() -> str:
    return f"Write e.g. '{EXAMPLE}'. Possible uses: {CAN_BE_SAID}."


def _plain(number: str) -> str:
    return number.replace(",", "")


def _spelled(name: str, said: Mapping[str, str | None]) -> str:
    """Return the full name of the operation `name` with these parameters."""
    known = _parameters(USES[name])
    values = {key: _plain(value) for key, value in said.items() if value is not None}
    told = {key: f"{float(value) / 100:.10g}" if known[key].share else value for key, value in values.items()}
    return _operation("uses", spell(name, told))[0]
