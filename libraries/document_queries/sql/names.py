"""Find the fields of documents that a query reads, and replace them by columns of the table `docs`.

A name is looked up in this order: columns of derived tables, fields of the store, and columns of the result. A name
that is found nowhere is a field that no document has, so its value is NULL. If a term of ORDER BY is just a name,
columns of the result come first. Names of fields are case-sensitive, names of tables are not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from libraries.document_queries.paths import Path
from libraries.document_queries.sql.errors import SQLError
from libraries.document_queries.sql.parsing import DIALECT
from libraries.document_queries.values import MAX_DEPTH

TABLE = "docs"
FIELD = "field"
"""Key in a node's `meta`. Its value is the number of the field that the node refers to."""

FieldPath = tuple[str, ...]
_CTEs = dict[str, list[str] | None]
"""Name of a table from WITH -> names of the table's columns, or None if these are not known."""


def column_name(number: int) -> str:
    """Return the name of a field's column in the table that is registered with DuckDB."""
    return f"#{number}"


def check_names(names: Sequence[str]) -> None:
    """Raise SQLError if two columns of an answer have the same name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise SQLError(f"two columns of the answer are called {name!r}; rename one with AS", "name")
        seen.add(name)


@dataclass
class Statement:
    """A query whose fields are known. In `tree`, fields are columns of `docs` and are marked with `FIELD`."""

    tree: exp.Query
    fields: list[FieldPath]
    names: list[str] | None
    """The names of the result's columns; None if DuckDB chooses them."""


@dataclass
class _Source:
    """A table in FROM."""

    alias: str
    columns: Sequence[str] | None = ()
    """Names of a derived table's columns; None if they are not known."""
    is_docs: bool = False


@dataclass
class _Scope:
    """The tables and column names of one SELECT."""

    sources: list[_Source] = field(default_factory=list)
    aliases: set[str] = field(default_factory=set)


