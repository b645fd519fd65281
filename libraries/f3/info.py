"""The values that `File.describe` and `File.modules` return."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModuleInfo:
    """An embedded module: its id, size and XXH64, the encodings that it states ('' if none), and whether this reader
    decodes them itself ('native') or runs the module ('wasm')."""

    wasm_id: int
    size_bytes: int
    xxh64: int
    encoding: str
    how: str


@dataclass(frozen=True)
class ColumnInfo:
    """How one physical column is stored, over all row groups. `rows` counts the rows of this physical column."""

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
    """Ranges of rows that a filter can skip; 0 if the file has no zone maps."""
    faults: tuple[str, ...] = ()
    """Faults that do not prevent reading, with their locations."""

    @property
    def codecs(self) -> tuple[str, ...]:
        """Codecs of all EncUnits. Each is 'none', 'zstd' or 'lz4'."""
        return tuple(sorted({codec for column in self.columns for codec in column.codecs}))
