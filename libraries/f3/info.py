"""The values that `File.describe` and `File.modules` return."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModuleInfo:
    """A Wasm module in the file, which decodes units of columns.

    `encoding` is the name and version that the module states for its encodings; '' if the module states none. `how` is
    'native' if this reader decodes these encodings itself, 'wasm' if it runs the module. `xxh64` is the hash of the
    module's code.
    """

    wasm_id: int
    size_bytes: int
    xxh64: int
    encoding: str
    how: str


@dataclass(frozen=True)
class ColumnInfo:
    """How one physical column is stored, over all row groups. A nested column consists of several physical columns.

    `rows` is the number of values of this physical column. In a column with the items of lists, this is the number of
    items. `enc_units` are the parts that can be decoded alone, and `io_units` the groups of such parts that were
    written together.
    """

    name: str
    type: str
    rows: int
    io_units: int
    enc_units: int
    size_bytes: int
    scopes: tuple[str, ...]
    codecs: tuple[str, ...]
    modules: tuple[int, ...]


@dataclass(frozen=True)
class FileInfo:
    """The contents of a file and how they are stored."""

    size_bytes: int
    rows: int
    row_groups: int
    columns: tuple[ColumnInfo, ...]
    modules: tuple[ModuleInfo, ...]
    shared_dictionaries: int
    checksums: bool
    zones: int
    """Number of zones, the ranges of rows that a filter can skip; 0 if the file has no zone maps that can be read."""
    faults: tuple[str, ...] = ()
    """Faults that do not prevent reading, with their locations."""

    @property
    def codecs(self) -> tuple[str, ...]:
        """Codecs of all EncUnits. Each is 'none', 'zstd' or 'lz4'."""
        return tuple(sorted({codec for column in self.columns for codec in column.codecs}))
