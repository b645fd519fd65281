"""Make lines of Python that save and read data as a variant does. `recommend` prints them in its answer.

Each adapter (the class that calls a library) declares the library calls as text, next to the code that is measured.
This module adds variable names, and the conversion from and to the user's objects. The measured times include this
conversion, too. This module does not run the lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from adapters.contract import Adapter, Calls, ImageStorage, Native, PartCall, TabularFormat
from adapters.document_store import DocumentStoreAdapter
from adapters.predicate import Kind
from bench_runner.operations import Operation, operation_of
from bench_runner.operations.documents.ask import Asking, Sql
from bench_runner.operations.documents.fields import TABLE, Fields
from bench_runner.operations.parameters import ALL
from bench_runner.operations.tables.scan import Scan
from bench_runner.operations.tables.take import Take
from bench_runner.registries import engine_of
from bench_runner.variants import variant_of
from formats.shared.conditions import ARROW_TEXTS, IMPORT_COMPUTE

OWN_CODE = "# Format Bench's own code"
"""Comment at the end of lines that import this project."""


@dataclass(frozen=True)
class Lines:
    """Import lines, the line that saves the DataFrame `df`, and the line that reads it back.

    Other data have other names: `table` for an Arrow table, `lines` for JSON Lines, `arrays` and `labels` for images.
    For images and documents, `save` and `read` may consist of several lines.
    """

    imports: tuple[str, ...]
    save: str
    read: str

    def text(self) -> str:
        """Return all lines, ready to paste."""
        return "\n".join((*self.imports, self.save, self.read))


@dataclass(frozen=True)
class PartLines:
    """Import lines, and the lines for an operation on a part of the stored data, such as reading some columns.

    The lines assign their result to `df`, `table` or `documents`. `needs` describes the variables that the user must
    set before.
    """

    imports: tuple[str, ...]
    lines: tuple[str, ...]
    needs: str

    def text(self) -> str:
        """Return all lines, ready to paste."""
        return "\n".join((*self.imports, *self.lines))


def lines_of(variant: str, target: str, key: str = "id") -> Lines:
    """Return the lines that save and read all data.

    `variant` is a full name such as 'csv[engine=pandas]'. `target` is 'pandas', 'arrow', 'images' or 'documents'. For
    'documents', `key` is the field that identifies a document. The setting `nulls` is ignored, because it belongs to
    the measuring code and not to the library. Raises the errors of Registry.engine.
    """
    adapter = _adapter(variant)
    path = f'"data{adapter.suffix}"'
    if isinstance(adapter, DocumentStoreAdapter):
        return _of_documents(adapter, path, key)
    assert isinstance(adapter, TabularFormat | ImageStorage)
    calls = adapter.calls
    if calls is not None and isinstance(adapter, ImageStorage):
        return Lines(_sorted(calls.imports), calls.save.replace("{path}", path), calls.read.replace("{path}", path))
    if calls is None:
        return _by_adapter(adapter.variant, path, target, adapter.native, adapter.native_read)
    return _by_calls(calls, path, target, *_natives(adapter))


def part_lines_of(variant: str, target: str, spelled: str, key: str = "id") -> PartLines:
    """Return the lines for an operation on a part of the stored data. `spelled` is the full name of the operation, such
    as 'take[rows=10]'.

    If a variant has no call for the operation, the lines do the same as the measuring code: they read all data and
    select a part, or add rows and save all data again. Raises the errors of Registry.engine, and PlanError for an
    unknown operation.
    """
    adapter = _adapter(variant)
    if isinstance(adapter, DocumentStoreAdapter):
        return _part_of_documents(adapter, operation_of(spelled), key)
    assert isinstance(adapter, TabularFormat)
    operation = operation_of(spelled)
    held = "df" if target == "pandas" else "table"
    kind = Kind(operation.kind) if isinstance(operation, Scan) else None
    needs = _needs(operation.name, kind, every=isinstance(operation, Take | Scan) and operation.columns == ALL)
    if operation.fallback(adapter):
        imports, lines = _whole(lines_of(variant, target), operation.name, kind, target, held, adapter)
        if adapter.engine in _GIVES_VIEWS:
            one_by_one = "pa.concat_tables([table.select(columns).slice(row, 1) for row in rows])"
            lines = tuple(line.replace("table.select(columns).take(rows)", one_by_one) for line in lines)
            imports = _sorted((*imports, "import pyarrow as pa"))
        return PartLines(imports, lines, needs)
    path = f'"data{adapter.suffix}"'
    call = _part_call(adapter.calls, operation.name, kind)
    if call is not None and adapter.calls is not None:
        imports, natives = (*adapter.calls.imports, *call.imports), _natives(adapter)
    else:
        call = _part_by_adapter(adapter, operation.name, kind)
        imports, natives = call.imports, (adapter.native, adapter.native_read)
    given = _GIVEN.get((target, natives[0]), held).replace(held, "more")
    taken = _TAKEN.get((target, natives[1]), "{}")
    expression = call.expression.replace("{more}", given).replace("{path}", path)
    before = tuple(line.replace("{path}", path) for line in call.before)
    if operation.name == "append":
        return PartLines(_sorted(imports, given), (*before, expression), needs)
    last = f"{held} = {taken.replace('{}', expression)}"
    return PartLines(_sorted(imports, taken), (*before, last, *call.after), needs)


def _needs(name: str, kind: Kind | None, *, every: bool) -> str:
    """Return a description of the variables that the user must set for the lines of an operation."""
    if name == "append":
        return "more: the rows to add"
    asked = {"take": "rows: a list of row numbers from 0; "}.get(name, "")
    if kind is not None:
        asked = f"{_VALUES[kind]}; "
    return f"{asked}columns: a list of {'all ' * every}names"


_VALUES = {
    Kind.RANGE: "column, low (inclusive) and high (exclusive)",
    Kind.EQUAL: "column and value",
    Kind.IN: "column and values, a list",
    Kind.NULL: "column",
    Kind.PREFIX: "column and prefix",
}


def _part_call(calls: Calls | None, name: str, kind: Kind | None) -> PartCall | None:
    if calls is None:
        return None
    return calls.scan.get(kind) if kind is not None else getattr(calls, name)


_CLOSING = ("opened.close()",)
_GIVES_VIEWS = ("datafusion",)
"""Engines that return string views, which pyarrow's `take` does not support."""


