"""Arrow streams: Arrow's own layout without the footer of a file, so that it can be sent while it is written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapters.contract import Can, Maturity, Native, Setting, Stage, Stored, TabularFormat

if TYPE_CHECKING:
    import pyarrow as pa


class ArrowStream(TabularFormat):
    """pyarrow.ipc's stream writer and reader."""

    format = "arrow-stream"
    engine = "pyarrow"
    title = "Arrow stream"
    distributions = ("pyarrow",)
    native = Native.ARROW
    suffix = ".arrows"
    maturity = Maturity(Stage.ESTABLISHED, "Arrow's IPC streams, stable since 2020; C++, Java, Rust and Go read them")
    settings: ClassVar = {"batch_rows": Setting(range(1, 10_000_001), 65_536, "rows of a record batch")}
    capabilities = frozenset({Can.TYPES, Can.NESTED, Can.SINGLE_FILE, Can.OTHER_LANGUAGES, Can.NO_PICKLE})

    def load_library(self) -> None:
        """Import pyarrow."""
        import pyarrow

        self._arrow = pyarrow

    def save(self, table: pa.Table, location: Path) -> None:
        """Write one file."""
        with self._arrow.OSFile(str(location), "wb") as file, self._arrow.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table, max_chunksize=self.values["batch_rows"])

    def read(self, location: Path) -> pa.Table:
        """Read all batches into private memory."""
        with self._arrow.OSFile(str(location)) as file, self._arrow.ipc.open_stream(file) as stream:
            return stream.read_all()

    def stored(self, location: Path) -> Stored:
        """Open the file, which fails if it is not a stream; this adapter writes no codec."""
        with self._arrow.OSFile(str(location)) as file, self._arrow.ipc.open_stream(file) as stream:
            return Stored(None, (), {"columns": str(len(stream.schema))})


ENGINES = (ArrowStream,)
