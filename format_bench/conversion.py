"""Convert the user's table to another format, batch by batch, and verify what was stored.

A separate process reads the table, in the same way as for measurements. One digest of each column is computed while the
rows are stored, and another while they are read back. If the digests or the types of a column differ, the column is
compared value by value. Only changes that the variant declares (`adapters.losses`) and that the caller allows are then
accepted.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.types as pt

from adapters.contract import Native, TabularFormat
from adapters.errors import RefusedData, UserError
from bench_runner.clock import now_ns
from bench_runner.errors import in_one_line
from bench_runner.machine import environment, linux
from bench_runner.operations import targets
from bench_runner.operations.streams import pieces
from bench_runner.operations.targets import Target
from bench_runner.worker import equality, verify
from data_generator.errors import DataError
from data_generator.imported.read_options import ReadOptions
from data_generator.imported.refusal import printable
from data_generator.imported.tables import table_input, table_worker
from data_generator.imported.tables.table_reading import TableFacts
from data_generator.imported.user_files import UserInput
from format_bench.errors import ConversionError

ARROW = Target(kind="arrow")
TRIAL_ROWS, TRIAL_BYTES = 65_536, 64 << 20
"""The first rows are stored and read back as a trial: about TRIAL_ROWS rows, or fewer if they reach TRIAL_BYTES bytes.
The trial usually shows which columns would change, and how large the whole copy will be."""
READ_ROWS = 65_536
"""Maximum number of rows in a batch that is read back."""
COMPARED_BYTES = 512 << 20
"""Columns are compared value by value in groups of at most this size in memory. A larger column is compared alone."""


@dataclass(frozen=True)
class Copy:
    """A verified copy. `losses` maps the name of each column that changed to a description of the change."""

    facts: TableFacts
    schema: pa.Schema
    stored_bytes: int
    losses: Mapping[str, str]
    store_ns: int
    verify_ns: int


@dataclass(frozen=True)
class Task:
    """What to convert: the user's input (`source`), how to read it (`options`), and the variant to store (`adapter`).

    `may_change` has the names of the columns that may change; None allows changes to every column. `free_bytes` returns
    the free space on the disk of the copy.
    """

    source: UserInput
    options: ReadOptions
    adapter: TabularFormat
    may_change: Collection[str] | None
    free_bytes: Callable[[], int]


@dataclass
class Watch:
    """Functions that are called as the conversion proceeds."""

    stage: Callable[[str], None]
    rows: Callable[[int, int], None]
    """Called with the number of rows that are done and the total number of rows. The total is 0 while it is unknown."""


def copied(task: Task, place: Path, watch: Watch) -> Copy:
    """Store the user's table at `place`, which does not exist yet, and verify the copy.

    Other files are written only next to `place`. Raises DataError if the table is refused; ConversionError if the
    variant cannot store the table, if the copy would differ from the table, or if memory or disk space is too small;
    and OSError.
    """
    watch.stage(f"read {task.source.path.name}")
    began_ns = now_ns()
    with table_worker.started(task.source, None, task.options, lambda rows: watch.rows(rows, 0)) as answers:
        table = _Source(task, answers.facts, answers.schema)
        _check_fits(task, table)
        _check_read(task, table.facts)
        batches = table.with_all_categories(answers)
        head = _first(batches)
        head_table = pa.Table.from_batches(head, table.schema)
        _check_memory(task, head_table, table.facts.rows)
        trial_bytes = _try(task, head_table, place)
        _check_space(task, trial_bytes * table.facts.rows // head_table.num_rows)
        del head_table
        watch.stage("store")
        digests = _Digests()
        _store(task.adapter, table.schema, _seen(_chained(head, batches), digests, table.facts.rows, watch), place)
    stored_ns = now_ns()
    watch.stage("verify")
    losses = _verified(task, table, digests, place, watch)
    return Copy(table.facts, table.schema, _size_bytes(place), losses, stored_ns - began_ns, now_ns() - stored_ns)


@dataclass
class _Source:
    """The user's table, which can be read several times. Every reading must give the same `facts` (such as the number
    of rows) and `schema`; otherwise the user's files have changed in the meantime."""

    task: Task
    facts: TableFacts
    schema: pa.Schema
    _categories: dict[int, pa.Array] = field(default_factory=dict)

    def with_all_categories(self, answers: table_worker.Import) -> Iterator[pa.RecordBatch]:
        """Yield the batches of `answers`. In each batch, categorical columns have the categories of the whole table,
        because some formats store one dictionary for each column and cannot extend it later."""
        places = [place for place, each in enumerate(self.schema) if pt.is_dictionary(each.type)]
        if not places:
            return answers.batches()
        if not self._categories:
            with self.again() as first:
                for batch in first.batches():
                    self._categories = {place: batch.column(place).dictionary for place in places}
        return map(self._completed, answers.batches())

    def _completed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = list(batch.columns)
        for place, values in self._categories.items():
            ordered = self.schema.field(place).type.ordered
            arrays[place] = pa.DictionaryArray.from_arrays(arrays[place].indices, values, ordered=ordered)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    @contextmanager
    def again(self) -> Iterator[table_worker.Import]:
        """Yield a process that reads the table another time. Raises DataError if the table has changed."""
        with table_worker.started(self.task.source, None, self.task.options) as answers:
            if (answers.facts, answers.schema) != (self.facts, self.schema):
                raise self._changed()
            yield answers

    def check_unchanged(self) -> None:
        """Raise DataError if the user's files are no longer the same as when `task.source` was made."""
        if table_input.find(self.task.source.path).about() != self.task.source.about():
            raise self._changed()

    def _changed(self) -> DataError:
        return DataError(f"{printable(self.task.source.path)} changed while it was read.", "Try again.")


