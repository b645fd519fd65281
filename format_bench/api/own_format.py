"""Choose the baseline: the format of the user's own file, with the default call for it.

The default call for a table is pandas' call without options, or fastavro's for Avro, which pandas does not support. The
default call for images is Pillow's. The format is derived from file names alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench_runner.data_kinds import DOCUMENTS, IMAGES, TABLES, DataKind
from bench_runner.variants import Variant, variant_of
from data_generator.errors import DataError
from data_generator.imported.byte_stream import packing_of
from data_generator.imported.images import image_input
from data_generator.imported.tables import table_input

PLAIN_CSV = variant_of("csv[engine=pandas]")
OF_TABLES: Mapping[str, str] = {
    table_input.CSV: PLAIN_CSV,
    table_input.JSON: "json[engine=pandas]",
    table_input.PARQUET: "parquet[engine=pandas,codec=snappy]",
    table_input.ARROW: "feather[engine=pandas,codec=lz4]",
    table_input.ORC: "orc[engine=pandas,codec=none]",
    # pandas' to_excel uses xlsxwriter if it is installed. Format Bench's optional dependencies `excel` include it.
    table_input.EXCEL: "excel[save=xlsxwriter,read=openpyxl]",
    table_input.AVRO: "avro[engine=fastavro,codec=none]",
}
PLAIN_JSON_LINES = variant_of("json-lines[engine=msgspec]")
"""The baseline for the user's documents: JSON Lines, because documents are always read from such a file."""
CODECS: Mapping[str, str] = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd"}
"""Suffix of a compressed file -> the codec that pandas uses for this suffix."""
OF_IMAGES: Mapping[str, str] = {
    ".png": "png[engine=pillow]",
    ".jpg": "jpeg[engine=pillow]",
    ".jpeg": "jpeg[engine=pillow]",
    ".webp": "webp[engine=pillow]",
}


PLAIN: Mapping[str, Variant] = {TABLES.name: PLAIN_CSV, IMAGES.name: PLAIN_CSV, DOCUMENTS.name: PLAIN_JSON_LINES}
"""Name of the kind of data -> the baseline if the user's own format is not known."""


def plain_call(data: Path, kind: DataKind) -> str | None:
    """Return the name of the variant that writes and reads the user's file by the default call for its format.

    Return None if the files have several formats, if the format is not measured, or if the path cannot be used. In the
    last case planning the run reports the error.
    """
    if kind.has_key:
        return PLAIN[kind.name]
    try:
        return _call_of_table(data) if kind.has_columns else _call_of_images(data)
    except DataError:
        return None


def _call_of_images(data: Path) -> str | None:
    variants = {OF_IMAGES.get(Path(file.name).suffix.lower()) for file in image_input.find(data).files}
    return variants.pop() if len(variants) == 1 else None


def _call_of_table(data: Path) -> str:
    found = table_input.find(data)
    codec = CODECS.get(packing_of(found.files[0].name))
    plain = OF_TABLES[found.kind]
    return f"{plain.removesuffix(']')},codec={codec}]" if codec else plain
