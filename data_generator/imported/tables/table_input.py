"""What lies where a table is said to be, by names, sizes and times alone: no file is opened here.

One file, whose suffix says what it holds, or a folder of Parquet files. What is inside is looked at by
data_generator.imported.tables.table_import, in a process of its own.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from data_generator.errors import DataError
from data_generator.imported.images.image_input import DEPTH, IMAGE_SUFFIXES
from data_generator.imported.refusal import printable
from data_generator.imported.user_files import InputFile, UserInput, entries, input_file, located, taken_file

CSV, JSON, PARQUET, ARROW, ORC, EXCEL, AVRO = "CSV", "JSON Lines", "Parquet", "Arrow", "ORC", "Excel", "Avro"

SUFFIXES: Mapping[str, str] = {
    ".csv": CSV,
    ".csv.gz": CSV,
    ".tsv": CSV,
    ".tsv.gz": CSV,
    ".json": JSON,
    ".jsonl": JSON,
    ".ndjson": JSON,
    ".parquet": PARQUET,
    ".arrow": ARROW,
    ".arrows": ARROW,
    ".feather": ARROW,
    ".ipc": ARROW,
    ".orc": ORC,
    ".xls": EXCEL,
    ".xlsb": EXCEL,
    ".xlsm": EXCEL,
    ".xlsx": EXCEL,
    ".avro": AVRO,
}
"""The end of a file's name -> what it holds."""

TAKEN = (
    "a table is taken as CSV (.csv, .tsv, .csv.gz), JSON Lines, Parquet, Feather/Arrow, ORC, Excel, Avro, or a folder "
    "of Parquet files"
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
    if kind is None:
        raise DataError(f"{printable(path)}: its name does not say what it holds\n  {TAKEN}")
    if about.st_size == 0:
        raise DataError(f"{printable(path)}: is empty (0 bytes)\n  name a file with a table in it")
    return UserInput(path, kind, (input_file(path, path.name, about),))


def kind_of(name: str) -> str | None:
    """What a file holds, by the end of its name; None where that does not say it."""
    lowered = name.lower()
    return next((kind for suffix, kind in SUFFIXES.items() if lowered.endswith(suffix)), None)


def _parquet_files(path: Path) -> list[InputFile]:
    files = list(_walk(path, path, 0))
    if not files:
        looked = f"holds no Parquet files (looked {DEPTH} folders deep)"
        raise DataError(f"{printable(path)}: {looked}\n  {TAKEN}; {_IMAGES}")
    folders = sorted({os.path.dirname(file.name) or "." for file in files})
    if len(folders) > 1:
        raise DataError(
            f"{printable(path)}: holds Parquet files in several folders: {printable(', '.join(folders))}\n"
            "  name the one that is meant"
        )
    return files


def _walk(root: Path, folder: Path, depth: int) -> Iterator[InputFile]:
    """The Parquet files below the folder, in the order of their names. What begins with '_' is passed over, as engines
    put their notes there."""
    for entry in entries(folder):
        if entry.is_dir(follow_symlinks=False):
            _refuse_more_than_files(entry)
            if depth < DEPTH and not entry.name.startswith("_"):
                yield from _walk(root, Path(entry.path), depth + 1)
        elif entry.is_symlink() and os.path.isdir(entry.path):
            raise DataError(
                f"{printable(entry.path)}: is a link to a folder\n  links to folders are not followed: put the folder "
                "there, or remove the link"
            )
        elif kind_of(entry.name) == PARQUET and not entry.name.startswith("_"):
            yield taken_file(root, entry, "Parquet")


def _refuse_more_than_files(entry: os.DirEntry[str]) -> None:
    """Raises DataError where a table is more than its files: values in the names of folders, or a log that says which
    files count."""
    if entry.name == "_delta_log":
        raise DataError(
            f"{printable(entry.path)}: is of a Delta table, whose log says which of the files count\n"
            "  write the table to one Parquet file, and name that"
        )
    if "=" in entry.name:
        raise DataError(
            f"{printable(entry.path)}: holds a column's values in the names of folders, not in the files\n"
            "  name one of the folders, or write the table to one Parquet file"
        )
