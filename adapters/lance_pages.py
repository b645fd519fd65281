"""Read the encodings of a Lance data set's pages, for tables and images.

pylance returns the encoding of a page only as a printed protobuf message (Lance documentation, file format, encodings).
This module parses such messages. It does not import pylance. Its callers have loaded pylance already, and pass
pylance's file reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from adapters.contract import Stored
from adapters.errors import RefusedData

CODEC_KEY, LEVEL_KEY = b"lance-encoding:compression", b"lance-encoding:compression-level"
"""Keys in a field's metadata that select Lance's compression (Lance documentation, file format, encodings)."""

STRUCTURAL_KEY = b"lance-encoding:structural-encoding"
"""Key in a field's metadata that selects the layout of the field's pages. The key has no effect in file format 2.0."""

LAYOUTS = {"miniblock": ("MiniBlockLayout", "Chunked"), "fullzip": ("FullZipLayout", "Zipped")}
"""Maps this project's name of a page layout to Lance's names for this layout: the name up to file format 2.2, and the
name from 2.3 on."""

_ENCODING = re.compile(r"\b([A-Z]\w+)\(\s*\1\b")
_PLANAR, _PLANE = "PlanarLayout", re.compile(r"\b(Chunked|Zipped)\(\s*\1Values\b")
"""`_PLANAR` is the layout of all pages from file format 2.3 on. These pages name the layout of their values separately,
and `_PLANE` finds that name."""
_SCHEME = re.compile(r"\bscheme: CompressionAlgorithm(\w+)")
_DICTIONARY = "dictionary: Some("


def stored_of(location: Path, dataset: Any, open_file: Callable[[str], Any]) -> Stored:
    """Return codec and encodings of all pages of the data set at `location`.

    `open_file` is `lance.file.LanceFileReader`. The returned codec is 'auto' if the schema requests no codec, and
    'none' if it requests 'none' and Lance used none. Otherwise it is the codec that Lance used for the pages' values.
    Several codecs are joined by '+'. Lance always compresses dictionaries with LZ4, which is therefore listed among the
    encodings, not as the codec.

    Raises RefusedData if the schema requests a codec, but Lance compressed no page with it, for example because all
    columns are booleans.
    """
    pages = [page for path in sorted((location / "data").rglob("*.lance")) for page in _pages(open_file(str(path)))]
    asked = {(field.metadata or {}).get(CODEC_KEY, b"auto").decode() for field in dataset.schema}
    codec = "+".join(sorted(schemes(pages))) or "none"
    if codec == "none" and not asked & {"auto", "none"}:
        raise RefusedData(f"Lance compresses no page of this data with {'+'.join(sorted(asked))}")
    details = {"file format": str(dataset.data_storage_version)}
    return Stored("auto" if asked == {"auto"} else codec, tuple(sorted(encodings(pages))), details)


def check_layout(found: Iterable[str], structural: str) -> None:
    """Check that all pages with values have the requested layout.

    `found` are the layouts and encodings of the pages, and `structural` is the requested layout. Raises RefusedData if
    Lance chose another layout. For dictionaries, for example, Lance does not use the requested layout."""
    others = {
        name for asked, names in LAYOUTS.items() if structural != "default" and asked != structural for name in names
    }
    if wrong := others.intersection(found):
        names = ", ".join(sorted(wrong))
        raise RefusedData(
            f"Lance does not use structural={structural} for all of this data: some pages have the layout {names}"
        )


def _pages(file: Any) -> Iterator[str]:
    for column in file.metadata().columns:
        for page in column.pages:
            yield str(page.encoding)


def schemes(pages: Iterable[str]) -> set[str]:
    """Return the names of the codecs that compress the values of these pages, such as 'lz4' or 'zstd'."""
    return {scheme.lower() for page in pages for scheme in _SCHEME.findall(_apart(page)[0])}


def encodings(pages: Iterable[str]) -> set[str]:
    """Return Lance's names of the layouts and encodings of these pages. The names of encodings that are used inside
    dictionaries begin with "dictionary of"."""
    found = set()
    for page in pages:
        values, dictionary = _apart(page)
        found |= {*_ENCODING.findall(values), *_SCHEME.findall(values)}
        if values.startswith(_PLANAR):
            found |= {_PLANAR, *_PLANE.findall(values)}
        found |= {f"dictionary of {name}" for name in (*_ENCODING.findall(dictionary), *_SCHEME.findall(dictionary))}
    return found


def _apart(page: str) -> tuple[str, str]:
    """Split the printed message of a page into two strings: the message without its dictionary, and the dictionary.

    The second string is empty if the page has no dictionary."""
    start = page.find(_DICTIONARY)
    if start < 0:
        return page, ""
    open_brackets = 0
    for place in range(start + len(_DICTIONARY) - 1, len(page)):
        open_brackets += {"(": 1, ")": -1}.get(page[place], 0)
        if not open_brackets:
            return page[:start] + page[place + 1 :], page[start : place + 1]
    return page[:start], page[start:]