def _part_by_adapter(adapter: TabularFormat, name: str, kind: Kind | None) -> PartCall:
    """Return code that calls Format Bench's own adapter for an operation. It is used if the adapter declares no call of
    the library for this operation."""
    storage = f'build_loaded("{adapter.variant}")'
    imports = ("from pathlib import Path", "from bench_runner.registries import build_loaded")
    if name == "append":
        return PartCall(f"{storage}.append({{more}}, Path({{path}}))", (), imports)
    if name == "take":
        opened = f"opened = {storage}.open_rows(Path({{path}}))"
        return PartCall("opened.take(np.array(rows), columns)", (opened,), (*imports, "import numpy as np"), _CLOSING)
    # The handle is assigned to a variable, because some handles close when they are garbage collected.
    opened = f"opened = {storage}.open(Path({{path}}))"
    if kind is None:
        return PartCall("opened.project(columns)", (opened,), imports, _CLOSING)
    values = {Kind.RANGE: "(low, high)", Kind.EQUAL: "(value,)", Kind.IN: "tuple(values)", Kind.PREFIX: "(prefix,)"}
    met = f"Predicate(column, Kind.{kind.name}, {values.get(kind, '()')})"
    predicate = "from adapters.predicate import Kind, Predicate"
    return PartCall(f"opened.scan({met}, columns)", (opened,), (*imports, predicate), _CLOSING)


