"""Mutated components raise CorruptError or can be read: `python -m libraries.document_store.tests.layouts.fuzzing N`.

Half of the mutations have a matching checksum, as an attacker would make them; they may give other documents, but raise
nothing except CorruptError. The others must be refused, or leave the documents unchanged.
"""

from __future__ import annotations

import random
import struct
import sys

import msgspec
import numpy as np
import xxhash

from libraries.document_store.errors import CorruptError
from libraries.document_store.layouts import COMPRESSIONS, LAYOUTS, ComponentOptions, merge_components, open_component
from libraries.document_store.layouts.footer import Footer, read_footer
from libraries.document_store.layouts.pages import PageReader, PageWriter, ReadCache
from libraries.document_store.tests.layouts.components import MemoryFile, alike, read_back, write

_TAIL = struct.Struct("<QQ8s")


def documents(seed: int) -> dict[int | str, dict | None]:
    """Return documents with all kinds of values, and anti-matter."""
    chosen = random.Random(seed)
    found: dict[int | str, dict | None] = {}
    for key in range(60):
        inner = {"c": [chosen.random(), None, chosen.randrange(1 << 40)], "d": "text " * chosen.randrange(9)}
        found[key] = {
            "id": key,
            "a": chosen.choice([1, 2.5, "one", None, True, b"\0\1", {"e": key}, [], {}]),
            "b": [inner] * chosen.randrange(3),
            chosen.choice(["f", "g"]): -key,
        }
        if chosen.random() < 0.1:
            found[key] = None
    return found


def mutated(data: bytes, chosen: random.Random) -> bytes:
    """Make one to four changes of bytes, or remove, repeat or truncate a piece."""
    out = bytearray(data)
    for _ in range(chosen.randrange(1, 5)):
        at = chosen.randrange(len(out)) if chosen.random() < 0.7 else chosen.randrange(min(64, len(out)))
        out[at] = chosen.choice([0, 1, 127, 128, 255, chosen.randrange(256), out[at] ^ 1 << chosen.randrange(8)])
    if chosen.random() < 0.1:
        start = chosen.randrange(len(out))
        out[start : start + chosen.randrange(9)] = out[: chosen.randrange(9)]
    return bytes(out)


def with_a_page_mutated(whole: bytes, chosen: random.Random) -> bytes:
    """Change one page before compression, and adapt lengths, checksums and footer to it."""
    file = MemoryFile(bytearray(whole))
    footer = read_footer(file)
    reader = PageReader(file, footer.compression, np.array(footer.page_bytes), ReadCache(0))
    pages = [reader.read(number)[0] for number in range(reader.count)]
    victim = chosen.randrange(len(pages))
    pages[victim] = mutated(pages[victim], chosen)[: 128 << 10] or b"\0"
    out = MemoryFile()
    writer = PageWriter(out, footer.compression)
    for page in pages:
        writer.append(page)
    return bytes(out.data) + footer_bytes(msgspec.structs.replace(footer, page_bytes=writer.stored_bytes))


def with_the_footer_mutated(whole: bytes, chosen: random.Random) -> bytes:
    """Change the footer, with a matching checksum."""
    length, _, mark = _TAIL.unpack(whole[-_TAIL.size :])
    start = len(whole) - _TAIL.size - length
    data = mutated(whole[start : start + length], chosen)
    return whole[:start] + data + _TAIL.pack(len(data), xxhash.xxh3_64_intdigest(data), mark)


def footer_bytes(footer: Footer) -> bytes:
    data = msgspec.msgpack.encode(footer)
    return data + _TAIL.pack(len(data), xxhash.xxh3_64_intdigest(data), b"DOCCOMP1")


def attempt(data: bytes) -> dict | None:
    """Read and merge a component completely; return its contents, None if it was refused."""
    try:
        component = open_component(MemoryFile(bytearray(data)))
        found = read_back(component)
        for leaf in component.leaves:
            for number in range(len(component.schema.leaves)):
                leaf.may_match(number, 1, 5)
        merge_components(MemoryFile(), [component], False, ComponentOptions())
        return found
    except CorruptError:
        return None


def fuzz(count: int, seed: int) -> tuple[int, int]:
    """Try `count` mutations; return how many were refused and how many gave documents. Raises AssertionError."""
    chosen = random.Random(seed)
    refused = 0
    starts = []
    for layout in LAYOUTS:
        for compression in COMPRESSIONS:
            wanted = documents(chosen.randrange(1 << 30))
            file, _ = write(layout, wanted, compression=compression, leaf_records=25)
            starts.append((wanted, bytes(file.data)))
    for number in range(count):
        wanted, whole = starts[number % len(starts)]
        way = chosen.randrange(4)
        if way < 2:
            found = attempt(mutated(whole, chosen))
            assert found is None or alike(found, wanted), f"mutation {number} of seed {seed} changed the documents"
        else:
            found = attempt((with_a_page_mutated, with_the_footer_mutated)[way - 2](whole, chosen))
        refused += found is None
    return refused, count - refused


def main() -> int:
    """Fuzz N times, with a seed as optional second number; return the exit code."""
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    refused, read = fuzz(count, seed)
    print(f"{count} mutated components: {refused} refused, {read} read")
    return 0


if __name__ == "__main__":
    sys.exit(main())
