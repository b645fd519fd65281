"""Memory of a merge by number of columns: `python -m libraries.document_store.tests.layouts.merge_memory`.

Documents have the same size for any number of columns, and leaves the same number of documents.
"""

from __future__ import annotations

import random
import sys
import tracemalloc

import msgspec
import numpy as np

from libraries.document_store.layouts import ComponentOptions, merge_components, open_component, write_component
from libraries.document_store.tests.layouts.components import MemoryFile, new_schema

_COMPONENTS = 3
_ROW_BYTES = 8000
_FIELD_BYTES = 1
"""MessagePack's length of a text of less than 256 bytes."""


class Nowhere:
    """A file that keeps nothing."""

    def write(self, data: bytes | memoryview) -> None:
        """Drop the data."""


def peak_bytes(columns: int, records: int) -> tuple[int, int]:
    """Return the peak memory of merging components with that many columns, and the encoded size of one output leaf."""
    chosen = random.Random(columns)
    options = ComponentOptions(leaf_records=2 * records, leaf_bytes=1 << 40)
    schema, components = new_schema(), []
    names = [str(column) for column in range(columns - 1)]
    text_bytes = _ROW_BYTES // len(names) - _FIELD_BYTES
    texts = [chosen.randbytes(text_bytes).hex()[:text_bytes] for _ in range(1000)]
    for component in range(_COMPONENTS):
        # Keys of all components are interleaved, so that every output leaf combines leaves of each.
        keys = np.arange(component, records * _COMPONENTS, _COMPONENTS, dtype=np.int64)
        rows = [
            msgspec.msgpack.encode({"id": key} | dict(zip(names, chosen.choices(texts, k=len(names)), strict=True)))
            for key in keys.tolist()
        ]
        file = MemoryFile()
        schema = write_component(file, "amax", [(keys, rows)], schema, options).schema
        components.insert(0, open_component(file))
    del rows
    tracemalloc.start()
    try:
        info = merge_components(Nowhere(), components, True, options)
        return tracemalloc.get_traced_memory()[1], info.encoded_bytes // info.leaf_count
    finally:
        tracemalloc.stop()


def main() -> int:
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for columns in (16, 100, 300, 933):
        peak, leaf = peak_bytes(columns, records)
        print(f"{columns:4} columns: {peak / 1e6:6.2f} MB at most, {leaf / 1e6:5.2f} MB in an encoded leaf")
    return 0


if __name__ == "__main__":
    sys.exit(main())
