"""Parse SQL text into sqlglot's tree of a single query. The text may come from anywhere, so its size is limited."""

from __future__ import annotations

import re

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from libraries.document_queries.sql.errors import SQLError

MOST_BYTES = 1 << 16
"""Maximum bytes of SQL text."""
MOST_OPEN = 24
"""Maximum number of nested brackets, and of consecutive signs or NOT, so that a parser does not recurse deeply."""

DIALECT = sqlglot.Dialect.get_or_raise("duckdb")
_CLASS = re.compile(r" for <class '[^']*'>")
"""Internal class names in sqlglot's error messages."""
_TOKEN = re.compile(r" but got <Token .*>", re.DOTALL)
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_BEFORE = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_BEGINNINGS = {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN}


def parse(text: str) -> exp.Query:
    """Return the tree of one query. Raises SQLError for everything else."""
    if not isinstance(text, str):
        raise SQLError(f"the SQL must be a text (got {type(text).__name__})", "syntax")
    if len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise SQLError(f"the SQL has more than {MOST_BYTES} bytes; shorten it", "limit")
    try:
        tokens = DIALECT.tokenize(text)
        _check_depth(tokens)
        if tokens and tokens[0].token_type not in _BEGINNINGS:
            raise SQLError(f"only SELECT is supported (got {tokens[0].text[:40]!r})", "statement")
        statements = [each for each in DIALECT.parser().parse(tokens, text) if each is not None]
    except ParseError as error:
        raise SQLError(_words(error), "syntax") from None
    except (SqlglotError, RecursionError, ValueError) as error:
        raise SQLError(f"cannot parse the SQL: {_first_line(error)}", "syntax") from None
    if not statements:
        raise SQLError("the SQL is empty; write SELECT ... FROM docs", "syntax")
    if len(statements) > 1:
        raise SQLError(f"only one statement is supported (got {len(statements)}); remove all but one", "statement")
    (statement,) = statements
    if not isinstance(statement, exp.Select | exp.SetOperation | exp.Subquery):
        raise SQLError(f"only SELECT is supported (got {statement.key.upper()[:40]})", "statement")
    return statement


def _words(error: ParseError) -> str:
    if not error.errors:
        return f"cannot parse the SQL: {_first_line(error)}"
    first = error.errors[0]
    near = str(first.get("highlight") or "").strip()
    words = _TOKEN.sub("", _CLASS.sub("", str(first["description"]))).rstrip(".")[:200]
    found = f" near {near[:40]!r}" if near else ""
    return (
        f"cannot parse the SQL, line {first['line']}, column {first['col']}{found}: {words}; "
        "put names that are words of SQL in double quotes"
    )


def _first_line(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return _CLASS.sub("", str(error).splitlines()[0][:200]) if str(error) else type(error).__name__


def _check_depth(tokens: list[sqlglot.tokens.Token]) -> None:
    open_ = in_a_row = 0
    for token in tokens:
        open_ += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        in_a_row = in_a_row + 1 if token.token_type in _BEFORE else 0
        if max(open_, in_a_row) > MOST_OPEN:
            raise SQLError(f"the SQL is nested more than {MOST_OPEN} deep; reduce its nesting", "limit")
