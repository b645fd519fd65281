"""The lines of Python that save and read data as a variant does, for whoever has decided for it.

The calls come from the adapter, so they stand beside the code that was measured; here they get names and the conversion
from what the user holds, which the harness does inside its clock. This module runs none of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from adapters.contract import Calls, Native, TabularFormat
from adapters.spelling import parse
from bench_runner.registries import build_unloaded


@dataclass(frozen=True)
class Lines:
    """Import lines, the line that saves `df` (`table` for Arrow, `images`), and the line that reads it back."""

    imports: tuple[str, ...]
    save: str
    read: str

    def text(self) -> str:
        """All of them, ready to paste."""
        return "\n".join((*self.imports, self.save, self.read))


def lines_of(variant: str, target: str) -> Lines:
    """For a spelled variant and a target, 'pandas', 'arrow' or 'images'. Raises what Registry.engine raises.

    Settings that the harness adds (nulls=numpy) are not the user's business: they do the conversion beforehand.
    """
    name, settings = parse(variant)
    settings.pop("nulls", None)
    adapter = build_unloaded(name, settings)
    path = f'"data{adapter.suffix}"'
    calls = adapter.calls if isinstance(adapter, TabularFormat) else None
    if calls is None:
        return _by_adapter(adapter.variant, path, target, adapter.native, adapter.native_read)
    # Calls stand for an Arrow table where the adapter takes records.
    natives = (Native.ARROW if native is Native.RECORDS else native for native in (adapter.native, adapter.native_read))
    return _by_calls(calls, path, target, *natives)


def _by_calls(calls: Calls, path: str, target: str, native: Native, native_read: Native) -> Lines:
    held = "df" if target == "pandas" else "table"
    given, taken = _GIVEN.get((target, native), held), _TAKEN.get((target, native_read), "{}")
    save = calls.save.replace("{held}", given).replace("{path}", path)
    read = taken.replace("{}", calls.read.replace("{path}", path))
    imports = (*calls.imports, *_imports(given + taken))
    return Lines(tuple(sorted(set(imports))), save, f"{held} = {read}")


def _imports(expressions: str) -> Iterator[str]:
    if "pa." in expressions:
        yield "import pyarrow as pa"
    if "pl." in expressions:
        yield "import polars as pl"
    if "Native." in expressions:
        yield "from adapters.contract import Native"
        yield "from bench_runner.operations.targets import Target, from_native, to_native"


def _by_adapter(variant: str, path: str, target: str, native: Native, native_read: Native) -> Lines:
    """Where no library has a call of one line: Format Bench's own adapter, as it was measured."""
    imports: tuple[str, ...] = ("from pathlib import Path", "from bench_runner.registries import build_loaded")
    if target == "images":
        imports = ("from adapters.contract import Images", *imports)
        held, given, taken = "images", "Images(arrays, labels)", "{}"
    else:
        held = "df" if target == "pandas" else "table"
        given, taken = _GIVEN.get((target, native), held), _TAKEN.get((target, native_read), "{}")
    imports = (*imports, *_imports(given + taken))
    storage = f'build_loaded("{variant}")'
    read = taken.replace("{}", f"{storage}.read(Path({path}))")
    return Lines(tuple(sorted(set(imports))), f"{storage}.save({given}, Path({path}))", f"{held} = {read}")


_RECORDS = {kind: f'Target("{kind}"), Native.RECORDS' for kind in ("pandas", "arrow")}
"""Rows and their schema are the harness's own, so it makes them."""
_GIVEN = {
    ("pandas", Native.RECORDS): f"to_native(df, {_RECORDS['pandas']})",
    ("arrow", Native.RECORDS): f"to_native(table, {_RECORDS['arrow']})",
    ("pandas", Native.ARROW): "pa.Table.from_pandas(df, preserve_index=False)",
    ("pandas", Native.POLARS): "pl.from_pandas(df)",
    ("arrow", Native.PANDAS): "table.to_pandas()",
    ("arrow", Native.POLARS): "pl.from_arrow(table)",
}
"""What an adapter takes, by what the user holds."""
_TAKEN = {
    ("pandas", Native.RECORDS): f"from_native({{}}, {_RECORDS['pandas']})",
    ("arrow", Native.RECORDS): f"from_native({{}}, {_RECORDS['arrow']})",
    ("pandas", Native.ARROW): "{}.to_pandas()",
    ("pandas", Native.POLARS): "{}.to_pandas()",
    ("arrow", Native.PANDAS): "pa.Table.from_pandas({}, preserve_index=False)",
    ("arrow", Native.POLARS): "{}.to_arrow()",
}
"""What the user wants, of what an adapter gives back."""
