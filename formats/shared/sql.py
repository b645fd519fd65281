"""Names of columns in SQL, whichever library speaks it."""

from __future__ import annotations

from collections.abc import Sequence


def selected(columns: Sequence[str], known: Sequence[str], table: str = "") -> str:
    """The list of a SELECT, of columns of this table if one is named.

    Raises KeyError for what is not a column, which SQL may know under other names: it does not tell capitals from small
    letters, and its readers add columns, such as `filename`.
    """
    if missing := set(columns).difference(known):
        raise KeyError(f"no columns are called {sorted(missing)}; there are: {', '.join(known)}")
    return ", ".join(f"{table}.{quoted(name)}" if table else quoted(name) for name in columns)


def quoted(name: str) -> str:
    """A name as SQL writes one that may hold anything."""
    return '"' + name.replace('"', '""') + '"'


def _folded(letter: str) -> str:
    return letter.lower() if letter.isascii() else letter


def same_but_for_case(names: Sequence[str]) -> str | None:
    """Why a table of SQL cannot have columns of these names; None when it can. It takes letters of ASCII alike."""
    seen: dict[str, str] = {}
    for name in names:
        folded = name.lower() if name.isascii() else "".join(_folded(letter) for letter in name)
        if folded in seen:
            return f"SQL takes the names of columns {seen[folded]!r} and {name!r} for one"
        seen[folded] = name
    return None
