"""A node that finds no catalog waits, and reports that once."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from libraries.near_storage.errors import UnavailableError
from libraries.near_storage.serving import server_process


class Waiting:
    """A node whose catalog answers after some tries."""

    name = "node-1"

    def __init__(self, reasons: list[str]) -> None:
        self.reasons = reasons

    def register(self, catalog: str, advertise: str | None) -> None:
        if self.reasons:
            raise UnavailableError(self.reasons.pop(0))


def said(reasons: list[str], monkeypatch: pytest.MonkeyPatch, caplog: Any) -> list[str]:
    monkeypatch.setattr(server_process, "REGISTER_EVERY_S", 0.0)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        node: Any = Waiting(reasons)
        assert server_process._registered(node, "grpc://127.0.0.1:1", None, threading.Event())
    return [record.getMessage() for record in caplog.records]


def test_a_reason_is_told_once(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    one = "node node-1 waits for the catalog: refused"
    assert said(["refused"] * 50, monkeypatch, caplog) == [one]
    assert said(["refused"] * 5 + ["busy"], monkeypatch, caplog) == [one, "node node-1 waits for the catalog: busy"]


def test_that_it_still_waits_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    now_s = iter(range(0, 10_000, 25))
    monkeypatch.setattr(server_process.clock, "elapsed_s", lambda: next(now_s))
    monkeypatch.setattr(server_process, "TELL_EVERY_S", 60.0)
    told = said(["refused"] * 10, monkeypatch, caplog)
    assert told[0].endswith("refused")
    assert set(told[1:]) == {"node node-1 still waits for the catalog"}
    assert 2 <= len(told) <= 6