def _first(batches: Iterator[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return the first batches: as many as are needed for TRIAL_ROWS rows or TRIAL_BYTES bytes together."""
    found: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    while rows < TRIAL_ROWS and size_bytes < TRIAL_BYTES and (batch := next(batches, None)) is not None:
        found.append(batch)
        rows, size_bytes = rows + batch.num_rows, size_bytes + batch.nbytes
    return found


def _chained(head: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of `head`, then the batches of `rest`. Each batch is removed from `head` when it is yielded, so
    that the batch's memory can be freed."""
    head.reverse()
    while head:
        yield head.pop()
    yield from rest


def _seen(batches: Iterator[pa.RecordBatch], digests: _Digests, rows: int, watch: Watch) -> Iterator[pa.RecordBatch]:
    """Add each batch to the digests, report the progress to `watch`, and yield the batch."""
    for batch in batches:
        digests.update(pa.Table.from_batches([batch]))
        watch.rows(digests.rows, rows)
        yield batch


def _check_fits(task: Task, table: _Source) -> None:
    """Raise ConversionError if the variant cannot store the table, or if the caller allows changes to a column that the
    table lacks."""
    reason = task.adapter.refusal(table.schema, table.facts.rows)
    if reason is not None:
        raise ConversionError(f"{task.adapter.variant} cannot store this table: {reason}.", _OTHER_VARIANT)
    for name in task.may_change or ():
        if name not in table.schema.names:
            names = ", ".join(table.schema.names[:12]) + (", .." if len(table.schema.names) > 12 else "")
            raise ConversionError(
                f"`allow_loss` names the column {name!r}, which the table lacks.",
                f"The columns of the table are {names}.",
                parameter="allow_loss",
                given=name,
            )


def _check_read(task: Task, facts: TableFacts) -> None:
    """Raise ConversionError if reading the user's file changes values in a column that may not change, for example if
    leading zeros are lost."""
    changed = [name for name in facts.changed if task.may_change is not None and name not in task.may_change]
    if changed:
        said = [remark.partition("\n")[0] for remark in facts.remarks]
        told = next((text for text in said if f"column {printable(changed[0])!r}" in text), changed[0])
        raise ConversionError(
            f"Reading {printable(task.source.path.name)} would change values: {told}.",
            f"State the column's type, e.g. `columns={ {changed[0]: 'text'}!r}`, or accept the change by "
            f"`allow_loss={tuple(changed)!r}`.",
            parameter="columns",
        )


_OTHER_VARIANT = "Choose another variant; 'format-bench list formats' shows them."


def _check_memory(task: Task, head: pa.Table, rows: int) -> None:
    """Raise ConversionError if the variant needs the whole table in memory, and the table does not fit. `head` has the
    first rows, from which the size of all `rows` is estimated."""
    offers = task.adapter.offers
    needed_bytes = 2 * head.nbytes * rows // head.num_rows
    usable_bytes = environment.usable_memory_bytes()
    if (offers.save_stream and offers.batches) or needed_bytes <= usable_bytes:
        return
    raise ConversionError(
        f"{task.adapter.variant} holds the whole table in memory, which needs about {needed_bytes / 1e9:,.1f} GB, but "
        f"only {usable_bytes / 1e9:,.1f} GB are free.",
        "Choose a variant that works batch by batch, e.g. `variant='parquet[engine=pyarrow,codec=zstd]'`.",
    )


def _check_space(task: Task, stored_bytes: int) -> None:
    free_bytes = task.free_bytes()
    if stored_bytes > free_bytes:
        raise ConversionError(
            f"The copy needs about {stored_bytes / 1e9:,.2f} GB on disk, but only {free_bytes / 1e9:,.2f} GB are free.",
            "Free some space, or name a path on another disk.",
        )


# --- storing ---------------------------------------------------------------------------------------------------------


def _store(adapter: TabularFormat, schema: pa.Schema, batches: Iterator[pa.RecordBatch], place: Path) -> None:
    """Store the batches at `place`: one after the other if the variant supports this, otherwise all together as one
    table.

    Raises ConversionError if the library cannot store the data.
    """
    try:
        if adapter.offers.save_stream:
            adapter.save_stream(schema, _native(batches, adapter.native), place)
        else:
            table = pa.Table.from_batches(list(batches), schema)
            adapter.save(targets.to_native(table, ARROW, adapter.native), place)
    except RefusedData as error:
        raise ConversionError(f"{adapter.variant} cannot store this table: {error}.", _OTHER_VARIANT) from error
    except (UserError, OSError):
        raise
    except Exception as error:
        raise _of_library(adapter, "store", error) from error


def _of_library(adapter: TabularFormat, what: str, error: Exception) -> ConversionError:
    """Return the ConversionError for an exception of any type that a library raised. `what` is the step that failed:
    'store' or 'read back'."""
    said = in_one_line(error) or "no message"
    return ConversionError(
        f"{adapter.variant} cannot {what} this table: {type(error).__name__}: {said[:300]}", _OTHER_VARIANT
    )


def _native(batches: Iterator[pa.RecordBatch], native: Native) -> Iterator[object]:
    if native is Native.ARROW:
        yield from batches
        return
    for batch in batches:
        yield targets.to_native(pa.Table.from_batches([batch]), ARROW, native)


def _size_bytes(place: Path) -> int:
    return sum(path.stat().st_size for path in linux.files_below(place))


def _try(task: Task, head: pa.Table, place: Path) -> int:
    """Store the first rows next to `place`, read them back, compare them, remove the trial copy, and return its size in
    bytes.

    Raises ConversionError if a column changes that may not change.
    """
    trial = place.with_name(f"trial-{place.name}")
    _store(task.adapter, head.schema, iter(head.to_batches()), trial)
    size_bytes = _size_bytes(trial)
    # Whether a column without any value changes is known at the end, because further rows may have values.
    known = [name for name in head.schema.names if head.column(name).null_count < head.num_rows]
    if known:
        _allowed(task, _changes(task, head.select(known), _joined(_read_back(task.adapter, trial, known))))
    if trial.is_dir():
        shutil.rmtree(trial)
    else:
        trial.unlink()
    return size_bytes


# --- verifying -------------------------------------------------------------------------------------------------------


class _Digests:
    """For each column, a digest of its values, and the types that the column had in the batches. The digest does not
    depend on how the rows are divided into batches."""

    def __init__(self) -> None:
        self.rows = 0
        self.sizes_bytes: dict[str, int] = {}
        self._types: dict[str, set[pa.DataType]] = {}
        self._digests: dict[str, pieces.StreamDigest] = {}

    def update(self, table: pa.Table) -> None:
        self.rows += table.num_rows
        for name, column in zip(table.column_names, table.columns, strict=True):
            self._types.setdefault(name, set()).add(column.type)
            self.sizes_bytes[name] = self.sizes_bytes.get(name, 0) + column.nbytes
            digest = self._digests.setdefault(name, pieces.StreamDigest())
            digest.update(pa.table({name: equality.comparable(column)}))

    @property
    def names(self) -> list[str]:
        return list(self._digests)

    def proves_equal(self, name: str, other: _Digests) -> bool:
        """Return whether the digests prove that a column has the same values in both tables, in types that count as
        equal. If the result is False, the column may still be equal, and only a comparison of the values can show
        it."""
        one, two = self._types[name], other._types[name]
        if len(one) != 1 or len(two) != 1:
            return False
        (stored,), (read) = one, next(iter(two))
        # Digests do not cover the order of categories.
        is_ordered = pt.is_dictionary(stored) and stored.ordered
        same = self._digests[name].hexdigest() == other._digests[name].hexdigest()
        return equality.same_type(stored, read) and same and not is_ordered


def _read_back(adapter: TabularFormat, place: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows of a copy, in batches if the variant can read batches, otherwise as one table. Raises
    ConversionError if the library cannot read the copy."""
    try:
        if not adapter.offers.batches:
            yield targets.from_native(adapter.read(place), ARROW, adapter.native_read).select(columns)
            return
        handle = adapter.open(place)
        assert handle.batches is not None
        for native in handle.batches(columns, READ_ROWS):
            yield targets.from_native(native, ARROW, adapter.native_read)
        handle.close()
    except (UserError, OSError):
        raise
    except Exception as error:
        raise _of_library(adapter, "read back", error) from error


def _joined(batches: Iterator[pa.Table]) -> pa.Table:
    """Return all batches as one table. Raises ConversionError if the types of a column differ between batches and do
    not fit together."""
    found = list(batches)
    try:
        return pieces.joined(found) if found else pa.table({})
    except pa.ArrowException as error:
        raise ConversionError(
            f"The copy cannot be verified: a column has different types in different batches ({error}).",
            _OTHER_VARIANT,
        ) from error


def _verified(task: Task, table: _Source, stored: _Digests, place: Path, watch: Watch) -> Mapping[str, str]:
    """Read the copy at `place`, compare it with the table, and return the allowed losses: a description for each column
    that changed. `stored` has the digests of the rows that were stored.

    Raises ConversionError if rows or columns are missing, or if a column changed that may not change. Raises DataError
    if the user's files have changed.
    """
    table.check_unchanged()
    if stored.rows != table.facts.rows:
        raise ConversionError(
            f"The table has {table.facts.rows:,} rows, but {stored.rows:,} rows were stored.",
            "Convert the table again. If this recurs, report it as a bug.",
        )
    found = _Digests()
    for batch in _read_back(task.adapter, place, table.schema.names):
        found.update(batch)
        watch.rows(found.rows, table.facts.rows)
    if found.names != table.schema.names or found.rows != table.facts.rows:
        same_names = found.names == table.schema.names
        copy = f"{found.rows:,} rows" if same_names else f"the columns {found.names[:12]}"
        original = f"{table.facts.rows:,} rows" if same_names else f"the columns {table.schema.names[:12]}"
        raise ConversionError(f"The copy has {copy}, but the table has {original}.", _OTHER_VARIANT)
    losses: dict[str, str] = {}
    unsure = [name for name in table.schema.names if not stored.proves_equal(name, found)]
    for group in _groups(unsure, stored.sizes_bytes):
        watch.stage(f"compare {', '.join(map(printable, group[:3]))}{', ..' if len(group) > 3 else ''}")
        with table.again() as answers:
            wanted = pa.Table.from_batches([batch.select(group) for batch in table.with_all_categories(answers)])
        losses |= _allowed(task, _changes(task, wanted, _joined(_read_back(task.adapter, place, group))))
    return losses


def _groups(names: Sequence[str], sizes_bytes: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield the names in groups. The columns of a group have at most COMPARED_BYTES bytes together, unless a single
    column is larger."""
    group: list[str] = []
    for name in names:
        if group and sum(sizes_bytes[each] for each in (*group, name)) > COMPARED_BYTES:
            yield group
            group = []
        group.append(name)
    if group:
        yield group


def _changes(task: Task, wanted: pa.Table, got: pa.Table) -> Mapping[str, str]:
    """Return the name of each column that changed, with the declared losses that explain the change. Raises
    ConversionError for any other difference."""
    whole = verify.compare(wanted, got, ARROW, task.adapter.losses)
    if whole.problems:
        raise ConversionError(
            f"{task.adapter.variant} returns a different table: {'; '.join(whole.problems[:3])}.", _OTHER_VARIANT
        )
    if not whole.losses:
        return {}
    columns = (
        (name, verify.compare(wanted.select([name]), got.select([name]), ARROW, task.adapter.losses).losses)
        for name in wanted.column_names
    )
    return {name: "; ".join(losses) for name, losses in columns if losses}


def _allowed(task: Task, changes: Mapping[str, str]) -> Mapping[str, str]:
    """Return `changes` as they are. Raises ConversionError if they include a column that may not change."""
    forbidden = {} if task.may_change is None else {n: what for n, what in changes.items() if n not in task.may_change}
    if forbidden:
        said = "; ".join(f"{printable(name)!r} ({what})" for name, what in list(forbidden.items())[:4])
        more = f" and {len(forbidden) - 4:,} more" if len(forbidden) > 4 else ""
        raise ConversionError(
            f"{task.adapter.variant} would change {len(forbidden):,} column{'s' * (len(forbidden) > 1)}: {said}{more}.",
            f"To accept this: `allow_loss={tuple(forbidden)!r}`. Otherwise choose another variant.",
            parameter="allow_loss",
        )
    return changes
