"""A format that misbehaves on request. It is found through an entry point, like a third-party format.

It stores Arrow IPC. The setting `fault` selects the fault. Its default is FAULTY_FORMAT of the environment, else
`none`. With `spy` the phases sleep for known times; with `notes` each call prints its conditions.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from adapters.contract import Can, Native, Setting, Stored, TabularFormat
from adapters.errors import RefusedData
from adapters.losses import Cause, Loss, Relation
from adapters.offers import Handle, Offers, Reach, Sharing
from adapters.predicate import Kind, Predicate
from bench_runner.operations.tables import predicates

try:
    import known_children  # workers have this folder on their path
    import streaming_faults
    import training_faults
except ImportError:
    from tests.plugins import known_children, streaming_faults, training_faults

SAVE_SLEEP_S, READ_SLEEP_S, STORED_SLEEP_S, LOAD_SLEEP_S = 0.20, 0.30, 0.50, 0.40
"""Sleeps in untimed phases are longer than the delays that a noisy machine may add to timed phases."""
FAULTS = (
    "none",
    "spy",
    "notes",
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
    "does_not_take_it",
    "does_not_hold_it",
    "does_not_read_it",
    "exits_on_read",
    "read_holds",
    "takes",
    "take_sorted",
    "take_drops_one",
    "take_of_the_call_before",
    "take_holds",
    "take_replaces_the_copy",
    "take_keeps_what_it_has_read",
    "take_keeps_what_the_first_call_read",
    "take_maps",
    "take_by_streams",
    "take_by_streams_each",
    "take_streams_mixed_up",
    "take_streams_one_fails",
    *training_faults.FAULTS,
    "takes_in_stored_order",
    "take_by_streams_keeps",
    "scans",
    "scan_drops_nulls",
    "scan_drops_the_last",
    "scan_unordered",
    "appends",
    "append_replaces",
    "append_before",
    "append_twice",
    *streaming_faults.FAULTS,
    "nothing_written",
    "wrong_codec",
    "busy_threads",
    "starts_a_child",
    "changes_after_removal",
    "grows_100_mb",
    "copies_nothing",
    "aborts_on_load",
    "child_takes",
    "child_takes_then_worker",
    "child_burns",
    "child_burns_and_stays",
    "was_there_and_takes",
    "was_there_and_burns",
    "was_there_and_ends",
    "grandchild",
    "grandchild_burns",
    "daemon",
    "fork",
    "vforks",
    "projects",
    "project_crashes",
    "project_raises",
    "project_wrong_columns",
    "project_wrong_order",
    "project_wrong_values",
    "project_kept",
    "project_kept_gives_the_columns_before",
    "project_beside_a_read_that_exits",
    "project_beside_a_read_that_drops",
)
TAKING = tuple(fault for fault in FAULTS if fault.startswith("take"))
SCANNING = tuple(fault for fault in FAULTS if fault.startswith("scan"))
APPENDING = tuple(fault for fault in FAULTS if fault.startswith("append"))
STREAMING = {fault: Sharing.EACH if fault.endswith("each") else Sharing.ONE for fault in FAULTS if "streams" in fault}
PROJECTING = tuple(fault for fault in FAULTS if fault.startswith("project"))
"""Faults with which the format offers `project`."""


def _negative_is_lost(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.round(column, 2) if pa.types.is_floating(column.type) else None


def _write_buffers(table: Any, location: Path) -> None:
    """Write the buffers of columns of integers without nulls, followed by the schema."""
    with location.open("wb", buffering=0) as stream:
        for column in table.columns:
            for chunk in column.chunks:
                for buffer in filter(None, chunk.buffers()):
                    stream.write(buffer)
        schema = table.schema.serialize().to_pybytes()
        stream.write(schema + len(schema).to_bytes(8, "little"))


def _read_buffers(location: Path) -> Any:
    import numpy as np
    import pyarrow as pa

    content = location.read_bytes()
    length = int.from_bytes(content[-8:], "little")
    schema = pa.ipc.read_schema(pa.py_buffer(content[-8 - length : -8]))
    columns = np.frombuffer(content[: -8 - length], np.int64).reshape(len(schema), -1)
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=schema)


class Faulty(TabularFormat):
    """Arrow IPC with planted faults."""

    format = "faulty"
    engine = "test"
    title = "Faulty"
    distributions = ("pyarrow",)
    native = Native.ARROW
    suffix = ".arrow"
    settings: ClassVar = {
        "fault": Setting(FAULTS, os.environ.get("FAULTY_FORMAT", "none"), "what goes wrong"),
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
        import pyarrow.vendored.version  # which write_feather would import during the call

        if self.fault == "aborts_on_load":
            os.abort()
        if self.fault == "spy":
            time.sleep(LOAD_SLEEP_S)
        self._pa, self._pc = pa, pc

    def save(self, table: Any, location: Path) -> None:
        pa, fault = self._pa, self.fault
        if fault == "spy":
            time.sleep(SAVE_SLEEP_S)
        if fault == "notes":
            self._note(call="save", rows=table.num_rows, location=location)
        if fault == "refuses":
            raise RefusedData("this format takes no tables on Saturdays")
        if fault == "does_not_take_it":
            raise TypeError("objects of this kind\ncannot be stored")
        if fault == "does_not_hold_it":
            json.dumps(float("nan"), allow_nan=False)
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
        if fault in known_children.STARTING:
            known_children.STARTING[fault]()
        if fault == "grows_100_mb":
            grown = b"x" * 100_000_000
            time.sleep(0.05)
            del grown
        if fault == "copies_nothing":
            _write_buffers(table, location)
            return
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
        if fault == "notes":
            self._note(call="read", location=location)
        if fault in ("exits_on_read", "project_beside_a_read_that_exits"):
            os._exit(3)
        if fault == "does_not_read_it":
            raise TypeError("a fault of the reader")
        if fault == "hangs_on_read":
            time.sleep(3600)
        if fault == "read_holds":
            held = b"x" * known_children.TAKEN_BYTES
            time.sleep(known_children.STAYS_S)
            del held
        if fault == "copies_nothing":
            return _read_buffers(location)
        table = pa.feather.read_table(location, memory_map=fault.startswith("mapped"))
        if fault == "changes_after_removal":
            return self._changed(table, pa.types.is_int64, self._changing_on_removal)
        if fault == "mapped_deleted":
            location.unlink()
        if fault in ("drop_last_row", "project_beside_a_read_that_drops"):
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

    @property
    def offers(self) -> Offers:
        fault = self.fault
        return Offers(
            project=fault in PROJECTING,
            take=Reach.ROWS if fault in TAKING else None,
            scan=frozenset(Kind) if fault in SCANNING else frozenset(),
            append=fault in APPENDING,
            sharing=STREAMING.get(fault),
            keeps_columns=fault.startswith("project_kept"),
            batches=fault in (*streaming_faults.FAULTS, *training_faults.FAULTS),
            save_stream=fault in streaming_faults.FAULTS,
        )

    @property
    def reads_unseen(self) -> bool:
        return self.fault == "take_maps"

    def open(self, location: Path) -> Handle:
        def project(columns: Sequence[str]) -> Any:
            return self._project(location, list(columns))

        def scan(predicate: Predicate, columns: Sequence[str]) -> Any:
            return self._scan(location, predicate, list(columns))

        def batches(columns: Sequence[str], rows: int) -> Iterator[Any]:
            if self.fault in training_faults.FAULTS:
                return training_faults.batches(self.fault, location, list(columns), rows)
            return streaming_faults.batches(self.fault, location, list(columns), rows)

        return Handle(project=project, scan=scan, batches=batches)

    def save_stream(self, schema: Any, batches: Iterator[Any], location: Path) -> None:
        streaming_faults.save_stream(self.fault, schema, batches, location)

    def open_rows(self, location: Path) -> Handle:
        kept: dict[str, Any] = {}

        def take(numbers: Any, columns: Sequence[str]) -> Any:
            fault = self.fault
            if fault in STREAMING:
                return self._take_by_streams(numbers, list(columns), location, kept)
            if fault == "take_holds":
                # The memory is filled, because untouched memory does not count.
                kept.setdefault("block", bytearray(b"x" * 20_000_000))
            table = kept.get("table")
            if table is None:
                table = self._pa.feather.read_table(location, memory_map=fault == "take_maps")
            kept["calls"] = kept.get("calls", 0) + 1
            first = fault == "take_keeps_what_the_first_call_read"
            if first or (fault == "take_keeps_what_it_has_read" and kept["calls"] > 10):
                kept["table"] = table
            if fault == "take_sorted":
                numbers = sorted(numbers)
            if fault == "takes_in_stored_order":
                # This imitates a loader that does not shuffle.
                first = kept.get("next", 0)
                kept["next"] = (first + len(numbers)) % table.num_rows
                numbers = [(first + place) % table.num_rows for place in range(len(numbers))]
            if fault == "take_replaces_the_copy" and kept["calls"] == 3:
                other = location.with_name("other")
                other.write_bytes(location.read_bytes())
                os.replace(other, location)
            if fault == "take_drops_one":
                numbers = numbers[:-1]
            asked, kept["before"] = numbers, numbers
            if fault == "take_of_the_call_before" and kept["calls"] == 7:
                asked = kept["earlier"]
            kept["earlier"] = kept["before"]
            return table.select(list(columns)).take(self._pa.array(asked))

        return Handle(take=take)

    def open_columns(self, location: Path) -> Handle:
        asked_before: list[list[str]] = []

        def project(columns: Sequence[str]) -> Any:
            asked_before.append(list(columns))
            late = self.fault == "project_kept_gives_the_columns_before" and len(asked_before) == 5
            table = self._project(location, asked_before[-2 if late else -1])
            return table.rename_columns(list(columns))

        return Handle(project=project)

    def _take_by_streams(self, numbers: Any, columns: list[str], location: Path, kept: dict[str, Any]) -> Any:
        fault, thread = self.fault, threading.get_ident()
        kept.setdefault("threads", set()).add(thread)
        if fault == "take_by_streams_each" and len(kept["threads"]) > 2:
            raise RuntimeError("two streams use one handle, in addition to the thread that opened it")
        kept["asked"] = numbers
        # Wait long enough that calls of other streams arrive.
        time.sleep(0.002)
        if fault == "take_streams_one_fails" and len(kept["threads"]) > 3:
            raise ValueError("one of many")
        asked = kept["asked"] if fault == "take_streams_mixed_up" else numbers
        kept["calls"] = kept.get("calls", 0) + 1
        table = kept.get("table")
        if table is None:
            table = self._pa.feather.read_table(location, memory_map=False)
        if fault == "take_by_streams_keeps" and kept["calls"] > 20:
            kept["table"] = table
        return table.select(columns).take(self._pa.array(asked))

    def _scan(self, location: Path, predicate: Predicate, columns: list[str]) -> Any:
        table = self._pa.feather.read_table(location, memory_map=False)
        met = self._pc.fill_null(predicates.mask(table.column(predicate.column), predicate), False)
        rows = self._pc.indices_nonzero(met).to_pylist()
        if self.fault == "scan_drops_nulls":
            others = [name for name in table.column_names if name != predicate.column]
            rows = [row for row in rows if all(table.column(name)[row].is_valid for name in others)]
        if self.fault == "scan_drops_the_last":
            rows.pop()
        if self.fault == "scan_unordered":
            rows.reverse()
        return table.select(columns).take(rows)

    def append(self, table: Any, location: Path) -> None:
        before = self._pa.feather.read_table(location, memory_map=False)
        parts = {"append_replaces": [table], "append_before": [table, before], "append_twice": [before, table, table]}
        both = self._pa.concat_tables(parts.get(self.fault, [before, table]))
        self._pa.feather.write_feather(both, location, compression="uncompressed")

    def _project(self, location: Path, columns: list[str]) -> Any:
        fault = self.fault
        if fault == "project_crashes":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "project_raises":
            raise ValueError("no columns today")
        if fault == "project_wrong_columns":
            everything = self._pa.feather.read_table(location, memory_map=False).column_names
            columns[0] = next(name for name in everything if name not in columns)
        if fault == "project_wrong_order":
            columns.reverse()
        table = self._pa.feather.read_table(location, columns=columns, memory_map=False).select(columns)
        if fault == "project_wrong_values":
            order = list(range(table.num_rows))
            order[3], order[7] = order[7], order[3]
            return table.take(order)
        return table

    def _note(self, **facts: Any) -> None:
        """Print the conditions of the call as one line of JSON."""
        facts |= {
            "collector": gc.isenabled(),
            "environment": {name: value for name, value in os.environ.items() if "THREADS" in name},
            "arrow_cpu": self._pa.cpu_count(),
            "arrow_io": self._pa.io_thread_count(),
            "cores": len(os.sched_getaffinity(0)),
            "oom_score_adj": int(Path("/proc/self/oom_score_adj").read_text()),
            "location": str(facts["location"]),
        }
        print(json.dumps(facts), flush=True)

    def _changing_on_removal(self, column: Any) -> Any:
        """Return a copy of the column whose values change as soon as any file is removed."""
        import numpy as np

        array = column.combine_chunks()
        validity, data = array.buffers()
        values = np.frombuffer(data, np.int64).copy()

        def change(event: str, arguments: object) -> None:
            if event == "os.remove":
                values[:] += 1

        sys.addaudithook(change)
        return self._pa.Array.from_buffers(array.type, len(array), [validity, self._pa.py_buffer(values)])

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
        if self.fault == "stream_save_by_another_codec" and location.parent.name.endswith("-stream-save"):
            return Stored(codec="zstd")
        if self.fault == "wrong_codec":
            return Stored(codec="none" if self.values["codec"] != "none" else "zstd")
        return Stored(codec=str(self.values["codec"]))


ENGINES = (Faulty,)
