"""A format whose stored copy is served by a separate process. It is found through an entry point, like a third-party
format.

The service reads the copy, filters it and sends Arrow IPC. `fault` selects the fault. Each query uses known CPU time
and memory, with which tests compare the measured figures of the service.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from adapters.contract import Can, Native, Setting, TabularFormat
from adapters.offers import Handle, Offers
from adapters.predicate import Kind, Predicate
from adapters.services import TOKEN, Served, Service

WORK_S = 0.02
"""CPU time of each query."""
TAKES_BYTES = 60_000_000
"""Memory that each query allocates and frees."""
_LENGTH = struct.Struct("<Q")


class ServedTable(TabularFormat):
    """An Arrow file in a folder, and a service that reads the file."""

    format = "served"
    engine = None
    title = "Served"
    distributions = ("served-formats",)
    native = Native.ARROW
    suffix = ".served"
    capabilities = frozenset({Can.TYPES})
    settings: ClassVar = {
        "fault": Setting(("none", "ends", "wrong", "never_starts", "reads_to_warm_up"), "none", "what goes wrong")
    }
    offers = Offers(scan=frozenset(Kind), keeps_scans=True)
    is_served = True

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._location: Path | None = None

    def load_library(self) -> None:
        pass

    def save(self, table: pa.Table, location: Path) -> None:
        self.data_of(location).mkdir(parents=True)
        with pa.OSFile(str(_file(location)), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)

    def read(self, location: Path) -> pa.Table:
        return _read(location)

    def data_of(self, location: Path) -> Path:
        return location / "data"

    def services(self, location: Path) -> tuple[Service, ...]:
        fault = str(self.values["fault"])
        return (Service("node", ("-m", "served_formats", str(location), fault, "{advertised}")),)

    def reach(self, location: Path, served: Served) -> None:
        self._location, self._served = location, served

    def warm_up(self, location: Path) -> None:
        self._ask({"warm": True})

    def open(self, location: Path) -> Handle:
        if location != self._location:
            table = _read(location)
            return Handle(scan=lambda asked, columns: _filtered(table, _words(asked), columns))
        return Handle(scan=lambda asked, columns: self._ask({**_words(asked), "columns": list(columns)}))

    def _ask(self, question: dict[str, Any]) -> Any:
        host, _, port = self._served.addresses["node"].partition(":")
        with socket.create_connection((host, int(port))) as line:
            line.sendall(json.dumps({**question, "token": self._served.token}).encode() + b"\n")
            with line.makefile("rb") as answer:
                (length,) = _LENGTH.unpack(answer.read(_LENGTH.size))
                body = answer.read(length)
        return pa.ipc.open_stream(body).read_all()


def _file(location: Path) -> Path:
    return location / "data" / "table.arrow"


def _read(location: Path) -> pa.Table:
    with pa.OSFile(str(_file(location))) as file:
        return pa.ipc.open_file(file).read_all()


def _words(asked: Predicate) -> dict[str, Any]:
    assert asked.kind is Kind.RANGE
    return {"column": asked.column, "low": asked.values[0], "high": asked.values[1]}


def _filtered(table: pa.Table, words: dict[str, Any], columns: Sequence[str]) -> pa.Table:
    # The harness's own filter is not used, because every start of the service would have to import its module.
    column = table.column(words["column"])
    low, high = (pa.scalar(words[end], column.type) for end in ("low", "high"))
    return table.filter(pc.and_(pc.greater_equal(column, low), pc.less(column, high))).select(list(columns))


# --- the service ---------------------------------------------------------------------------------------------------


def _answer(caller: socket.socket, location: Path, fault: str) -> None:
    with caller, caller.makefile("rb") as lines:
        question = json.loads(lines.readline())
        if question["token"] != os.environ[TOKEN]:
            return
        if question.get("warm"):
            table = (_read(location) if fault == "reads_to_warm_up" else pa.table({})).slice(0, 0)
        else:
            if fault == "ends":
                caller.shutdown(socket.SHUT_RDWR)
                time.sleep(0.2)  # The caller fails while this process still runs.
                os._exit(7)
            taken = bytearray(TAKES_BYTES)
            taken[::4096] = b"\x01" * len(range(0, len(taken), 4096))
            until = time.process_time() + WORK_S
            while time.process_time() < until:
                pass
            del taken
            table = _filtered(_read(location), question, question["columns"])
            if fault == "wrong":
                table = table.slice(1)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        body = sink.getvalue()
        caller.sendall(_LENGTH.pack(body.size))
        caller.sendall(body)


def main() -> None:
    location, fault = Path(sys.argv[1]), sys.argv[2]
    if fault == "never_starts":
        sys.exit("no such stored copy")
    # The service writes a file into the folder of the copy. The file contains no values of the table.
    (location / "notes").write_text(f"served as {sys.argv[3]}")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
        while True:
            threading.Thread(target=_answer, args=(listener.accept()[0], location, fault), daemon=True).start()


ENGINES = (ServedTable,)

if __name__ == "__main__":
    main()
