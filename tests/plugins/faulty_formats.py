"""A format that misbehaves on request, found through an entry point as a third party's would be.

It stores Arrow IPC. `fault` names what goes wrong; with `fault=none` it is a well-behaved spy whose phases sleep for
known times and which notes, in the order of the calls, what was asked of it.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, ClassVar

from adapters.contract import Can, Native, Setting, Stored, TabularFormat
from adapters.errors import RefusedData
from adapters.losses import Cause, Loss, Relation

SAVE_SLEEP_S, READ_SLEEP_S, STORED_SLEEP_S, LOAD_SLEEP_S = 0.20, 0.30, 0.15, 0.10
FAULTS = (
    "none",
    "spy",
    "drop_last_row",
    "swap_rows",
    "int_to_float",
    "none_to_empty",
    "fault_in_lossy",
    "mapped_deleted",
    "mapped",
    "stray_beside",
    "stray_in_working_directory",
    "stray_in_temporary",
    "stray_elsewhere",
    "prints",
    "exits",
    "exits_by_python",
    "killed",
    "hangs",
    "hangs_on_read",
    "allocates",
    "fills_disk",
    "refuses",
    "raises",
    "nothing_written",
    "wrong_codec",
    "busy_threads",
    "starts_a_child",
    "changes_after_removal",
    "grows_100_mb",
)


def _negative_is_lost(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.round(column, 2) if pa.types.is_floating(column.type) else None


class Faulty(TabularFormat):
    """Arrow IPC with planted faults."""

    format = "faulty"
    engine = "test"
    title = "Faulty"
    distributions = ("pyarrow",)
    native = Native.ARROW
    suffix = ".arrow"
    settings: ClassVar = {
        "fault": Setting(FAULTS, "none", "what goes wrong"),
        "codec": Setting(("none", "zstd"), "none", "codec of the file", always_spelled=True),
    }
    capabilities = frozenset({Can.SINGLE_FILE})

    @property
    def losses(self) -> tuple[Loss, ...]:  # type: ignore[override]
        if self.fault != "fault_in_lossy":
            return ()
        relation = Relation(_negative_is_lost)
        return (Loss("floats are rounded", "to 2 decimals", Cause.FORMAT, relation, frozenset({"float64"})),)

    @property
    def fault(self) -> str:
        return str(self.values["fault"])

    def load_library(self) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.feather

        if self.fault == "spy":
            time.sleep(LOAD_SLEEP_S)
        self._pa, self._pc = pa, pc

    def save(self, table: Any, location: Path) -> None:
        pa, fault = self._pa, self.fault
        if fault == "spy":
            time.sleep(SAVE_SLEEP_S)
        if fault == "refuses":
            raise RefusedData("this format takes no tables on Saturdays")
        if fault == "raises":
            raise ValueError("a message\nof two lines")
        if fault == "exits":
            os._exit(0)
        if fault == "exits_by_python":
            sys.exit(0)
        if fault == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "hangs":
            time.sleep(3600)
        if fault == "allocates":
            kept = []
            while True:
                kept.append(b"x" * 10_000_000)
        if fault == "fills_disk":
            with location.open("wb") as stream:
                while True:
                    stream.write(bytes(1 << 20))
        if fault == "prints":
            print("a careless print")
            sys.stdout.flush()
            os.write(2, b"and a careless warning\n")
        if fault == "nothing_written":
            return
        if fault == "stray_beside":
            Path(f"{location}.bak").write_text("stray")
        if fault == "stray_in_working_directory":
            Path("stray.txt").write_text("stray")
        if fault == "stray_in_temporary":
            Path(os.environ.get("TMPDIR", tempfile.gettempdir()), "stray.txt").write_text("stray")
        if fault == "stray_elsewhere":
            (location.parents[2] / "elsewhere.txt").write_text("stray")
        if fault == "starts_a_child":
            child = os.fork()
            if child == 0:
                time.sleep(3600)
        if fault == "grows_100_mb":
            grown = b"x" * 100_000_000
            time.sleep(0.05)
            del grown
        codec = None if self.values["codec"] == "none" or fault == "wrong_codec" else self.values["codec"]
        pa.feather.write_feather(table, location, compression=codec or "uncompressed")
        if fault == "busy_threads":
            from threading import Thread

            import numpy as np

            values = np.random.default_rng(1).random(5_000_000)
            threads = [Thread(target=np.sort, args=(values,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    def read(self, location: Path) -> Any:
        pa, fault = self._pa, self.fault
        if fault == "spy":
            time.sleep(READ_SLEEP_S)
        if fault == "hangs_on_read":
            time.sleep(3600)
        table = pa.feather.read_table(location, memory_map=fault.startswith("mapped"))
        if fault == "mapped_deleted":
            location.unlink()
        if fault == "drop_last_row":
            return table.slice(0, table.num_rows - 1)
        if fault == "swap_rows":
            order = list(range(table.num_rows))
            order[3], order[7] = order[7], order[3]
            return table.take(order)
        if fault == "int_to_float":
            return self._changed(table, pa.types.is_int64, lambda column: column.cast(pa.float64()))
        if fault == "none_to_empty":
            return self._changed(table, self._is_text, lambda column: self._pc.fill_null(column, ""))
        if fault == "fault_in_lossy":
            rounded = self._changed(table, pa.types.is_float64, lambda column: self._pc.round(column, 2))
            return self._changed(rounded, pa.types.is_float64, self._first_value_off)
        return table

    def _first_value_off(self, column: Any) -> Any:
        values = column.to_pylist()
        values[5] += 1
        return self._pa.chunked_array([values], type=column.type)

    def _is_text(self, kind: Any) -> bool:
        return bool(self._pa.types.is_string(kind) or self._pa.types.is_large_string(kind))

    @staticmethod
    def _changed(table: Any, which: Any, change: Any) -> Any:
        for index, column in enumerate(table.schema):
            if which(column.type):
                return table.set_column(index, column.name, change(table.column(index)))
        raise AssertionError("the table has no such column")

    def stored(self, location: Path) -> Stored:
        if self.fault == "spy":
            time.sleep(STORED_SLEEP_S)
        if self.fault == "wrong_codec":
            return Stored(codec="none" if self.values["codec"] != "none" else "zstd")
        return Stored(codec=str(self.values["codec"]))


ENGINES = (Faulty,)