class Resolver:
    """Resolves the names of one query."""

    def __init__(self, has_field: Callable[[FieldPath], bool], all_fields: Callable[[], Sequence[str]]) -> None:
        """`has_field` returns whether documents may have a field. `all_fields` returns the names of the fields for
        `*`."""
        self._has_field, self._all_fields = has_field, all_fields
        self._numbers: dict[FieldPath, int] = {}

    def statement(self, tree: exp.Query) -> Statement:
        """Resolve all names of a query, in place. Raises SQLError."""
        names = self._query(tree, [], {}, is_top=True)
        check_names(names or ())
        return Statement(tree, list(self._numbers), names)

    def _query(self, query: exp.Expr, outer: list[_Scope], ctes: _CTEs, is_top: bool = False) -> list[str] | None:
        """Return the names of a query's columns; None if they are not known."""
        ctes = dict(ctes)
        if with_ := query.args.get("with_"):
            if with_.args.get("recursive"):
                raise SQLError("WITH RECURSIVE is not supported; write the query without it", "statement")
            for cte in with_.expressions:
                found = self._query(cte.this, [], ctes)
                listed = [each.name for each in cte.args["alias"].args.get("columns") or ()]
                ctes[cte.alias.lower()] = listed or found
        if isinstance(query, exp.Subquery):
            return self._query(query.this, outer, ctes, is_top)
        if isinstance(query, exp.SetOperation):
            names = self._query(query.left, outer, ctes, is_top)
            self._query(query.right, outer, ctes)
            scope = _Scope(aliases=set(names or ()))
            for part in (query.args.get("order"), query.args.get("limit"), query.args.get("offset")):
                if part is not None:
                    self._columns(part, [*outer, scope], ctes, is_order=True)
            return names
        if not isinstance(query, exp.Select):
            raise SQLError(f"{query.key.upper()} is not supported here; write a SELECT", "statement")
        return self._select(query, outer, ctes, is_top)

    def _select(self, select: exp.Select, outer: list[_Scope], ctes: _CTEs, is_top: bool) -> list[str] | None:
        scope = _Scope()
        scopes = [*outer, scope]
        from_ = select.args.get("from_")
        joins = select.args.get("joins") or []
        for source in ([from_.this] if from_ is not None else []) + [join.this for join in joins]:
            self._source(source, scope, scopes, ctes)
        for join in joins:
            if join.args.get("using"):
                raise SQLError("JOIN ... USING is not supported; write ON a.field = b.field", "statement")
            if join.args.get("on") is not None:
                self._columns(join.args["on"], scopes, ctes)
        if any(select.args.get(name) for name in ("laterals", "into", "locks", "pivots", "connect")):
            raise SQLError(
                "SELECT with LATERAL, INTO, PIVOT, CONNECT BY or locks is not supported; use joins and subqueries",
                "statement",
            )
        scope.aliases = {item.alias for item in select.expressions if isinstance(item, exp.Alias)}
        names = self._expanded(select, scope, is_top)
        for name, part in select.args.items():
            if name in ("from_", "joins", "with_"):
                continue
            for node in part if isinstance(part, list) else [part]:
                if isinstance(node, exp.Expr):
                    self._columns(node, scopes, ctes, is_order=name == "order")
        return names

    def _source(self, source: exp.Expr, scope: _Scope, scopes: list[_Scope], ctes: _CTEs) -> None:
        alias = source.alias_or_name
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
            if source.args.get("joins"):
                raise SQLError("joins in brackets are not supported; write FROM docs a JOIN docs b ON ...", "statement")
            name = source.name
            if source.args.get("db") is None and name.lower() in ctes:
                scope.sources.append(_Source(alias.lower(), ctes[name.lower()]))
                return
            if name.lower() != TABLE or source.args.get("db") is not None:
                raise SQLError(f"there is no table {source.sql(dialect=DIALECT)[:80]}; the table is docs", "table")
            if source.args.get("alias") and source.args["alias"].args.get("columns"):
                raise SQLError(
                    "docs AS d(a, b), an alias with column names, is not supported; "
                    "write docs AS d, and use the field names",
                    "name",
                )
            source.set("this", exp.to_identifier(TABLE, quoted=True))
            source.set("alias", exp.TableAlias(this=exp.to_identifier(alias.lower(), quoted=True)))
            scope.sources.append(_Source(alias.lower(), is_docs=True))
        elif isinstance(source, exp.Subquery) and isinstance(source.this, exp.Query):
            _check_sees_docs(source.this, scope, scopes)
            names = self._query(source, [each for each in scopes if each is not scope], ctes)
            listed = source.args["alias"].args.get("columns") if source.args.get("alias") else None
            scope.sources.append(_Source(alias.lower(), [each.name for each in listed] if listed else names))
        elif isinstance(source, exp.Unnest | exp.Values):
            for node in source.expressions:
                self._columns(node, scopes, ctes)
            given = source.args.get("alias")
            listed = [each.name for each in given.args.get("columns") or ()] if given else []
            scope.sources.append(_Source(alias.lower(), listed or (None if not alias else [alias, "unnest"])))
        else:
            raise SQLError(f"FROM {source.sql(dialect=DIALECT)[:80]} is not supported; the table is docs", "table")

    def _expanded(self, select: exp.Select, scope: _Scope, is_top: bool) -> list[str] | None:
        """Replace `*` by all fields, and name each column that has no name (see `_named`). Return the names of the
        columns; None if they are not known."""
        items: list[exp.Expr] = []
        is_known = True
        for item in select.expressions:
            if not _is_star(item):
                items.append(item)
                continue
            is_star = isinstance(item, exp.Star)
            table = None if is_star else item.table.lower()
            of_docs = [each for each in scope.sources if each.is_docs and table in (None, each.alias)]
            star = item if is_star else item.this
            if any(star.args.values()):
                raise SQLError("* with EXCLUDE, REPLACE or RENAME is not supported; name the fields", "name")
            if len(of_docs) != 1 or (is_star and len(scope.sources) > 1):
                if of_docs:
                    raise SQLError("* is supported only if docs is the only table in FROM; name the fields", "name")
                is_known = False
                items.append(item)
                continue
            items += [
                exp.alias_(
                    exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(of_docs[0].alias)),
                    exp.to_identifier(name, quoted=True),
                )
                for name in self._all_fields()
            ]
        named = [
            item if isinstance(item, exp.Alias) or _is_star(item) else _named(item, scope, is_top) for item in items
        ]
        select.set("expressions", named)
        return [item.alias for item in named] if is_known else None

    def _columns(
        self,
        node: exp.Expr,
        scopes: list[_Scope],
        ctes: _CTEs,
        is_order: bool = False,
    ) -> None:
        """Resolve the columns at and below a node. Nested queries are resolved in their own scope."""
        if isinstance(node, exp.Query):
            self._query(node, scopes, ctes)
            return
        if isinstance(node, exp.Ordered) and is_order:
            term = node.this.unnest()
            is_order = isinstance(term.this.unnest() if isinstance(term, exp.Collate) else term, exp.Column)
        if isinstance(node, exp.Comprehension):
            raise SQLError("[... FOR x IN list] is not supported; write list_transform(list, x -> ...)", "statement")
        if isinstance(node, exp.Columns | exp.PositionalColumn) or (
            isinstance(node, exp.Anonymous) and node.name.lower() == "columns"
        ):
            raise SQLError("COLUMNS(...) and column positions (#1) are not supported; name the fields", "name")
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.PositionalColumn):
            self._column(node, scopes, is_order)
            return
        for child in list(node.iter_expressions()):
            self._columns(child, scopes, ctes, is_order)

    def _column(self, column: exp.Column, scopes: list[_Scope], is_order: bool) -> None:
        if isinstance(column.this, exp.Star):
            return
        names = [part.name for part in column.parts]
        top: exp.Expr = column
        while (
            isinstance(top.parent, exp.Dot) and top.parent.this is top and type(top.parent.expression) is exp.Identifier
        ):
            top = top.parent
            names.append(top.expression.name)
        found = self._field_of(names, scopes, is_order)
        if found is None:
            return
        alias, path = found
        if len(path) > MAX_DEPTH:
            raise SQLError(
                f"a path of {len(path)} names reaches no field; documents are at most {MAX_DEPTH} deep", "name"
            )
        number = self._numbers.setdefault(path, len(self._numbers))
        replaced = exp.column(
            exp.to_identifier(column_name(number), quoted=True), table=exp.to_identifier(alias, quoted=True)
        )
        replaced.meta[FIELD] = number
        top.replace(replaced)

    def _field_of(self, names: list[str], scopes: list[_Scope], is_order: bool) -> tuple[str, FieldPath] | None:
        """Return the alias of the table and the path of a field. Return None if the name does not refer to a field."""
        first = names[0]
        innermost = scopes[-1]
        if len(names) == 1 and is_order and first in innermost.aliases:
            return None
        if len(names) > 1:
            for scope in reversed(scopes):
                for source in scope.sources:
                    if source.alias == first.lower():
                        return (source.alias, tuple(names[1:])) if source.is_docs else None
        for scope in reversed(scopes):
            derived = [source for source in scope.sources if not source.is_docs]
            for source in derived:
                if source.columns is not None and first.lower() in {name.lower() for name in source.columns}:
                    return None
            docs = [source for source in scope.sources if source.is_docs]
            if not docs:
                if derived:
                    return None
                continue
            is_alias = len(names) == 1 and first in innermost.aliases
            if is_alias and not self._has_field(tuple(names)):
                return None
            if any(source.columns is None for source in derived) and not self._has_field(tuple(names)):
                return None
            if len(docs) > 1:
                aliases = " or ".join(f"{source.alias}.{first}" for source in docs)
                raise SQLError(f"{first} may be a field of several tables; write {aliases}", "name")
            return docs[0].alias, tuple(names)
        return None


