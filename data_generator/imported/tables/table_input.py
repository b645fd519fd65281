"""What lies where a table is said to be, by names, sizes and times alone: no file is opened here.

One file, whose suffix says what it holds, or a folder of Parquet files. What is inside is looked at by
data_generator.imported.tables.table_import, in a process of its own.
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
"""The end of a file's name -> what it holds. Of text it may be followed by an ending of byte_stream.PACKED."""
PACKED_KINDS = (CSV, JSON)
"""What may be compressed as a whole; the others compress within themselves."""

TAKEN_OPTIONS: Mapping[str, tuple[str, ...]] = {
    CSV: ("columns", "delimiter", "decimal", "encoding", "header", "day_first"),
    JSON: ("columns", "encoding"),
    EXCEL: ("columns", "sheet", "header"),
}
"""Kind of file -> the options of ReadOptions that its reader follows; the others say themselves what they hold."""

TAKEN = (
    "a table is taken as CSV (.csv, .tsv), JSON (.json, .jsonl, .ndjson), each also as .csv.gz and the like, Parquet, "
    "Feather/Arrow, ORC, Excel, Avro, or a folder of Parquet files"
)
_IMAGES = "images go with run image --data PATH"


def find(given: Path) -> UserInput:
    """The table at the user's path.

    Links are followed; of a folder, to files below it only. Raises DataError for a path that is missing, empty, holds
    nothing that is taken, or where it cannot be told what belongs to the table.
    """
    path, about = located(given, TAKEN)
    if stat.S_ISDIR(about.st_mode):
        return UserInput(path, PARQUET, tuple(_parquet_files(path)))
    if not stat.S_ISREG(about.st_mode):
        raise DataError(f"{printable(path)}: is neither a file nor a folder\n  {TAKEN}")
    if path.suffix.lower() in IMAGE_SUFFIXES:
        raise DataError(f"{printable(path)}: is an image, and the suite is about tables\n  {_IMAGES}")
    kind = kind_of(path.name)
    _check_packing(path, kind)
    if kind is None:
        raise DataError(f"{printable(path)}: its name does not say what it holds\n  {TAKEN}")
    if about.st_size == 0:
        raise DataError(f"{printable(path)}: is empty (0 bytes)\n  name a file with a table in it")
    return UserInput(path, kind, (input_file(path, path.name, about),))


def check_options(found: UserInput, options: ReadOptions) -> None:
    """Raises DataError for an option that files of this kind have no use for: it would be passed over in silence."""
    foreign = options.foreign_to(TAKEN_OPTIONS.get(found.kind, ()))
    if foreign:
        flag = {"columns": "--column", "header": "--no-header"}.get(foreign[0], f"--{foreign[0].replace('_', '-')}")
        able = ", ".join(kind for kind, taken in TAKEN_OPTIONS.items() if foreign[0] in taken)
        raise DataError(f"{printable(found.path)}: is {found.kind}, and {flag} is for {able}\n  leave the option out")


def kind_of(name: str) -> str | None:
    """What a file holds, by the end of its name; None where that does not say it."""
    packing = packing_of(name)
    kind = _kind_inside(name)
    return kind if not packing or kind in PACKED_KINDS else None


def _kind_inside(name: str) -> str | None:
    """What a file holds once it is unpacked."""
    lowered = name.lower().removesuffix(packing_of(name))
    return next((kind for suffix, kind in SUFFIXES.items() if lowered.endswith(suffix)), None)


def _check_packing(path: Path, kind: str | None) -> None:
    """Raises DataError for a compressed file that is not read as it is."""
    packing = packing_of(path.name)
    if not packing or kind is not None:
        return
    unpack = f"{PACKED[packing]} {shlex.quote(printable(path.name))}"
    inside = _kind_inside(path.name)
    if inside is not None:
        raise DataError(f"{printable(path)}: is compressed {inside}, which is read uncompressed\n  {unpack}")
    raise DataError(
        f"{printable(path)}: is compressed, and its name does not say what it holds\n  call it .csv{packing} or "
        f".jsonl{packing} if it is that, or unpack it: {unpack}"
    )


def _parquet_files(path: Path) -> list[InputFile]:
    for folder in path.parents:
        _refuse_more_than_files(folder)
    others: list[str] = []
    files = list(_walk(path, path, 0, others))
    if not files:
        looked = f"holds no Parquet files (looked {DEPTH} folders deep)"
        raise DataError(f"{printable(path)}: {looked}\n  {TAKEN}; {_IMAGES}")
    if others:
        raise DataError(
            f"{printable(path)}: holds Parquet files and tables of other kinds: {printable(', '.join(others[:4]))}\n"
            "  name the one that is meant, or put the Parquet files into a folder by themselves"
        )
    folders = sorted({_without_values(file.name) for file in files})
    if len(folders) > 1:
        raise DataError(
            f"{printable(path)}: holds Parquet files in several folders: {printable(', '.join(folders))}\n"
            "  name the one that is meant"
        )
    return files


def _without_values(name: str) -> str:
    """The folders of a file, of those that hold a column's values the columns alone: 'year=2024' is 'year=..'."""
    folders = os.path.dirname(name).split(os.sep)
    return os.sep.join(_PARTITION.sub("=..", folder) for folder in folders) or "."


_PARTITION = re.compile("(?<=.)=.*", re.DOTALL)
"""A value in the name of a folder; what stands before it is the name of a column."""


def _walk(root: Path, folder: Path, depth: int, others: list[str]) -> Iterator[InputFile]:
    """The Parquet files below the folder, in the order of their names; names of other tables go to `others`. What
    begins with '_' is passed over, as engines put their notes there, and JSON, as descriptions of tables are that."""
    _refuse_more_than_files(folder)
    for entry in entries(folder):
        if entry.is_dir(follow_symlinks=False):
            # Folders with values in their names are as many as columns are in them: they do not count.
            deeper = depth + (_PARTITION.search(entry.name) is None)
            if deeper <= DEPTH and not entry.name.startswith("_"):
                yield from _walk(root, Path(entry.path), deeper, others)
        elif entry.is_symlink() and os.path.isdir(entry.path):
            raise DataError(
                f"{printable(entry.path)}: is a link to a folder\n  links to folders are not followed: put the folder "
                "there, or remove the link"
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
"""What such a table has in its folder, its name, and how it becomes Parquet files."""


def _refuse_more_than_files(folder: Path) -> None:
    """Raises DataError where a table is more than its files: a log says which of them count."""
    for mark, what, call in _TABLES_WITH_A_LOG:
        if next(folder.glob(mark), None) is not None:
            raise DataError(
                f"{printable(folder)}: is {what}, whose log says which of its files and rows count\n"
                f"  write the table to Parquet, and name that: {call}"
            )
