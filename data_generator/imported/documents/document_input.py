"""Find the user's documents by name, size and kind of file. This module opens no file.

Documents are one file of JSON Lines. data_generator.imported.documents.document_import reads the file in a separate
process.
"""

from __future__ import annotations

import stat
from pathlib import Path

from data_generator.errors import DataError
from data_generator.imported.refusal import printable
from data_generator.imported.tables import table_input
from data_generator.imported.user_files import UserInput, input_file, located

TAKEN = (
    "Documents are read from JSON Lines: a file with one object per line (.jsonl, .ndjson, .json), also compressed "
    "(.jsonl.gz, .bz2, .xz, .zst, .zip)."
)


def find(given: Path) -> UserInput:
    """Return the JSON Lines file at the user's path. Raises DataError for an empty file and for any other kind of
    input."""
    path, about = located(given, TAKEN)
    shown = printable(path)
    if stat.S_ISDIR(about.st_mode):
        raise DataError(f"{shown} is a folder.", f"{TAKEN} To merge several files: cat *.jsonl > ALL.jsonl")
    if not stat.S_ISREG(about.st_mode):
        raise DataError(
            f"{shown} is not a regular file, so it cannot be read several times, as the import requires.", TAKEN
        )
    kind = table_input.kind_of(path.name)
    if kind is None:
        raise DataError(f"{shown} does not end with a suffix of JSON Lines files.", TAKEN)
    if kind != table_input.JSON:
        raise DataError(
            f"{shown} has the suffix of {kind}, a format of tables.", f"{TAKEN} For a table, use the suite tabular."
        )
    if about.st_size == 0:
        raise DataError(f"{shown} is empty (0 bytes).", "Name a file with documents: one object per line.")
    return UserInput(path, kind, (input_file(path, path.name, about),))
