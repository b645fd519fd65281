"""Parse SQL on one table into a query: columns or aggregates, a filter, groups, a limit.

    SELECT * | columns | min, max, sum, count, avg  FROM table  WHERE ...  GROUP BY columns  LIMIT n

WHERE supports AND, OR, NOT, comparisons of a column with a constant, BETWEEN, IN, IS NULL, LIKE 'prefix%' and boolean
columns. Other SQL raises an error that names the unsupported part and suggests the Dataset, which DuckDB, Polars and
pyarrow can query. The dialect is DuckDB's, but names are case-sensitive: `a` and `A` are two columns. No part of
sqlglot's tree is ignored. An argument that this module does not handle raises an error.
"""

from __future__ import annotations

import re

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from libraries.filters import limits
from libraries.filters.tree import Predicate
from libraries.near_storage.errors import PredicateError
from libraries.near_storage.predicates.sql_conditions import Scope, column_of, condition, only, refused
from libraries.near_storage.query import Aggregate, Function, Query

MOST_BYTES = 1 << 18
"""Maximum bytes of SQL text."""

MOST_OPEN = 24
"""Maximum number of nested brackets, and of consecutive signs or NOT."""

MOST_ROWS = 2**63 - 1

_CLASS = re.compile(r" for <class '[^']*'>")
"""Internal class names in sqlglot's error messages."""
_DIALECT = sqlglot.Dialect.get_or_raise("duckdb")
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_BEFORE = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_AGGREGATES: dict[type, Function] = {exp.Min: "min", exp.Max: "max", exp.Sum: "sum", exp.Avg: "avg", exp.Count: "count"}


def parse(text: str) -> Query:
    """Parse SQL text. Raises PredicateError for anything that near storage does not support."""
    select = _select(text)
    only(select, "expressions", "from_", "where", "group", "limit")
    scope = _scope(select)
    group_by = _group_by(select, scope)
    columns, aggregates, order = _answer(select, scope)
    where = _where(select, scope)
    query = Query(scope.table, columns, where, aggregates, group_by, _limit(select), order)
    _check_groups(query)
    return query


def _select(text: str) -> exp.Select:
    if len(text) > MOST_BYTES or len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise PredicateError(f"the SQL has more than {MOST_BYTES} bytes: shorten it, or filter a Dataset")
    try:
        tokens = _DIALECT.tokenize(text)
        _check_depth(tokens)
        if not tokens or tokens[0].token_type is not TokenType.SELECT:
            raise PredicateError("the SQL must begin with SELECT: only SELECT ... FROM one table is supported")
        statements = [each for each in _DIALECT.parser().parse(tokens, text) if each is not None]
    except (SqlglotError, RecursionError, ValueError) as error:
        raise PredicateError(f"cannot parse the SQL: {_first_line(error)}") from None
    if len(statements) != 1 or type(statements[0]) is not exp.Select:
        raise PredicateError(
            "only a single SELECT is supported, without UNION and the like. For full SQL pass "
            "connect(...).dataset(table) to DuckDB, Polars or pyarrow"
        )
    return statements[0]


