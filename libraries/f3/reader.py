"""Open F3 files and read from them.

An EncUnit is the smallest part of a column that can be decoded. An IOUnit is one or more EncUnits of a column that were
written together. Opening a file reads only the end of the file. Reading some columns reads the metadata of these
columns only. Files are untrusted: counts are checked against each other before they are used, and every fault is an
`F3Error`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from types import TracebackType
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

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
from libraries.f3.filtering import filter_of, filtered
from libraries.f3.info import ColumnInfo, FileInfo, ModuleInfo

Verify = Literal["units", "file", "none"]
Prefer = Literal["native", "wasm"]
_CODEC_NAMES = {number: name or "none" for name, number in CODECS.items()}
_NAMES_SHOWN = 8
_MOST_PLANS = 3
"""Number of read plans that are kept for later reads. A read with a filter needs one plan for the columns that it
tests, and one for the others."""


def open_file(
    path: io.Location,
    *,
    verify: Verify = "units",
    prefer: Prefer = "native",
    threads: int | None = None,
    coding: Coding | None = None,
) -> File:
    """Open an F3 file.

    Args:
        path: a path, a URL that fsspec supports, or a file opened for reading (it stays open)
        verify: 'units': verify the checksums of IOUnits when they are read, if the file has them; 'file': also
            verify the whole file and its schema now; 'none': verify nothing
        prefer: 'native': use this package's native decoders where they match the file's code; 'wasm': always run the
            code in the file
        threads: number of threads that decode a large read; None: the number of cores of this process. A column then
            consists of several arrays. Open files, URLs, code run from the file and `coding` use one thread
        coding: an object that decodes instead of this package (`encodings.coders.Coding`)

    Raises:
        F3Error: the file is not an F3 file or is broken, or an argument is invalid
        OSError: the file cannot be read
    """
    if verify not in ("units", "file", "none"):
        raise F3Error(f"verify must be 'units', 'file' or 'none' (got {verify!r})")
    if prefer not in ("native", "wasm"):
        raise F3Error(f"prefer must be 'native' or 'wasm' (got {prefer!r})")
    if threads is None:
        threads = _cores()
    if not isinstance(threads, Integral) or isinstance(threads, bool) or threads < 1:
        raise F3Error(f"threads must be a whole number of at least 1, or None for all cores (got {threads!r})")
    source = io.open_source(path)
    # Threads take turns in the sandbox, so several threads would not be faster.
    in_sandbox = prefer == "wasm" or native.library() is None
    alone = in_sandbox or coding is not None or not source.shared_by_threads
    count = 1 if alone else int(threads)
    try:
        with Placed(source.name):
            return File(Contents(source, verify, prefer, default_coding() if coding is None else coding), count)
    except BaseException:
        source.close()
        raise


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class File:
    """An open file, made by `open_file`. A `with` block closes it. Not thread-safe."""

    def __init__(self, contents: Contents, threads: int) -> None:
        self._contents, self._threads = contents, threads
        self._group_starts = group_starts(contents.footer.row_counts)
        self._nodes: dict[int, Node] = {}
        self._plans: dict[tuple[tuple[int, ...], tuple[int, ...]], ReadPlan] = {}

    def __enter__(self) -> File:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Tables that were read stay valid."""
        self._contents.source.close()

    @property
    def schema(self) -> pa.Schema:
        """Schema of the columns, with its metadata."""
        return self._contents.schema

    @property
    def num_rows(self) -> int:
        """Number of rows, over all row groups."""
        return int(self._group_starts[-1])

    def read(
        self, columns: Sequence[str] | None = None, rows: Rows | None = None, *, where: pc.Expression | None = None
    ) -> pa.Table:
        """Return rows of the given columns as a table. Only EncUnits that hold these rows are decoded.

        Args:
            columns: names of top-level columns, in the desired order; None: all
            rows: a slice, a range or row numbers in any order; None: all
            where: a filter such as `pc.field("x") > 5`, instead of `rows`: return the rows for which it is true, in the
                order of the file. Ranges of rows whose stored bounds exclude a match are skipped

        Raises:
            F3Error: a column or row does not exist, the filter does not fit the columns, or the file is broken
        """
        if where is not None:
            if rows is not None:
                raise F3Error(
                    "`rows` and `where` cannot be combined: read the rows, then filter them with Table.filter"
                )
            with self._placed():
                chosen = filter_of(where, self.schema)
                self._chosen(chosen.names)
                wanted = None if columns is None else self._chosen(columns)[0].names
                return filtered(chosen, wanted, self.schema, self.num_rows, self._contents.zones, self._read)
        with self._placed():
            return self._read(columns, rows)

    def _read(self, columns: Sequence[str] | None, rows: Rows | None) -> pa.Table:
        schema, nodes = self._chosen(columns)
        picked = pick(rows, self._group_starts)
        if not nodes:
            return shredding.rows_alone(schema, picked.count)
        arrays = self._planned(nodes, picked.groups).arrays(picked, self._threads)
        made = [pa.chunked_array(each, field.type) for each, field in zip(arrays, schema, strict=True)]
        return pa.Table.from_arrays(made, schema=schema)

    def _planned(self, nodes: Sequence[Node], groups: tuple[int, ...]) -> ReadPlan:
        """Return a plan for reading these columns and row groups. If one of the last reads had the same columns and row
        groups, the plan of that read is used again."""
        key = (tuple(node.column for node in nodes), groups)
        plan = self._plans.pop(key, None) or ReadPlan(self._contents, nodes, groups)
        if len(self._plans) >= _MOST_PLANS:
            del self._plans[next(iter(self._plans))]
        self._plans[key] = plan
        return plan

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield all rows of the given columns (None: all), with the rows of one EncUnit in each batch. If `columns` is
        empty, each batch has the rows of one row group.

        Memory does not grow with the number of rows. Only the EncUnits of the current batch are in memory; if the file
        is not local, the whole IOUnits around these EncUnits are. Raises F3Error in the same cases as `read`, when the
        affected batch is requested.
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
            return tuple(self._contents.module_info(wasm_id) for wasm_id in range(len(self._contents.module_sections)))

    def describe(self) -> FileInfo:
        """Return contents, layout and faults of the file. Reads the metadata of all columns."""
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
            try:
                zones = self._contents.zones
            except F3Error as error:
                zones = None
                faults.append(str(error))
        return FileInfo(
            size_bytes=self._contents.source.size_bytes,
            rows=self.num_rows,
            row_groups=len(groups),
            columns=tuple(columns),
            modules=self.modules,
            shared_dictionaries=self._contents.footer.dictionaries,
            checksums=checksums and any(column.io_units for column in columns),
            zones=0 if zones is None else len(zones.rows),
            faults=tuple(faults),
        )

    def encodings(self) -> tuple[str, ...]:
        """Return the names of the encodings that EncUnits use, without duplicates and sorted. If encodings are nested,
        only the outermost of an EncUnit counts.

        The name is 'module ID' for an EncUnit with a module that is not one of this package's. The name is 'lists of
        structs' for lists in a layout that only the F3 authors' program writes. Reads the whole file, one column of a
        row group at a time. Raises F3Error.
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
            return {}  # The package's module was not built. Files can be read without it.

    def _encoding(self, names: Sequence[str | None], unit: EncUnit, payload: memoryview) -> str:
        name = None if unit.wasm_id is None or unit.wasm_id >= len(names) else names[unit.wasm_id]
        return f"module {unit.wasm_id}" if name is None else self._contents.coding.encoding_of(name, payload)

    def _placed(self) -> Placed:
        return Placed(self._contents.source.name)

    def _chosen(self, columns: Sequence[str] | None) -> tuple[pa.Schema, list[Node]]:
        if columns is None:
            return self.schema, [self._node(place) for place in range(len(self.schema))]
        if isinstance(columns, str):
            raise F3Error(f"columns must be a list of names (got the string {columns!r})")
        if not isinstance(columns, Iterable):
            raise F3Error(f"columns must be a list of names (got {columns!r:.60})")
        names = list(columns)
        for name in names:
            if not isinstance(name, str):
                raise F3Error(f"columns must be a list of names, but contains {name!r:.60}")
        places = [self._place(name) for name in names]
        schema = pa.schema([self.schema.field(place) for place in places], self.schema.metadata)
        return schema, [self._node(place) for place in places]

    def _place(self, name: str) -> int:
        places = self.schema.get_all_field_indices(name)
        if len(places) == 1:
            return int(places[0])
        if places:
            raise F3Error(f"{len(places)} columns are named {name!r}, so this name does not identify a column")
        some = ", ".join(self.schema.field(place).name for place in range(min(len(self.schema), _NAMES_SHOWN)))
        more = ", ..." if len(self.schema) > _NAMES_SHOWN else ""
        raise F3Error(f"no columns are named {name!r}; the file has: {some}{more}")

    def _node(self, place: int) -> Node:
        if place not in self._nodes:
            if self._contents.footer.columns(0) == len(self.schema):
                # Without nested columns, a column's index is its physical number. This avoids a walk over 10,000
                # columns.
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
