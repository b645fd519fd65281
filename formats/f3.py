"""F3, a research format whose files contain the code that decodes them.

The package `libraries.f3`, which is part of this project, implements the format. This module is its adapter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters.contract import Calls, Can, Maturity, Native, PartCall, Setting, Stage, Stored, TabularFormat
from adapters.errors import AdapterError, RefusedData
from adapters.offers import Handle, Offers, Reach, Sharing
from adapters.predicate import Kind, Predicate
from formats.shared.conditions import ARROW_TEXTS, IMPORT_COMPUTE, arrow_expression
from formats.shared.rows import checked
from formats.shared.streams import tables

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


class F3(TabularFormat):
    """F3 by the calls `write` and `open(..).read` of `libraries.f3`. `write` uses one thread."""

    format = "f3"
    # There is only one library for F3, so the names of variants have no engine.
    engine = None
    title = "F3"
    # This project's own distribution comes first, because its version is reported as the version of F3's code.
    distributions = ("format-bench", "flatbuffers", "wasmtime", "xxhash", "zstandard")
    native = Native.ARROW
    suffix = ".f3"
    settings: ClassVar = {
        "codec": Setting(
            ("adaptive", "none", "lz4", "zstd"),
            "adaptive",
            "codec of each encoding unit (EncUnit), applied after its encoding; adaptive: zstd where it saves a fifth",
            always_spelled=True,
        ),
        "decoder": Setting(
            ("native", "wasm"),
            "native",
            "wasm: files are decoded by the code that they contain; native: by a library that does the same",
        ),
        "dictionary": Setting(
            ("best", "none", "local", "shared"),
            "best",
            "dictionaries in addition to those inside encodings: one per unit (local), one per 1,048,576 rows "
            "(shared), or shared ones where they save space (best)",
        ),
        "rows_per_unit": Setting(
            range(1, 2**21), None, "most rows of an encoding unit (EncUnit), which has at most 1 MiB; by default 65,536"
        ),
        "row_group_rows": Setting(range(1, 2**31), None, "rows of a row group; by default one group has all rows"),
        "unit_bytes": Setting(
            range(1_024, 2**31), None, "number of bytes that fills a unit of reading (IOUnit); by default 8 MiB"
        ),
    }
    plain: ClassVar = {"codec": "none"}
    library_default: ClassVar = {"codec": "adaptive"}
    equal: ClassVar = {"codec": "zstd"}
    beside: ClassVar = ({"codec": "none", "decoder": "wasm"},)
    maturity = Maturity(
        Stage.EXPERIMENTAL,
        "a research prototype that its authors advise not to use in production; apart from it, only this project's own "
        "code reads such files",
        ours=True,
    )
    capabilities = frozenset({Can.PROJECTION, Can.TYPES, Can.NESTED, Can.SINGLE_FILE, Can.NO_PICKLE})
    offers = Offers(
        project=True,
        take=Reach.GROUPS,
        scan=frozenset(Kind),
        keeps_columns=True,
        batches=True,
        save_stream=True,
        sharing=Sharing.EACH,
    )
    syncs_on_save = True

    @property
    def calls(self) -> Calls:
        """The code that a user writes to save and read the data without this adapter."""
        prefer = "" if self.values["decoder"] == "native" else ', prefer="wasm"'
        settings = "".join(f", {name}={value!r}" for name, value in self._settings().items())
        return Calls(
            ("from libraries import f3",),
            f"f3.write({{held}}, {{path}}{settings})",
            f"f3.open({{path}}{prefer}).read()",
            project=PartCall(f"f3.open({{path}}{prefer}).read(columns)"),
            take=PartCall(f"f3.open({{path}}{prefer}).read(columns, np.array(rows))", (), ("import numpy as np",)),
            scan={
                kind: PartCall(f"f3.open({{path}}{prefer}).read(columns, where={met})", (), (IMPORT_COMPUTE,))
                for kind, met in ARROW_TEXTS.items()
            },
        )

    def _settings(self) -> dict[str, Any]:
        """Return those parameters for the writer that differ from the writer's defaults."""
        names = ("rows_per_unit", "row_group_rows", "unit_bytes")
        settings = {name: self.values[name] for name in names if self.values[name] is not None}
        if self.values["dictionary"] != "best":
            settings["dictionary"] = self.values["dictionary"]
        if self.values["codec"] != "adaptive":
            settings["codec"] = None if self.values["codec"] == "none" else self.values["codec"]
        return settings

    def load_library(self) -> None:
        """Import `libraries.f3` and its encodings. With decoder=wasm, also import the WebAssembly runtime.

        Raises RefusedData with decoder=native if the native library is not built. Otherwise `libraries.f3` would use
        another decoder, and reports would show the times of this decoder for decoder=native.
        """
        from libraries import f3
        from libraries.f3.decoders import native
        from libraries.f3.encodings import unit_codec

        self._f3 = f3
        if self.values["decoder"] == "wasm":
            import_module("wasmtime")
        elif native.library() is None:
            raise RefusedData(f"{native.NOT_BUILT.splitlines()[0]}; f3[decoder=wasm] measures this case")
        unit_codec.modules()

    def save(self, table: pa.Table, location: Path) -> None:
        """Write the whole table as one file."""
        try:
            self._f3.write(table, location, **self._settings())
        except self._f3.F3Error as error:
            raise RefusedData(str(error)) from error

    def save_stream(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], location: Path) -> None:
        """Write a stream of batches as one file, one encoding unit at a time. The file gets its name when it is
        complete."""
        try:
            with self._f3.Writer(location, schema, **self._settings()) as writer:
                for batch in batches:
                    writer.write_batch(batch)
        except self._f3.F3Error as error:
            raise RefusedData(str(error)) from error

    def read(self, location: Path) -> pa.Table:
        """Read all columns of the file."""
        prefer: Any = self.values["decoder"]
        with self._f3.open(location, prefer=prefer, threads=self.threads) as file:
            return file.read()

    def open(self, location: Path) -> Handle:
        """Return a handle that keeps the file open."""
        prefer: Any = self.values["decoder"]
        file = self._f3.open(location, prefer=prefer, threads=self.threads)

        def take(numbers: np.ndarray, columns: Sequence[str]) -> pa.Table:
            return file.read(columns, checked(numbers, file.num_rows))

        def scan(predicate: Predicate, columns: Sequence[str]) -> pa.Table:
            return file.read(columns, where=arrow_expression(predicate))

        def batches(columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
            return tables(file.batches(columns), columns, rows)

        return Handle(project=file.read, take=take, scan=scan, batches=batches, close=file.close)

    def stored(self, location: Path) -> Stored:
        """Return the codec and the outermost encodings of all encoding units (EncUnits) of the file.

        With codec=adaptive, the codecs that were used come after the encodings. Raises RefusedData if the codec makes
        no encoding unit smaller, because F3 then stores all units uncompressed. Raises AdapterError if the file has
        fewer row groups than requested.
        """
        with self._f3.open(location) as file:
            described = file.describe()
            encodings = file.encodings()
        asked = self.values["row_group_rows"]
        least = 0 if asked is None else -(-described.rows // int(asked))
        if described.row_groups < least:
            raise AdapterError(
                f"the file has {described.row_groups:,} row groups, but row_group_rows={asked} needs at least {least:,}"
            )
        codec = str(self.values["codec"])
        found = set(described.codecs) - {"none"}
        if codec == "adaptive":
            return Stored(codec, (*encodings, *sorted(found)))
        if codec != "none" and not found:
            raise RefusedData(f"codec={codec} makes no encoding unit of this data smaller, so F3 compresses none")
        return Stored("+".join(sorted(found)) or "none", encodings)


ENGINES = (F3,)