def _first_line(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    line = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    # If a column is named like an SQL keyword, sqlglot's error is about the keyword.
    return f"{_CLASS.sub('', line)}; put names that are SQL keywords in double quotes"


def _check_depth(tokens: list[sqlglot.tokens.Token]) -> None:
    """Refuse SQL that would make a parser recurse deeply."""
    open_ = in_a_row = 0
    for token in tokens:
        open_ += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        in_a_row = in_a_row + 1 if token.token_type in _BEFORE else 0
        if max(open_, in_a_row) > MOST_OPEN:
            raise PredicateError(f"the SQL is nested more than {MOST_OPEN} levels deep: reduce its nesting")


def _scope(select: exp.Select) -> Scope:
    source = select.args.get("from_")
    if source is None:
        raise PredicateError("the SQL has no FROM: name the table to query")
    only(source, "this")
    table = source.this
    if type(table) is not exp.Table or type(table.this) is not exp.Identifier:
        raise refused(table, "FROM takes the name of one table")
    only(table, "this", "alias")
    name = limits.check_name(table.this.this, "the table")
    alias = table.args.get("alias")
    if alias is None:
        return Scope(name, name)
    only(alias, "this")
    return Scope(name, alias.this.this)


def _where(select: exp.Select, scope: Scope) -> Predicate | None:
    where = select.args.get("where")
    if where is None:
        return None
    only(where, "this")
    found = condition(where.this, scope)
    limits.check(found)
    return found


def _group_by(select: exp.Select, scope: Scope) -> tuple[str, ...]:
    group = select.args.get("group")
    if group is None:
        return ()
    only(group, "expressions")
    columns = tuple(column_of(each, scope) for each in group.expressions)
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise PredicateError(f"GROUP BY names the column {twice!r} twice: name it once")
    return columns


def _answer(
    select: exp.Select, scope: Scope
) -> tuple[tuple[str, ...] | None, tuple[Aggregate, ...], tuple[str, ...] | None]:
    """Return the columns, the aggregates, and the order of their names in the answer. The order is None if the columns
    come before the aggregates. Columns are None for `SELECT *`."""
    items = select.expressions
    if not items:
        raise PredicateError(
            "SELECT names no column: name columns or aggregates, or write *. Put names that are SQL keywords "
            'in double quotes, e.g. "all"'
        )
    stars = [item for item in items if isinstance(item, exp.Star)]
    if stars:
        only(stars[0])
        if len(items) > 1 or select.args.get("group") is not None:
            raise refused(stars[0], "use * only without other columns and without GROUP BY")
        return None, (), None
    found = [_item(item, scope) for item in items]
    columns = tuple(item for item in found if isinstance(item, str))
    aggregates = tuple(item for item in found if isinstance(item, Aggregate))
    names = tuple(item if isinstance(item, str) else item.name for item in found)
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        if columns.count(twice) > 1:
            raise PredicateError(f"SELECT names the column {twice!r} twice: name it once, and copy it in the answer")
        raise PredicateError(f"the answer would have two columns named {twice!r}: rename an aggregate with AS")
    return columns, aggregates, None if names == (*columns, *(each.name for each in aggregates)) else names


def _item(item: exp.Expression, scope: Scope) -> str | Aggregate:
    name = None
    if isinstance(item, exp.Alias):
        only(item, "this", "alias")
        name = limits.check_name(item.alias, "an aggregate")
        if isinstance(item.this, exp.Column):
            raise refused(item, "only aggregates can be renamed; rename the column in the answer")
        item = item.this
    if isinstance(item, exp.Column):
        return column_of(item, scope)
    function = _AGGREGATES.get(type(item))
    if function is None:
        raise refused(item, "SELECT takes columns, and min, max, sum, count and avg of a column")
    only(item, "this", "big_int")
    column = None if function == "count" and _counts_rows(item.this) else column_of(item.this, scope)
    return Aggregate(function, column, name or f"{function}({'*' if column is None else column})")


def _counts_rows(argument: exp.Expression | None) -> bool:
    """Return whether `argument` is the argument of count(*), count() or count(1)."""
    if isinstance(argument, exp.Star):
        only(argument)
    return argument is None or isinstance(argument, exp.Star) or (type(argument) is exp.Literal and argument.is_int)


def _limit(select: exp.Select) -> int | None:
    limit = select.args.get("limit")
    if limit is None:
        return None
    if type(limit) is not exp.Limit:
        raise refused(limit, "write LIMIT and a number of rows")
    only(limit, "expression")
    rows = limit.expression
    if type(rows) is not exp.Literal or rows.is_string or not rows.this.isdecimal() or len(rows.this) > 19:
        raise refused(limit, f"LIMIT takes a whole number of rows, at most {MOST_ROWS}")
    if int(rows.this) > MOST_ROWS:
        raise refused(limit, f"LIMIT is at most {MOST_ROWS}")
    return int(rows.this)


def _check_groups(query: Query) -> None:
    if not query.aggregated or query.columns is None:
        return
    beside = [column for column in query.columns if column not in query.group_by]
    if beside:
        raise PredicateError(
            f"the column {beside[0]!r} must be in GROUP BY or inside an aggregate: add it to GROUP BY, or remove it"
        )
