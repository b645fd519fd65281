"""Names of columns in SQL, for all libraries that use it."""

from __future__ import annotations

from collections.abc import Sequence


def selected(columns: Sequence[str], known: Sequence[str], table: str = "") -> str:
    """Return the list of a SELECT, with columns of this table if one is named.

    Raises KeyError for a name that is not a column. SQL might accept it: it ignores case, and its readers add columns
    such as `filename`.
    """
    if missing := set(columns).difference(known):
        raise KeyError(f"no columns are named {sorted(missing)}; there are: {', '.join(known)}")
    return ", ".join(f"{table}.{quoted(name)}" if table else quoted(name) for name in columns)


def quoted(name: str) -> str:
    """Quote a name, which may contain anything."""
    return '"' + name.replace('"', '""') + '"'


def _folded(letter: str) -> str:
    return letter.lower() if letter.isascii() else letter


def same_but_for_case(names: Sequence[str]) -> str | None:
    """Return why a table of SQL cannot have columns of these names; None if it can. SQL ignores the case of ASCII."""
    seen: dict[str, str] = {}
    for name in names:
        folded = name.lower() if name.isascii() else "".join(_folded(letter) for letter in name)
        if folded in seen:
            return f"SQL takes the column names {seen[folded]!r} and {name!r} for the same"
        seen[folded] = name
    return None
