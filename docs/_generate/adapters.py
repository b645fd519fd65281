"""Show what formats and their calls declare, as lists and tables."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from adapters.contract import Native, TabularFormat
from formats.registry import FORMATS
from formats.shared.wrong_answers import WRONG_ANSWERS
from reports.text.page import markdown_table

_WIDTH = 120


def _engines() -> Iterator[type[TabularFormat]]:
    """Yield the engines of all our formats, without raw I/O."""
    for name in FORMATS:
        for engine in FORMATS.engines(name):
            if engine.native is not Native.BUFFERS and engine.__module__.startswith("formats."):
                yield engine


def formats() -> str:
    """Return the names of all formats, wrapped for a list item."""
    titles = sorted({engine.title for engine in _engines()}, key=str.lower)
    return "\n" + textwrap.indent(textwrap.fill(", ".join(titles), _WIDTH - 2), "  ") + "\n  "


def native(kind: Native) -> str:
    """Return this kind with the engines whose calls take and return it."""
    by_engine: dict[str, list[str]] = {}
    for engine in _engines():
        if engine.native is kind:
            by_engine.setdefault(engine.engine or engine.title, []).append(engine.title)
    named = [name if titles == [name] else f"{name}: {', '.join(titles)}" for name, titles in sorted(by_engine.items())]
    return f"`{kind.value}` ({'; '.join(named)})"


def wrong_answers() -> str:
    """Return a table of library calls that return wrong data."""
    lines = [(each.distribution, f"`{each.call}`", each.answer, each.instead) for each in WRONG_ANSWERS]
    return markdown_table(("library", "call", "result", "instead"), lines)


def broken_columns() -> str:
    """Return a table of the kinds of column that a variant corrupts."""
    lines = []
    for engine in _engines():
        usual = engine()
        found = {(usual.variant, kind): fault for kind, fault in usual.known_faults.items()}
        for key, setting in engine.settings.items():
            for value in setting.choices if key in ("save", "read", "parser") else ():
                other = engine({key: str(value)})
                for kind, fault in other.known_faults.items():
                    if usual.known_faults.get(kind) != fault:
                        found[other.variant, kind] = fault
        lines += [(f"`{variant}`", kind, fault) for (variant, kind), fault in found.items()]
    return markdown_table(("variant", "kind of column", "result"), lines)
