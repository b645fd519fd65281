"""F3, the file format that carries the code that reads it: a complete reader and writer.

    from libraries import f3

    f3.write(table, "table.f3")
    f3.open("table.f3").read(columns=["a", "b"], rows=slice(0, 1000))

It is usable without the rest of the project: no module here imports another room. The format is that of Zeng et al.,
"F3: The Open-Source Data File Format for the Future" (SIGMOD 2025).
"""

from libraries.f3.errors import F3Error
from libraries.f3.reader import ColumnInfo, File, FileInfo, ModuleInfo
from libraries.f3.reader import open_file as open
from libraries.f3.writer import Writer, write

__all__ = ["ColumnInfo", "F3Error", "File", "FileInfo", "ModuleInfo", "Writer", "open", "write"]
