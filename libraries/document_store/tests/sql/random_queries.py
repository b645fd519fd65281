"""Random documents, and random queries in two forms: SQL for the store, and SQL for DuckDB over the documents' JSON.

DuckDB gets a table with several columns for each field, one for each type: `x_i` has the integers, `x_d` the doubles,
`x_t` the texts, `x_b` the booleans, and `x_j` the JSON text of every value. `json_type` decides which column gets a
value, so this form does not use the store's rules about types.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

WORDS = ("", "a", "ab", "abc", "b", "é", "10", "Ω x", "'")
LARGE = (2**53 + 1, 10**16 + 1, 2.0**53, 2**62)
"""Large values of m. All are positive, because DuckDB's sums of doubles lose small values next to large ones."""
PATHS = {"k": "$.k", "n": "$.n", "d": "$.d", "m": "$.m", "x": "$.x", "b": "$.b", "o.p": "$.o.p", "none": "$.none"}
"""Field -> path of DuckDB. k is a text, n an integer, d a double, m a number, x of any type, b a boolean."""


def documents(chance: random.Random, count: int) -> list[dict[str, Any]]:
    """Return documents whose fields may be missing or null."""
    return [_document(chance, key) for key in range(count)]


def _document(chance: random.Random, key: int) -> dict[str, Any]:
    values = {
        "k": lambda: chance.choice(WORDS),
        "n": lambda: chance.choice((chance.randrange(-5, 6), 2**62, -(2**62), 2**53 + 1)),
        "d": lambda: chance.choice((chance.randrange(-8, 9) / 4, 1e300, 2.0**53)),
        "m": lambda: chance.choice((chance.randrange(-3, 4), chance.randrange(-6, 7) / 2, chance.choice(LARGE))),
        "x": lambda: chance.choice((chance.randrange(4), chance.choice(WORDS), True, False, 1.5, [1], {"y": "z"})),
        "b": lambda: chance.random() < 0.5,
        "o": lambda: {"p": chance.choice(WORDS)} if chance.random() < 0.8 else {},
    }
    document: dict[str, Any] = {"id": key}
    for name, value in values.items():
        kind = chance.random()
        if kind < 0.75:
            document[name] = value()
        elif kind < 0.85:
            document[name] = None
    return document


def oracle_table(found: list[dict[str, Any]]) -> tuple[list[tuple[int, str]], str]:
    """Return rows of keys and JSON texts, and the SELECT that makes the typed columns from a table `raw(id, j)`."""
    columns = ["id"]
    for name, path in PATHS.items():
        short = name.replace(".", "_")
        type_, text = f"json_type(j, '{path}')", f"json_extract_string(j, '{path}')"
        columns += [
            f"CASE WHEN {type_} IN ('BIGINT', 'UBIGINT') THEN CAST({text} AS BIGINT) END AS {short}_i",
            f"CASE WHEN {type_} = 'DOUBLE' THEN CAST({text} AS DOUBLE) END AS {short}_d",
            f"CASE WHEN {type_} = 'VARCHAR' THEN {text} END AS {short}_t",
            f"CASE WHEN {type_} = 'BOOLEAN' THEN CAST({text} AS BOOLEAN) END AS {short}_b",
            f"CASE WHEN {type_} <> 'NULL' THEN CAST(json_extract(j, '{path}') AS VARCHAR) END AS {short}_j",
        ]
    rows = [(document["id"], json.dumps(document, ensure_ascii=False)) for document in found]
    return rows, f"SELECT {', '.join(columns)} FROM raw"


@dataclass(frozen=True)
class Both:
    """One part of a query in both forms."""

    ours: str
    oracle: str


@dataclass(frozen=True)
class Query:
    """One query in both forms."""

    ours: str
    oracle: str
    is_ordered: bool
    """Whether the order of the rows is fully defined."""
    expected_way: str
    """How the store must answer it."""


def _short(name: str) -> str:
    return name.replace(".", "_")


def _condition(chance: random.Random, depth: int) -> Both:
    if depth and chance.random() < 0.5:
        left, right = _condition(chance, depth - 1), _condition(chance, depth - 1)
        word = chance.choice(("AND", "OR"))
        return Both(f"({left.ours} {word} {right.ours})", f"({left.oracle} {word} {right.oracle})")
    if depth and chance.random() < 0.2:
        inner = _condition(chance, depth - 1)
        return Both(f"NOT {inner.ours}", f"NOT {inner.oracle}")
    return chance.choice((_compared, _null, _listed, _between, _like, _flag, _fields))(chance)


def _number(chance: random.Random) -> str:
    return chance.choice(("0", "1", "-2", "1.5", "-0.25", "3", "4611686018427387904", "9007199254740992", "1e300"))


