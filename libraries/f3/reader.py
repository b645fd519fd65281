"""Reading F3 files: what the user calls.

Opening looks at the end of the file alone, and a projection at the metadata of its columns alone. A file is a
stranger's: every count is checked against the others before it is used, and every fault is an F3Error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from types import TracebackType
from typing import Literal

import pyarrow as pa
import xxhash

from libraries.f3.columns import shredding
from libraries.f3.columns.plan import ReadPlan
from libraries.f3.columns.rows import Picked, Rows, pick
from libraries.f3.columns.shredding import Node
from libraries.f3.container import io, metadata
from libraries.f3.container.compression import CODECS
from libraries.f3.container.contents import Contents, Held, group_starts
from libraries.f3.container.faults import unmarked_pairs
from libraries.f3.container.metadata import EncUnit
from libraries.f3.container.units import StoredColumn, key_of
from libraries.f3.decoders import native
from libraries.f3.encodings.coders import Coding, default_coding
from libraries.f3.errors import F3Error, Placed
from libraries.f3.info import ColumnInfo, FileInfo, ModuleInfo

Verify = Literal["units", "file", "none"]
Prefer = Literal["native", "wasm"]
_CODEC_NAMES = {number: name or "none" for name, number in CODECS.items()}
_NAMES_TOLD = 8


def open_file(
    path: io.Location,
    *,
    verify: Verify = "units",
    prefer: Prefer = "native",
    threads: int = 1,
    coding: Coding | None = None,
) -> File:
    """Open an F3 file: a path, a URL that fsspec knows, or a file opened for reading (which is not closed).

    Args:
        verify: 'units': the checksums of IOUnits that are read, where the file has them; 'file': these, and now
            those of the whole file and its schema; 'none': nothing
        prefer: 'native': instead of the file's code, what this package has natively of it; 'wasm': the file's code
        threads: by how many a large read is decoded. What is read from an open file or a URL is decoded by one, and so
            is what other code than this package's decodes
        coding: decoders other than this package's own

    Raises F3Error for what is no F3 file or a broken one, and OSError where it cannot be read.
    """
    if verify not in ("units", "file", "none"):
        raise F3Error(f"verify: {verify!r} is none of 'units', 'file', 'none'")
    if prefer not in ("native", "wasm"):
        raise F3Error(f"prefer: {prefer!r} is none of 'native', 'wasm'")
    if not isinstance(threads, Integral) or isinstance(threads, bool) or threads < 1:
        raise F3Error(f"threads: {threads!r} is no number from 1 on")
    source = io.open_source(path)
    # In the sandbox threads take turns.
    in_sandbox = prefer == "wasm" or native.library() is None
    alone = in_sandbox or coding is not None or not source.shared_by_threads
    count = 1 if alone else int(threads)
    try:
        with Placed(source.name):
            return File(Contents(source, verify, prefer, default_coding() if coding is None else coding), count)
    except BaseException:
        source.close()
        raise


class File:
    """One open file, made by `open_file`; closes itself at the end of a `with` block. For one thread at a time."""

    def __init__(self, contents: Contents, threads: int) -> None:
        self._contents, self._threads = contents, threads
        self._group_starts = group_starts(contents.footer.row_counts)
        self._nodes: dict[int, Node] = {}

    def __enter__(self) -> File:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the file back; tables that were read stay."""
        self._contents.source.close()

    @property
    def schema(self) -> pa.Schema:
        """The columns, with their metadata."""
        return self._contents.schema

    @property
    def num_rows(self) -> int:
        """Rows of all row groups."""
        return int(self._group_starts[-1])

    def read(self, columns: Sequence[str] | None = None, rows: Rows | None = None) -> pa.Table:
        """The rows of some columns.

        Args:
            columns: names of top-level columns, in the order that is wanted; None: all
            rows: a slice, a range or row numbers in any order; None: all

        Only the EncUnits that hold them are decoded. Raises F3Error for unknown columns and rows, and for broken files.
        """
        with self._placed():
            schema, nodes = self._chosen(columns)
            picked = pick(rows, self._group_starts)
            if not nodes:
                return shredding.rows_alone(schema, picked.count)
            arrays = ReadPlan(self._contents, nodes, picked.groups).arrays(picked, self._threads)
            made = [pa.chunked_array(each, field.type) for each, field in zip(arrays, schema, strict=True)]
            return pa.Table.from_arrays(made, schema=schema)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows of some columns, an EncUnit's at a time, in memory that does not grow with their number: of a local
        file what is held are these units, else the IOUnits that they lie in. Without columns a batch is a row group.

        Raises F3Error like `read`, when the batch is due.
        """
        with self._placed():
            schema, nodes = self._chosen(columns)
        held: Held = {}
        for group, rows in enumerate(self._contents.footer.row_counts):
            if rows == 0:
                continue
            if not nodes:
                yield from shredding.rows_alone(schema, rows).to_batches()
                continue
            with self._placed():
                plan = ReadPlan(self._contents, nodes, (group,))
                edges = plan.edges()
            for start, stop in pairwise(edges):
                with self._placed():
                    picked = Picked((group,), range(start, stop))
                    held = plan.hold(picked, held)
                    arrays = [plan.array_of(node, picked, held) for node in nodes]
                    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
                yield batch

    @property
    def modules(self) -> tuple[ModuleInfo, ...]:
        """The embedded modules, by id."""
        with self._placed():
            return tuple(
                ModuleInfo(wasm_id, section.size_bytes, xxhash.xxh64_intdigest(self._contents.module(wasm_id)))
                for wasm_id, section in enumerate(self._contents.module_sections)
            )

    def describe(self) -> FileInfo:
        """What the file holds, how, and what is wrong with it: walks over the metadata of all columns."""
        with self._placed():
            groups = range(len(self._contents.footer.row_counts))
            columns: list[ColumnInfo] = []
            faults: list[str] = []
            checksums = True
            for node in (each for place in range(len(self.schema)) for each in self._node(place).walk()):
                if node.pushed_down:
                    continue
                self._contents.load(groups, [node.column])
                stored = [self._contents.column(group, node.column) for group in groups]
                columns.append(_described(node, stored))
                faults += _faults(node, stored)
                checksums &= all(chunk.checksum is not None for each in stored for chunk in each.chunks)
            faults += self._contents.dictionary_faults
        return FileInfo(
            size_bytes=self._contents.source.size_bytes,
            rows=self.num_rows,
            row_groups=len(groups),
            columns=tuple(columns),
            modules=self.modules,
            shared_dictionaries=self._contents.footer.dictionaries,
            checksums=checksums and any(column.io_units for column in columns),
            faults=tuple(faults),
        )

    def encodings(self) -> tuple[str, ...]:
        """The outermost encodings of all EncUnits, sorted, without repeats; a module that is none of ours by its id.

        Reads the whole file, a column of a row group at a time. Raises F3Error.
        """
        found: set[str] = set()
        with self._placed():
            own = {module: name for name, module in self._known_modules().items()}
            names = [own.get(self._contents.module(number)) for number in range(len(self._contents.module_sections))]
            for group, rows in enumerate(self._contents.footer.row_counts):
                for place in range(len(self.schema)) if rows else ():
                    node = self._node(place)
                    if any(each.pushed_down for each in node.walk()):
                        found.add("lists of structs")
                        continue
                    plan = ReadPlan(self._contents, [node], (group,))
                    for unit, payload in plan.payloads(Picked((group,), range(rows))):
                        found.add(self._encoding(names, unit, payload))
        return tuple(sorted(found))

    def _known_modules(self) -> Mapping[str, bytes]:
        try:
            return self._contents.coding.modules()
        except F3Error:
            return {}  # of a package that was not built: it reads all the same

    def _encoding(self, names: Sequence[str | None], unit: EncUnit, payload: memoryview) -> str:
        name = None if unit.wasm_id is None or unit.wasm_id >= len(names) else names[unit.wasm_id]
        return f"module {unit.wasm_id}" if name is None else self._contents.coding.encoding_of(name, payload)

    def _placed(self) -> Placed:
        return Placed(self._contents.source.name)

    def _chosen(self, columns: Sequence[str] | None) -> tuple[pa.Schema, list[Node]]:
        if columns is None:
            return self.schema, [self._node(place) for place in range(len(self.schema))]
        if isinstance(columns, str):
            raise F3Error(f"columns: {columns!r} is a text; give a list of names")
        if not isinstance(columns, Iterable):
            raise F3Error(f"columns: {columns!r:.60} is no list of names")
        names = list(columns)
        for name in names:
            if not isinstance(name, str):
                raise F3Error(f"columns: {name!r:.60} is no name; give a list of names")
        places = [self._place(name) for name in names]
        schema = pa.schema([self.schema.field(place) for place in places], self.schema.metadata)
        return schema, [self._node(place) for place in places]

    def _place(self, name: str) -> int:
        places = self.schema.get_all_field_indices(name)
        if len(places) == 1:
            return int(places[0])
        some = ", ".join(self.schema.field(place).name for place in range(min(len(self.schema), _NAMES_TOLD)))
        more = ", ..." if len(self.schema) > _NAMES_TOLD else ""
        raise F3Error(f"{len(places) or 'no'} columns are called {name!r}; there are: {some}{more}")

    def _node(self, place: int) -> Node:
        if place not in self._nodes:
            if self._contents.footer.columns(0) == len(self.schema):
                # Then a column's place is its number, and 10,000 others need not be looked at.
                self._nodes[place] = self._node_at(place, place)
            else:
                first = 0
                for each in range(len(self.schema)):
                    self._nodes[each] = self._node_at(each, first)
                    first = self._nodes[each].numbers.stop
        return self._nodes[place]

    def _node_at(self, place: int, column: int) -> Node:
        field = self.schema.field(place)
        pushed = metadata.LIST_OF_STRUCT_OF_PRIMITIVE
        if shredding.may_push_down(field.type) and self._contents.footer.kind(place) == pushed:
            return shredding.pushed_down(field, column)
        return shredding.node_of(field, column)


def _faults(node: Node, stored: Sequence[StoredColumn]) -> list[str]:
    unmarked = {key_of(unit.chunk): unit.chunk for each in stored for unit in each.units if unit.unmarked}
    return [unmarked_pairs(f"column {node.what}", list(unmarked.values()))] if unmarked else []


def _described(node: Node, stored: Sequence[StoredColumn]) -> ColumnInfo:
    chunks = [chunk for each in stored for chunk in each.chunks]
    units = [unit for chunk in chunks for unit in chunk.units]
    return ColumnInfo(
        name=node.what,
        type=str(node.type),
        rows=sum(each.rows for each in stored),
        io_units=len(chunks),
        enc_units=len(units),
        size_bytes=sum(chunk.size_bytes for chunk in chunks),
        scopes=tuple(sorted({metadata.SCOPES[chunk.scope] for chunk in chunks})),
        codecs=tuple(sorted({_CODEC_NAMES[unit.compression] for unit in units})),
        modules=tuple(sorted({unit.wasm_id for unit in units if unit.wasm_id is not None})),
    )
