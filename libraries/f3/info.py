"""What a file tells of itself: the answer of `File.describe`. It reads nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModuleInfo:
    """One embedded module: its id, its size, and its XXH64."""

    wasm_id: int
    size_bytes: int
    xxh64: int


@dataclass(frozen=True)
class ColumnInfo:
    """What one physical column is stored as, over all row groups; rows are those of the column."""

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
    """What a file holds, and how."""

    size_bytes: int
    rows: int
    row_groups: int
    columns: tuple[ColumnInfo, ...]
    modules: tuple[ModuleInfo, ...]
    shared_dictionaries: int
    checksums: bool
    faults: tuple[str, ...] = ()
    """What is wrong with it that it can be read in spite of, and where."""

    @property
    def codecs(self) -> tuple[str, ...]:
        """All codecs over EncUnits: 'none', 'zstd', 'lz4'."""
        return tuple(sorted({codec for column in self.columns for codec in column.codecs}))