def _whole(
    lines: Lines, name: str, kind: Kind | None, target: str, held: str, adapter: TabularFormat
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return import lines, and lines for an operation that the library does not offer.

    To append, the lines read all data, add the rows, and save all data again. For other operations, they read all data
    and select a part.
    """
    pandas = target == "pandas"
    if name == "append":
        in_arrow = "pa.concat_tables([table, more.cast(table.schema)])"
        joined = "pd.concat([df, more], ignore_index=True)" if pandas else in_arrow
        imports = (*lines.imports, "import os", "import pandas as pd" if pandas else "import pyarrow as pa")
        # Save into a new file, because the table in memory may be mapped from the old file. If saving fails, the old
        # file is intact.
        grown = lines.save.replace('"data.', '"grown.')
        removed = (f'shutil.rmtree("data{adapter.suffix}")',) if adapter.is_folder else ()
        imports += ("import shutil",) if adapter.is_folder else ()
        replaced = f'os.replace("grown{adapter.suffix}", "data{adapter.suffix}")'
        return _sorted(imports), (lines.read, f"{held} = {joined}", grown, *removed, replaced)
    if name == "take":
        selected = "df = df[columns].iloc[rows]" if pandas else "table = table.select(columns).take(rows)"
    elif kind is None:
        selected = "df = df[columns]" if pandas else "table = table.select(columns)"
    else:
        met = (_PANDAS_TEXTS if pandas else ARROW_TEXTS)[kind]
        selected = f"df = df.loc[{met}, columns]" if pandas else f"table = table.filter({met}).select(columns)"
    compute = () if pandas or kind is None else (IMPORT_COMPUTE,)
    return _sorted((*lines.imports, *compute)), (lines.read, selected)


_PANDAS_TEXTS = {
    Kind.RANGE: "(df[column] >= low) & (df[column] < high)",
    Kind.EQUAL: "df[column] == value",
    Kind.IN: "df[column].isin(values)",
    Kind.NULL: "df[column].isna()",
    Kind.PREFIX: "df[column].str.startswith(prefix, na=False)",
}


def _adapter(variant: str) -> Adapter:
    engine, settings = engine_of(variant_of(variant).without("nulls"))
    return engine(settings)


def _natives(adapter: Adapter) -> tuple[Native, Native]:
    """Return two kinds of object: what the adapter's save call takes, and what the adapter's read call returns.

    Native.RECORDS (rows as dicts) is replaced by Native.ARROW, because the lines for users pass an Arrow table then.
    """
    save, read = (
        Native.ARROW if native is Native.RECORDS else native for native in (adapter.native, adapter.native_read)
    )
    return save, read


def _sorted(imports: Iterable[str], expressions: str = "") -> tuple[str, ...]:
    return tuple(sorted({*imports, *_imports(expressions)}))


def _by_calls(calls: Calls, path: str, target: str, native: Native, native_read: Native) -> Lines:
    held = "df" if target == "pandas" else "table"
    given, taken = _GIVEN.get((target, native), held), _TAKEN.get((target, native_read), "{}")
    save = calls.save.replace("{held}", given).replace("{path}", path)
    read = taken.replace("{}", calls.read.replace("{path}", path))
    return Lines(_sorted(calls.imports, given + taken), save, f"{held} = {read}")


def _imports(expressions: str) -> Iterator[str]:
    if "pa." in expressions:
        yield "import pyarrow as pa"
    if "pl." in expressions:
        yield "import polars as pl"
    if "Native." in expressions:
        yield "from adapters.contract import Native"
        yield "from bench_runner.operations.targets import Target, from_native, to_native"


def _of_documents(adapter: DocumentStoreAdapter, path: str, key: str) -> Lines:
    """Return the lines that save `lines`, which are JSON Lines, and that read them as `documents`, a list of dicts.

    If the library needs more than a few lines for this, the returned lines call Format Bench's own adapter instead.
    """
    calls = adapter.calls
    if calls is not None:
        save, read = (
            told.replace("{held}", "lines").replace("{path}", path).replace("{key}", repr(key))
            for told in (calls.save, calls.read)
        )
        return Lines(_sorted(calls.imports), save, read)
    stored = f"Path({path}), key={key!r}"
    save = f"store = {_built(adapter)}\nstore.ingest([lines], {stored})"
    read = f"opened = store.open({stored})\ndocuments = [each for batch in opened.scan() for each in batch]"
    return Lines(_IMPORTS_OF_ADAPTER, save, read)


_IMPORTS_OF_ADAPTER = (f"from bench_runner.registries import build_loaded  {OWN_CODE}", "from pathlib import Path")


def _built(adapter: DocumentStoreAdapter) -> str:
    return f'build_loaded("{adapter.variant}")'


_PLAN = "plan: a question as JSON, see docs/operations.md#documents"


def _part_of_documents(adapter: DocumentStoreAdapter, operation: Operation, key: str) -> PartLines:
    """Return the lines that read a part of the documents: documents by key, some fields, or the answer to a question (a
    query).

    The lines are to be run after the lines that read all documents. They use the handle `opened`, and open a new handle
    if there is none yet. If the store itself cannot find documents by key or answer questions, the lines do this in
    Python, over all documents.
    """
    name = operation.name
    imports: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    plan = (f"plan = {operation.plan!r}",) if isinstance(operation, Sql) else ()
    needs = "" if plan else _PLAN
    if adapter.calls is not None and name == "get" and not adapter.offers.get:
        there = f"there = {{each[{key!r}]: each for each in documents}}"
        return PartLines((), (there, "documents = [there.get(key) for key in keys]"), "keys: a list")
    if isinstance(operation, Asking) and not adapter.offers.operators:
        held = "documents" if adapter.calls is not None else "[each for batch in opened.scan() for each in batch]"
        asked = f"rows = run_over_documents({held}, from_json(plan), {key!r})"
        return PartLines(
            (f"from libraries.document_queries import from_json, run_over_documents  {OWN_CODE}",),
            (*plan, asked),
            needs,
        )
    if adapter.calls is not None:
        imports = _IMPORTS_OF_ADAPTER
        before = (f'opened = {_built(adapter)}.open(Path("data{adapter.suffix}"), key={key!r})',)
    if name == "get":
        return PartLines(imports, (*before, "documents = opened.get(keys)"), "keys: a list")
    if isinstance(operation, Asking):
        return PartLines(imports, (*before, *plan, "rows = opened.query(plan)"), needs)
    if isinstance(operation, Fields) and operation.form == TABLE:
        typed = ("from adapters.document_store import TypedField", *imports)
        needs = 'fields: a list, e.g. [TypedField(("a", "b"), "text")]; or "boolean", "integer", "double"'
        return PartLines(typed, (*before, "table = opened.read_table(fields)"), needs)
    taken = "documents = [each for batch in opened.scan(paths) for each in batch]"
    return PartLines(imports, (*before, taken), 'paths: a list of field paths, e.g. [("a", "b")]')


def _by_adapter(variant: str, path: str, target: str, native: Native, native_read: Native) -> Lines:
    """Return lines that call Format Bench's own adapter, for variants that declare no call of the library.

    All image storages declare such calls, except storages that plugins add.
    """
    imports: tuple[str, ...] = ("from pathlib import Path", "from bench_runner.registries import build_loaded")
    if native is Native.IMAGES:
        imports = ("from adapters.contract import Images", *imports)
        held, given, taken = "images", "Images(arrays, labels)", "{}\narrays, labels = images.arrays, images.labels"
    else:
        held = "df" if target == "pandas" else "table"
        given, taken = _GIVEN.get((target, native), held), _TAKEN.get((target, native_read), "{}")
    storage = f'build_loaded("{variant}")'
    read = taken.replace("{}", f"{storage}.read(Path({path}))")
    return Lines(_sorted(imports, given + taken), f"{storage}.save({given}, Path({path}))", f"{held} = {read}")


_RECORDS = {kind: f'Target("{kind}"), Native.RECORDS' for kind in ("pandas", "arrow")}
"""Arguments of `to_native` and `from_native` for records, which are rows as dicts. Records and these two functions
belong to the measuring code."""
_GIVEN = {
    ("pandas", Native.RECORDS): f"to_native(df, {_RECORDS['pandas']})",
    ("arrow", Native.RECORDS): f"to_native(table, {_RECORDS['arrow']})",
    ("pandas", Native.ARROW): "pa.Table.from_pandas(df, preserve_index=False)",
    ("pandas", Native.POLARS): "pl.from_pandas(df)",
    ("arrow", Native.PANDAS): "table.to_pandas()",
    ("arrow", Native.POLARS): "pl.from_arrow(table)",
}
"""(Target, type that the adapter takes) -> expression that converts the user's object for the adapter."""
_TAKEN = {
    ("pandas", Native.RECORDS): f"from_native({{}}, {_RECORDS['pandas']})",
    ("arrow", Native.RECORDS): f"from_native({{}}, {_RECORDS['arrow']})",
    ("pandas", Native.ARROW): "{}.to_pandas()",
    ("pandas", Native.POLARS): "{}.to_pandas()",
    ("arrow", Native.PANDAS): "pa.Table.from_pandas({}, preserve_index=False)",
    ("arrow", Native.POLARS): "{}.to_arrow()",
}
"""(Target, type that the adapter returns) -> expression that converts the adapter's result for the user."""
