"""Read and write F3, the file format whose files carry the code that decodes them.

    from libraries import f3

    f3.write(table, "table.f3")
    f3.open("table.f3").read(columns=["a", "b"], rows=slice(0, 1000))

Of the rest of the project, the package needs only `libraries.filters`. The format is that of Zeng et al.,
"F3: The Open-Source Data File Format for the Future" (SIGMOD 2025). "The specification" in docstrings means our notes
on this paper and on the authors' own program; the notes are not part of the repository.
"""

from libraries.f3.errors import F3Error
from libraries.f3.reader import ColumnInfo, File, FileInfo, ModuleInfo
from libraries.f3.reader import open_file as open
from libraries.f3.writer import Writer, write

__all__ = ["ColumnInfo", "F3Error", "File", "FileInfo", "ModuleInfo", "Writer", "open", "write"]
