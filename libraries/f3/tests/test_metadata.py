"""Metadata are preserved, absent fields have their specified meaning, and forged metadata do no harm."""

import contextlib
import random
from dataclasses import replace

import flatbuffers
import numpy as np
import pyarrow as pa
import pytest

from libraries.f3.container import metadata
from libraries.f3.container.flat import Table, root
from libraries.f3.container.metadata import Chunk, EncUnit, Footer, LogicalTree, RowGroup, Section
from libraries.f3.errors import F3Error

PLAIN = EncUnit(size_bytes=10, rows=5, encoding=metadata.CUSTOM_WASM, wasm_id=0, compression=metadata.UNCOMPRESSED)
PACKED = EncUnit(size_bytes=7, rows=6, encoding=metadata.CUSTOM_WASM, wasm_id=3, compression=metadata.LZ4)
NATIVE = EncUnit(size_bytes=1, rows=2, encoding=metadata.CASCADE, wasm_id=None, compression=metadata.ZSTD)
CHUNKS = [
    Chunk(0, 18, 13, metadata.NO_DICTIONARY, (PLAIN, PACKED, NATIVE)),
    Chunk(2**40, 17, 6, metadata.LOCAL_DICTIONARY, (PLAIN, PACKED), checksum=0),
    Chunk(30, 10, 5, metadata.LOCAL_DICTIONARY, (PLAIN,), dictionary_units=(0,)),
    Chunk(40, 7, 6, metadata.SHARED_DICTIONARY, (PACKED,), dictionary=0, checksum=2**64 - 1),
    Chunk(47, 0, 0, metadata.SHARED_DICTIONARY, (), dictionary=9),
]


def column(chunks=CHUNKS):
    return metadata.packed_column(chunks)


def test_io_units_come_back():
    assert metadata.read_column(memoryview(column()), "column") == CHUNKS
    assert metadata.read_column(memoryview(column([])), "column") == []


def test_modules_come_back():
    sections = [Section(2**40, 7), Section(0, 0)]
    assert metadata.read_modules(memoryview(metadata.packed_modules(sections))) == sections


def test_module_0_differs_from_no_module():
    """Default values are omitted, so the presence of the table decides (specification 2.2)."""
    read = metadata.read_column(memoryview(column()), "column")[0]
    assert [unit.wasm_id for unit in read.units] == [0, 3, None]


def test_an_original_s_unit_without_an_empty_vector_is_read():
    """The file has wasm_encoding without mini_encunit_sizes (specification 2.2), and units that do not share
    encodings."""
    builder = flatbuffers.Builder(64)
    builder.StartObject(0)
    wasm = builder.EndObject()
    builder.StartObject(2)
    builder.PrependUint8Slot(0, metadata.CUSTOM_WASM, 0)
    builder.PrependUOffsetTRelativeSlot(1, wasm, 0)
    encoding = builder.EndObject()
    builder.StartObject(3)
    builder.PrependUint32Slot(0, 10, 0)
    builder.PrependUOffsetTRelativeSlot(1, encoding, 0)
    builder.PrependUint32Slot(2, 5, 0)
    builder.Finish(builder.EndObject())
    assert metadata._unit(root(memoryview(bytes(builder.Output())), "unit"), "unit", 0) == PLAIN


def footer_bytes(**changed):
    pushed_down = LogicalTree(metadata.LIST_OF_STRUCT_OF_PRIMITIVE)
    described = {
        "schema": b"schema",
        "tree": LogicalTree(metadata.STRUCT, (LogicalTree(metadata.FLAT), pushed_down)),
        "groups": [
            RowGroup(rows=13, data=Section(0, 18), columns=[Section(100, 20), Section(120, 30)]),
            RowGroup(rows=2**32 - 1, data=Section(2**40, 2**33), columns=[Section(150, 20), Section(170, 30)]),
        ],
        "optional": {metadata.WASM_SECTION: Section(77, 8), "another": Section(85, 9)},
        "dictionary_chunks": [CHUNKS[0], replace(CHUNKS[3], scope=metadata.NO_DICTIONARY, dictionary=None)],
        "dictionary_positions": [(0,), (0, 1)],
        "dictionary_schema": pa.schema([]).serialize().to_pybytes(),
    }
    return metadata.packed_footer(**(described | changed))


def test_a_footer_comes_back():
    footer = Footer(memoryview(footer_bytes()))
    assert bytes(footer.schema) == b"schema"
    assert list(footer.row_counts) == [13, 2**32 - 1]
    assert (footer.columns(0), footer.columns(1)) == (2, 2)
    assert footer.column(1, 1) == Section(170, 30)
    assert [footer.kind(place) for place in (0, 1)] == [metadata.FLAT, metadata.LIST_OF_STRUCT_OF_PRIMITIVE]
    assert footer.optional_section(metadata.WASM_SECTION) == Section(77, 8)
    assert footer.optional_section("another") == Section(85, 9)
    assert footer.optional_section("statistics") is None
    assert footer.dictionaries == 2
    assert [footer.dictionary(number) for number in (0, 1)] == [(0,), (0, 1)]
    assert footer.dictionary_chunk(0) == CHUNKS[0]
    assert bytes(footer.dictionary_schema) == pa.schema([]).serialize().to_pybytes()


