"""Write column names in SQL statements, for all libraries that are called by SQL."""

from __future__ import annotations

from collections.abc import Sequence


def selected(columns: Sequence[str], known: Sequence[str], table: str = "") -> str:
    """Return the column names as text for a SELECT statement: '"a", "b"', or 't."a", t."b"' if `table` is 't'.

    `known` are the names of all columns. Raises KeyError for a name that is not in `known`. SQL might accept such a
    name, because SQL ignores case, and because some readers add columns such as `filename`.
    """
    if missing := set(columns).difference(known):
        raise KeyError(f"the table has no columns {sorted(missing)}; its columns: {', '.join(known)}")
    return ", ".join(f"{table}.{quoted(name)}" if table else quoted(name) for name in columns)


def quoted(name: str) -> str:
    """Return a name in double quotes, as SQL requires. The name may contain any characters."""
    return '"' + name.replace('"', '""') + '"'


def _folded(letter: str) -> str:
    return letter.lower() if letter.isascii() else letter


def same_but_for_case(names: Sequence[str]) -> str | None:
    """Return the reason why an SQL table cannot have columns of these names, or None.

    SQL does not distinguish names that differ only by the case of ASCII letters."""
    seen: dict[str, str] = {}
    for name in names:
        folded = name.lower() if name.isascii() else "".join(_folded(letter) for letter in name)
        if folded in seen:
            return f"SQL takes the column names {seen[folded]!r} and {name!r} for the same"
        seen[folded] = name
    return None