def _with_number(name: str, operator: str, number: str) -> str:
    # DuckDB would round a large integer to compare it with a double, so the oracle compares decimals and doubles.
    exact = number if "." in number or "e" in number else f"CAST({number} AS HUGEINT)"
    integer = (
        f"CAST({_short(name)}_i AS DOUBLE) {operator} {number}"
        if "e" in number
        else (f"CAST({_short(name)}_i AS DECIMAL(38, 4)) {operator} CAST({exact} AS DECIMAL(38, 4))")
    )
    return f"coalesce({integer}, {_short(name)}_d {operator} CAST({number} AS DOUBLE))"


def _with_text(name: str, operator: str, text: str) -> str:
    return f"{_short(name)}_t {operator} {_quoted(text)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _compared(chance: random.Random) -> Both:
    name, operator = chance.choice(list(PATHS)), chance.choice(("=", "<>", "<", "<=", ">", ">="))
    if chance.random() < 0.5:
        number = _number(chance)
        return Both(f"{name} {operator} {number}", _with_number(name, operator, number))
    text = chance.choice(WORDS)
    return Both(f"{name} {operator} {_quoted(text)}", _with_text(name, operator, text))


def _fields(chance: random.Random) -> Both:
    operator = chance.choice(("=", "<>", "<", "<=", ">", ">="))
    numbers = (("m", "d"), ("n", "d"), ("d", "n"), ("n", "m"), ("m", "n"), ("m", "m"), ("x", "n"), ("x", "m"))
    one, two = chance.choice((("k", "o.p"), ("k", "x"), ("b", "x"), ("k", "n"), ("x", "x"), *numbers))
    a, b = _short(one), _short(two)
    pairs = [f"{a}_{p} {operator} {b}_{p}" for p in "tbid"]
    pairs += [_integer_and_double(f"{a}_i", operator, f"{b}_d", f"{b}_d")]
    pairs += [_integer_and_double(f"{a}_d", operator, f"{b}_i", f"{a}_d")]
    return Both(f"{one} {operator} {two}", f"coalesce({', '.join(pairs)})")


def _integer_and_double(left: str, operator: str, right: str, double: str) -> str:
    # DuckDB rounds the integer to compare it with a double. Decimals are exact, but 1e300 does not fit.
    exact = f"TRY_CAST({left} AS DECIMAL(38, 4)) {operator} TRY_CAST({right} AS DECIMAL(38, 4))"
    return f"CASE WHEN abs({double}) < 1e20 THEN {exact} ELSE {left} {operator} {right} END"


def _null(chance: random.Random) -> Both:
    name, word = chance.choice(list(PATHS)), chance.choice(("IS NULL", "IS NOT NULL"))
    return Both(f"{name} {word}", f"{_short(name)}_j {word}")


def _listed(chance: random.Random) -> Both:
    name = chance.choice(list(PATHS))
    numbers, texts = [_number(chance) for _ in range(2)], [chance.choice(WORDS)]
    parts = [_with_number(name, "=", number) for number in numbers] + [_with_text(name, "=", text) for text in texts]
    listed = ", ".join([*numbers, *map(_quoted, texts)])
    word, right = chance.choice((("IN", ""), ("NOT IN", "NOT ")))
    return Both(f"{name} {word} ({listed})", f"{right}({' OR '.join(parts)})")


def _between(chance: random.Random) -> Both:
    name, low, high = chance.choice(list(PATHS)), _number(chance), _number(chance)
    word, right = chance.choice((("BETWEEN", ""), ("NOT BETWEEN", "NOT ")))
    return Both(
        f"{name} {word} {low} AND {high}",
        f"{right}({_with_number(name, '>=', low)} AND {_with_number(name, '<=', high)})",
    )


def _like(chance: random.Random) -> Both:
    name, pattern = chance.choice(list(PATHS)), chance.choice(("a%", "%", "abc", "%b", "_b%"))
    word = chance.choice(("LIKE", "NOT LIKE"))
    return Both(f"{name} {word} '{pattern}'", f"{_short(name)}_t {word} '{pattern}'")


def _flag(chance: random.Random) -> Both:
    name = chance.choice(("b", "x"))
    return Both(name, f"{name}_b")


def _is_planned(condition: Both) -> bool:
    return "'%b'" not in condition.ours and "'_b%'" not in condition.ours


