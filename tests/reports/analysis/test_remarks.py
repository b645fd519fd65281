"""What a run says against itself: since when is known what it did not measure itself."""

from __future__ import annotations

from bench_runner.results.information import FactInfo
from bench_runner.results.statistics import summarise
from reports.analysis.remarks import remarks
from tests.reports.factory import make_run


def told(facts: dict[str, FactInfo]) -> list[str]:
    run = make_run(datasets=("eq",), tracks=("plain",))
    run.info.facts = facts
    return [remark.text for remark in remarks(run, summarise(run.samples)) if "earlier run" in remark.text]


def test_what_earlier_runs_have_found_is_told_with_its_day() -> None:
    found = {
        "fidelity": FactInfo(measured="2026-11-20", key="k", kept=9, new=1),
        "imports": FactInfo(measured="2026-11-21", key="k", kept=2),
        "memory probe": FactInfo(measured="2026-11-20", key="k", kept=1),
    }
    (text,) = told(found)
    assert text.endswith("fidelity and memory probe of 2026-11-20; imports of 2026-11-21")


def test_what_the_run_has_found_itself_needs_no_remark() -> None:
    assert told({}) == []
    assert told({"fidelity": FactInfo(measured="2026-11-20", key="k", new=9)}) == []
