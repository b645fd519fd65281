"""What an insertion into ClickHouse reports, with a session that stands in for chdb: it need not be installed."""

from __future__ import annotations

from types import SimpleNamespace, TracebackType
from typing import Any

import pytest

from adapters.errors import AdapterError, RefusedData
from document_stores.clickhouse_json import ClickhouseJson

TWO_LINES = b'{"id":1}\n{"id":2}\n'


class Session:
    """Reports `written` documents for an insertion, and holds `stored` of them afterwards."""

    def __init__(self, written: int, stored: int, error: str = "") -> None:
        self._written, self._stored, self._error = written, stored, error

    def send_insert(self, query: str, format_: str) -> Session:
        return self

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def append(self, text: bytes) -> None:
        if self._error:
            raise RuntimeError(self._error)

    def finish(self) -> Any:
        return SimpleNamespace(rows_written=self._written)

    def query(self, query: str, format_: str = "") -> Any:
        return SimpleNamespace(bytes=lambda: f"{self._stored}\n".encode())


def insert(session: Session) -> None:
    ClickhouseJson({})._insert(session, TWO_LINES, iter(()))


def test_documents_that_are_stored_are_accepted() -> None:
    insert(Session(2, 2))


def test_a_full_disk_is_found_although_chdb_reports_success() -> None:
    with pytest.raises(AdapterError, match="gave no error but stored 0 of 2 documents; is the disk full"):
        insert(Session(2, 0))


def test_lines_that_hold_several_documents_are_refused() -> None:
    with pytest.raises(RefusedData, match="found 3 documents in 2 lines"):
        insert(Session(3, 3))


def test_only_errors_about_documents_are_refusals() -> None:
    with pytest.raises(RefusedData, match="refuses a document"):
        insert(Session(2, 2, "Code: 117. DB::Exception: Cannot parse JSON object here"))
    with pytest.raises(AdapterError, match="cannot store the documents") as failed:
        insert(Session(2, 2, "Code: 243. DB::Exception: Cannot reserve 1.00 MiB, not enough space"))
    assert not isinstance(failed.value, RefusedData)