KEYS = {"k": "k_t", "n": "n_i", "b": "b_b", "o.p": "o_p_t", "none": "none_j"}
OTHER_KEYS = {"x": "x_j", "lower(k)": "lower(k_t)"}
FIGURES = {
    "count(*)": "count(*)",
    "count(x)": "count(x_j)",
    "count(DISTINCT k)": "count(DISTINCT k_t)",
    "count(DISTINCT n)": "count(DISTINCT n_i)",
    "min(n)": "min(n_i)",
    "max(d)": "max(d_d)",
    "min(k)": "min(k_t)",
    "sum(d)": "sum(d_d)",
    "avg(m)": "avg(coalesce(CAST(m_i AS DOUBLE), m_d))",
    "sum(m)": "sum(coalesce(CAST(m_i AS DOUBLE), m_d))",
}
OTHER_FIGURES = {
    "sum(x)": "sum(coalesce(CAST(x_i AS DOUBLE), x_d))",
    "count(DISTINCT x)": "count(DISTINCT x_j)",
    "max(length(k))": "max(length(k_t))",
    "max(n) - 1": "max(n_i) - 1",
    "count(*) * 2 + count(k)": "count(*) * 2 + count(k_t)",
    "sum(m) / count(*)": "sum(coalesce(CAST(m_i AS DOUBLE), m_d)) / count(*)",
    "coalesce(min(k), 'none')": "coalesce(min(k_t), 'none')",
}
SHOWN = {**KEYS, "d": "d_d", "id": "id"}
MIXED_SHOWN = {"x": "x_j"}
OTHER_SHOWN = {"upper(k)": "upper(k_t)", "d + 1": "d_d + 1", "x IS NULL": "x_j IS NULL"}
ORDERS = ("", " DESC", " NULLS FIRST", " DESC NULLS FIRST")


def query(chance: random.Random) -> Query:
    """Return a random query."""
    condition = _condition(chance, 2) if chance.random() < 0.7 else None
    make = chance.choice((_groups, _rows))
    found = make(
        chance, f" WHERE {condition.ours}" if condition else "", f" WHERE {condition.oracle}" if condition else ""
    )
    if condition is not None and not _is_planned(condition):
        return Query(found.ours, found.oracle, found.is_ordered, "duckdb")
    return found


def _groups(chance: random.Random, where: str, oracle_where: str) -> Query:
    possible_keys, possible_figures = dict(KEYS), dict(FIGURES)
    if chance.random() < 0.4:
        possible_keys |= OTHER_KEYS
        possible_figures |= OTHER_FIGURES
    keys = chance.sample(list(possible_keys.items()), chance.randrange(3))
    figures = chance.sample(list(possible_figures.items()), chance.randrange(1, 4))
    way = "plan"
    if any(ours in OTHER_KEYS for ours, _ in keys) or any(ours in OTHER_FIGURES for ours, _ in figures):
        way = "duckdb"
    items = [*keys, *figures]
    ours = f"SELECT {', '.join(f'{each} AS c{n}' for n, (each, _) in enumerate(items))} FROM docs{where}"
    oracle = f"SELECT {', '.join(f'{each} AS c{n}' for n, (_, each) in enumerate(items))} FROM typed{oracle_where}"
    end = ""
    if keys:
        end += " GROUP BY " + ", ".join(str(n + 1) for n in range(len(keys)))
        if chance.random() < 0.3:
            end += chance.choice((" HAVING count(*) > 2", " HAVING count(*) < 9 AND NOT count(*) = 1"))
            way = "duckdb"
        order = chance.choice(ORDERS)
        if chance.random() < 0.5:
            end += " ORDER BY " + ", ".join(f"{n + 1}{order}" for n in range(len(keys)))
            if chance.random() < 0.5:
                end += f" LIMIT {chance.randrange(5)}"
            if chance.random() < 0.3:
                end += " OFFSET 1"
    return Query(ours + end, oracle + end, "ORDER BY" in end, way)


def _rows(chance: random.Random, where: str, oracle_where: str) -> Query:
    possible, way = {**SHOWN, **MIXED_SHOWN}, "plan"
    if chance.random() < 0.4:
        possible |= OTHER_SHOWN
    items = chance.sample(list(possible.items()), chance.randrange(1, 4))
    if any(ours in OTHER_SHOWN for ours, _ in items):
        way = "duckdb"
    distinct = ""
    if chance.random() < 0.2:
        distinct = "DISTINCT "
        if any(ours in ("d", "x") for ours, _ in items):
            way = "duckdb"
    ours = f"SELECT {distinct}{', '.join(f'{each} AS c{n}' for n, (each, _) in enumerate(items))} FROM docs{where}"
    oracle = (
        f"SELECT {distinct}{', '.join(f'{each} AS c{n}' for n, (_, each) in enumerate(items))} FROM typed{oracle_where}"
    )
    if distinct or chance.random() < 0.5:
        return Query(ours, oracle, False, way)
    by, oracle_by = chance.choice(list(SHOWN.items()))
    order = chance.choice(ORDERS)
    end = f" LIMIT {chance.randrange(9)}" if chance.random() < 0.7 else ""
    return Query(f"{ours} ORDER BY {by}{order}, id{end}", f"{oracle} ORDER BY {oracle_by}{order}, id{end}", True, way)
