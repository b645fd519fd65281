"""Words of tables: what stands where there is no verdict on what came back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from bench_runner.results.records import Failure
from reports.analysis.tables import Row
from reports.analysis.words import fidelity_text

REFUSED = Failure(kind="refused", reason="it answers no questions")


def told(failures: dict[Failure, tuple[str, ...]], *, measured: bool) -> str:
    return fidelity_text(cast(Row, SimpleNamespace(fidelity=None, failures=failures, measured=measured)))


def test_what_was_stopped_is_named_where_the_rest_was_measured() -> None:
    asked = {REFUSED: ("ask[query=q1]", "ask[query=q2]")}
    assert told(asked, measured=True) == "ask refused"
    assert told({**asked, Failure(kind="memory", reason="too large"): ("read",)}, measured=True) == "ask, read FAILED"
    assert told({REFUSED: ("save", "read")}, measured=False) == "refused"
    assert told({}, measured=True) == "-"
