"""Find the user's table by the names, sizes and times of files. This module opens no file.

A table is one file, whose suffix determines its kind, or a folder of Parquet files.
data_generator.imported.tables.table_import reads the content in a separate process.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from data_generator.errors import DataError
from data_generator.imported.byte_stream import PACKED, packing_of
from data_generator.imported.images.image_input import DEPTH, IMAGE_SUFFIXES
from data_generator.imported.read_options import ReadOptions
from data_generator.imported.refusal import printable
from data_generator.imported.user_files import InputFile, UserInput, below, entries, input_file, located, taken_file

CSV, JSON, PARQUET, ARROW, ORC, EXCEL, AVRO = "CSV", "JSON Lines", "Parquet", "Arrow", "ORC", "Excel", "Avro"

SUFFIXES: Mapping[str, str] = {
    ".csv": CSV,
    ".tsv": CSV,
    ".json": JSON,
    ".jsonl": JSON,
    ".ndjson": JSON,
    ".parquet": PARQUET,
    ".parq": PARQUET,
    ".pq": PARQUET,
    ".arrow": ARROW,
    ".arrows": ARROW,
    ".feather": ARROW,
    ".ipc": ARROW,
    ".orc": ORC,
    ".xls": EXCEL,
    ".xlsb": EXCEL,
    ".xlsm": EXCEL,
    ".xlsx": EXCEL,
    ".ods": EXCEL,
    ".avro": AVRO,
}
"""Suffix of a file -> kind of the file. The name of a CSV or JSON file may also end with a suffix for compression, such
as .gz (byte_stream.PACKED)."""
PACKED_KINDS = (CSV, JSON)
"""Kinds of files that may be compressed as a whole. Files of other kinds have compression within the format."""

TAKEN_OPTIONS: Mapping[str, tuple[str, ...]] = {
    CSV: ("columns", "delimiter", "decimal", "encoding", "header", "day_first"),
    JSON: ("columns", "encoding"),
    EXCEL: ("columns", "sheet", "header"),
}
"""Kind of file -> the options of ReadOptions that its reader supports. Files of other kinds contain types and names, so
their readers need no options."""

TAKEN = (
    "A table is read from CSV (.csv, .tsv), JSON (.json, .jsonl, .ndjson), both also compressed (.csv.gz and similar), "
    "Parquet, Feather/Arrow, ORC, Excel, Avro, or a folder of Parquet files."
)
_IMAGES = "For images, use the suite image."


def find(given: Path) -> UserInput:
    """Return the table at the user's path.

    The path may be a symbolic link. Within a folder, links are followed only to files below this folder. Raises
    DataError for a path that is missing, empty, not of a supported kind, or ambiguous.
    """
    path, about = located(given, TAKEN)
    if stat.S_ISDIR(about.st_mode):
        return UserInput(path, PARQUET, tuple(_parquet_files(path)))
    if not stat.S_ISREG(about.st_mode):
        raise DataError(f"{printable(path)} is neither a file nor a folder.", TAKEN)
    if path.suffix.lower() in IMAGE_SUFFIXES:
        raise DataError(f"{printable(path)} is an image and not a table.", _IMAGES)
    kind = kind_of(path.name)
    _check_packing(path, kind)
    if kind is None:
        raise DataError(f"{printable(path)} does not end with a suffix of a supported kind.", TAKEN)
    if about.st_size == 0:
        raise DataError(f"{printable(path)} is empty (0 bytes).", "Name a file with a table.")
    return UserInput(path, kind, (input_file(path, path.name, about),))


def check_options(found: UserInput, options: ReadOptions) -> None:
    """Raise DataError for an option that the reader of this kind of file would ignore."""
    foreign = options.foreign_to(TAKEN_OPTIONS.get(found.kind, ()))
    if foreign:
        able = ", ".join(kind for kind, taken in TAKEN_OPTIONS.items() if foreign[0] in taken)
        raise DataError(
            f"{printable(found.path)} is {found.kind}, but `{foreign[0]}={getattr(options, foreign[0])!r}` applies to "
            f"{able} only.",
            "Omit the option.",
            parameter=foreign[0],
            given=getattr(options, foreign[0]),
        )


def kind_of(name: str) -> str | None:
    """Return the kind of a file, judging by its suffix; None if the suffix is unknown.

    None is also returned for a compressed file that must be unpacked before it is read.
    """
    packing = packing_of(name)
    kind = _kind_inside(name)
    return kind if not packing or kind in PACKED_KINDS else None


def _kind_inside(name: str) -> str | None:
    """Return the kind of a file, ignoring a suffix for compression; None if the kind is unknown."""
    lowered = name.lower().removesuffix(packing_of(name))
    return next((kind for suffix, kind in SUFFIXES.items() if lowered.endswith(suffix)), None)


def _check_packing(path: Path, kind: str | None) -> None:
    """Raise DataError for a compressed file that must be unpacked, or whose `kind` is unknown."""
    packing = packing_of(path.name)
    if not packing or kind is not None:
        return
    unpack = f"{PACKED[packing]} {shlex.quote(printable(path.name))}"
    inside = _kind_inside(path.name)
    if inside is not None:
        raise DataError(f"{printable(path)} is compressed. {inside} files must be unpacked first.", f"Run: {unpack}")
    raise DataError(
        f"{printable(path)} is compressed, and its name does not show the kind of its content.",
        f"Rename it to end with .csv{packing} or .jsonl{packing} if it has CSV or JSON, or unpack it: {unpack}",
    )


def _parquet_files(path: Path) -> list[InputFile]:
    for folder in path.parents:
        _refuse_more_than_files(folder)
    others: list[str] = []
    files = list(_walk(path, path, 0, others))
    if not files:
        looked = f"has no Parquet files (searched {DEPTH} folders deep)"
        raise DataError(f"{printable(path)} {looked}.", f"{TAKEN} {_IMAGES}")
    if others:
        raise DataError(
            f"{printable(path)} has Parquet files and tables of other kinds: {printable(', '.join(others[:4]))}.",
            "Name one of these files, or put the Parquet files into a separate folder.",
        )
    folders = sorted({_without_values(file.name) for file in files})
    if len(folders) > 1:
        raise DataError(
            f"{printable(path)} has Parquet files in several folders: {printable(', '.join(folders))}.",
            "Name one of these folders.",
        )
    return files


def _without_values(name: str) -> str:
    """Return the folder part of a file's name, with '..' for values of partition columns, e.g. 'year=..' for
    'year=2024'."""
    folders = os.path.dirname(name).split(os.sep)
    return os.sep.join(_PARTITION.sub("=..", folder) for folder in folders) or "."


_PARTITION = re.compile("(?<=.)=.*", re.DOTALL)
"""Finds the value of a partition column in the name of a folder, e.g. '=2024' in 'year=2024'."""


def _walk(root: Path, folder: Path, depth: int, others: list[str]) -> Iterator[InputFile]:
    """Yield the Parquet files below the folder, ordered by name. Append the names of tables of other kinds to `others`.

    Names that begin with '_' are skipped, because query engines use such names for metadata. JSON files are skipped,
    because they often describe the table.
    """
    _refuse_more_than_files(folder)
    for entry in entries(folder):
        if entry.is_dir(follow_symlinks=False):
            # Folders of partitions, such as year=2024, do not count towards the limit of folder levels.
            deeper = depth + (_PARTITION.search(entry.name) is None)
            if deeper <= DEPTH and not entry.name.startswith("_"):
                yield from _walk(root, Path(entry.path), deeper, others)
        elif entry.is_symlink() and os.path.isdir(entry.path):
            raise DataError(
                f"{printable(entry.path)} is a link to a folder, which is not followed.",
                "Replace the link by a copy of the folder, or remove the link.",
            )
        elif packing_of(entry.name) and _kind_inside(entry.name) == PARQUET:
            _check_packing(Path(entry.path), None)
        elif not entry.name.startswith("_"):
            kind = kind_of(entry.name)
            if kind == PARQUET:
                yield taken_file(root, entry, "Parquet")
            elif kind not in (None, JSON):
                others.append(below(root, entry.path))


_TABLES_WITH_A_LOG = (
    ("_delta_log", "a Delta table", "duckdb -c \"COPY (FROM delta_scan('FOLDER')) TO 'new.parquet'\""),
    (".hoodie", "a Hudi table", "spark.read.format('hudi').load(FOLDER).coalesce(1).write.parquet(NEW)"),
    (
        os.path.join("metadata", "*.metadata.json"),
        "an Iceberg table",
        "duckdb -c \"COPY (FROM iceberg_scan('FOLDER')) TO 'new.parquet'\"",
    ),
)
"""Kinds of tables that have more than Parquet files: (file or folder by which the kind is recognized, name of the kind,
command that writes such a table to Parquet files)."""


def _refuse_more_than_files(folder: Path) -> None:
    """Raise DataError for a table with a log, such as a Delta table. The log decides which files belong to the
    table."""
    for mark, what, call in _TABLES_WITH_A_LOG:
        if next(folder.glob(mark), None) is not None:
            raise DataError(
                f"{printable(folder)} is {what}, whose log decides which of its files and rows count.",
                f"Write the table to Parquet, and name the result. For example: {call}",
            )