def _named(item: exp.Expr, scope: _Scope, is_top: bool) -> exp.Expr:
    """Give a column the name that a reader expects: the path of a field, or the text of an expression. In derived
    tables, the name of a field is only the last name of its path."""
    parts = [part.name for part in item.parts] if isinstance(item, exp.Column | exp.Dot) and _is_path(item) else []
    if len(parts) > 1 and any(source.alias == parts[0].lower() for source in scope.sources):
        parts = parts[1:]
    text = item.sql(dialect=DIALECT, normalize_functions="lower")
    name = text if not parts else str(Path(parts)) if is_top else parts[-1]
    return exp.alias_(item, exp.to_identifier(name, quoted=True))


def _check_sees_docs(query: exp.Query, scope: _Scope, scopes: list[_Scope]) -> None:
    """Raise SQLError if a nested query in FROM names a field, but has no FROM itself. Such a nested query cannot see
    the fields of docs."""
    others = [source for each in scopes if each is not scope for source in each.sources]
    if not isinstance(query, exp.Select) or query.args.get("from_") is not None or others or not scope.sources:
        return
    aliases = {item.alias.lower() for item in query.expressions}
    unknown = next((each for each in query.find_all(exp.Column) if each.parts[0].name.lower() not in aliases), None)
    if unknown is not None and unknown.find_ancestor(exp.Select) is query:
        name = unknown.sql(dialect=DIALECT)[:80]
        raise SQLError(
            f"a subquery in FROM cannot use fields of docs, so {name} is unknown; "
            f"write FROM docs, unnest({name}) AS z(x)",
            "name",
        )


def _is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))


def _is_path(item: exp.Expr) -> bool:
    while isinstance(item, exp.Dot):
        if type(item.expression) is not exp.Identifier:
            return False
        item = item.this
    return isinstance(item, exp.Column)