def test_the_footer_has_what_the_original_asks_for():
    """Specification 2.3 and 9.2 require all six fields, both versions and all vectors, even if they are empty."""
    empty = RowGroup(rows=0, data=Section(0, 0), columns=[])
    packed = footer_bytes(groups=[empty], dictionary_chunks=[], dictionary_positions=[])
    table = root(memoryview(packed), "footer")
    assert all(table.has(slot) for slot in range(6))
    versions = [
        (each.u8(0), each.needed(1, "version").u64(0), each.needed(1, "version").u64(1)) for each in table.elements(4)
    ]
    assert versions == [(metadata.CASCADE, 0, 21), (metadata.CUSTOM_WASM, 1, 0)]
    shared = table.needed(5, "shared")
    assert all(shared.has(slot) for slot in range(3))
    groups = table.needed(2, "groups")
    assert all(groups.has(slot) for slot in range(4))


def test_one_of_many_columns_is_looked_up_without_a_walk(monkeypatch):
    sections = [Section(place, 1) for place in range(10_000)]
    packed = footer_bytes(groups=[RowGroup(rows=1, data=Section(0, 1), columns=sections)])
    monkeypatch.delattr(Table, "elements")
    made = []
    monkeypatch.setattr(metadata, "_section", lambda table, what: made.append(what) or Section(table.u64(0), 1))
    footer = Footer(memoryview(packed))
    assert footer.column(0, 7_000) == Section(7_000, 1)
    assert made == ["metadata of column 7000, row group 0"]


@pytest.mark.parametrize(
    ("chunk", "told"),
    [
        (replace(CHUNKS[0], scope=7), "scope 7"),
        (replace(CHUNKS[0], size_bytes=19), "has 19 bytes, .* have 18"),
        (replace(CHUNKS[0], units=(replace(PLAIN, compression=3),)), "compression type 3"),
        (replace(CHUNKS[2], dictionary_units=(0, 2)), "names 2 dictionaries, but has only 1 EncUnits"),
    ],
)
def test_an_io_unit_that_cannot_be_is_refused(chunk, told):
    with pytest.raises(F3Error, match=f"here, IOUnit 0.*{told}"):
        metadata.read_column(memoryview(column([chunk])), "here")


def test_a_dictionary_that_names_an_io_unit_twice_is_refused():
    with pytest.raises(F3Error, match="names an IOUnit twice"):
        Footer(memoryview(footer_bytes(dictionary_positions=[(0, 0)]))).dictionary(0)


def test_a_footer_without_row_groups_is_refused():
    with pytest.raises(F3Error, match="no row groups"):
        Footer(memoryview(footer_bytes(groups=[])))


def looked_up(data):
    """Return everything that readers look up in a footer."""
    with contextlib.suppress(F3Error):
        footer = Footer(memoryview(data))
        for group in range(min(len(footer.row_counts), 5)):
            for place in range(min(footer.columns(group), 5)):
                footer.column(group, place)
        footer.optional_section(metadata.WASM_SECTION)
        bytes(footer.schema)
        footer.kind(0)
        for number in range(min(footer.dictionaries, 5)):
            for place in footer.dictionary(number):
                footer.dictionary_chunk(place)
        bytes(footer.dictionary_schema)


def walked(data):
    with contextlib.suppress(F3Error):
        metadata.read_column(memoryview(data), "column")


@pytest.mark.parametrize(("whole", "walk"), [(footer_bytes(), looked_up), (column(), walked)], ids=["footer", "column"])
@pytest.mark.slow
def test_forged_metadata_end_in_an_error_or_in_values(whole, walk):
    random.seed(3)
    for place in range(len(whole)):
        for forged in (0, 1, 127, 255, whole[place] ^ 1, whole[place] ^ 128):
            walk(whole[:place] + bytes((forged,)) + whole[place + 1 :])
        walk(whole[:place])
    for place in range(len(whole) - 4):
        walk(whole[:place] + random.randbytes(4) + whole[place + 4 :])


def test_metadata_from_a_template_are_those_that_a_builder_makes():
    """Structures and numbers vary, with zeros, which are not stored."""
    rng = np.random.default_rng(12)

    def number(most):
        return int(rng.choice([0, 1, 255, rng.integers(0, most), most - 1]))

    for _ in range(500):
        chunks = []
        for _ in range(int(rng.integers(0, 4))):
            kinds = [(255, int(rng.integers(0, 2)), int(rng.integers(0, 3))) for _ in range(int(rng.integers(0, 5)))]
            units = tuple(metadata.EncUnit(number(2**32), number(2**32), *kind) for kind in kinds)
            scope = int(rng.integers(1, 4))
            ordinals = tuple(range(0, len(units), 2)) if scope == metadata.LOCAL_DICTIONARY else ()
            dictionary = int(rng.integers(0, 3)) if scope == metadata.SHARED_DICTIONARY else None
            checksum = None if rng.random() < 0.5 else number(2**63)
            chunks.append(
                metadata.Chunk(
                    number(2**63), number(2**32), number(2**63), scope, units, dictionary, ordinals, checksum
                )
            )
        assert metadata.packed_column(chunks) == metadata._built_column(chunks)
