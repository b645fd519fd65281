"""What lies where documents are said to be, by its name, size and kind alone: no file is opened here.

One file of JSON Lines. What is inside is looked at by data_generator.imported.documents.document_import, in a process
of its own.
"""

from __future__ import annotations

import stat
from pathlib import Path

from data_generator.errors import DataError
from data_generator.imported.refusal import printable
from data_generator.imported.tables import table_input
from data_generator.imported.user_files import UserInput, input_file, located

TAKEN = (
    "documents are taken as JSON Lines: a file with an object a line (.jsonl, .ndjson, .json), also compressed "
    "(.jsonl.gz, .bz2, .xz, .zst, .zip)"
)


def find(given: Path) -> UserInput:
    """The documents at the user's path. Raises DataError for anything but a file of JSON Lines that holds something."""
    path, about = located(given, TAKEN)
    shown = printable(path)
    if stat.S_ISDIR(about.st_mode):
        raise DataError(f"{shown}: is a folder\n  {TAKEN}; of several files make one: cat *.jsonl > ALL.jsonl")
    if not stat.S_ISREG(about.st_mode):
        raise DataError(f"{shown}: is no regular file, and is read more than once\n  {TAKEN}")
    kind = table_input.kind_of(path.name)
    if kind is None:
        raise DataError(f"{shown}: its name does not say that it holds documents\n  {TAKEN}")
    if kind != table_input.JSON:
        raise DataError(
            f"{shown}: is {kind}, which holds a table and no documents\n"
            f"  {TAKEN}; a table goes with run tabular --data PATH"
        )
    if about.st_size == 0:
        raise DataError(f"{shown}: is empty (0 bytes)\n  name a file with documents in it: an object a line")
    return UserInput(path, kind, (input_file(path, path.name, about),))
