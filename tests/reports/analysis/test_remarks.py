"""Remarks on a run: facts reused from earlier runs with their date, and how the run spent its time."""

from __future__ import annotations

import pytest

from bench_runner.results.information import FactInfo
from bench_runner.results.statistics import summarise
from reports.analysis.remarks import remarks
from tests.reports.factory import make_run


def told(facts: dict[str, FactInfo]) -> list[str]:
    run = make_run(datasets=("eq",), tracks=("plain",))
    run.info.facts = facts
    return [remark.text for remark in remarks(run, summarise(run.samples)) if "earlier run" in remark.text]


def test_reused_facts_have_their_date() -> None:
    found = {
        "fidelity": FactInfo(measured="2026-11-20", key="k", kept=9, new=1),
        "imports": FactInfo(measured="2026-11-21", key="k", kept=2),
        "memory probe": FactInfo(measured="2026-11-20", key="k", kept=1),
    }
    (text,) = told(found)
    assert text.endswith("fidelity and memory probe (measured 2026-11-20); imports (measured 2026-11-21)")


def test_facts_of_the_run_itself_need_no_remark() -> None:
    assert told({}) == []
    assert told({"fidelity": FactInfo(measured="2026-11-20", key="k", new=9)}) == []


@pytest.mark.rule(15)
def test_a_run_says_how_much_of_it_was_timed() -> None:
    run = make_run(datasets=("eq",), tracks=("plain",))
    run.info.stages_ns = {"data": 10**9, "round 1": 2 * 10**9}
    timed_ns = sum(sample.figures.get(name, 0) for sample in run.samples for name in ("wall_ns", "sync_ns"))
    (remark,) = [each for each in remarks(run, summarise(run.samples)) if "measured calls" in each.text]
    assert not remark.warns
    assert f"{timed_ns / 1e9:.0f} of 3 s ({timed_ns / 3e9:.0%})" in remark.text
    run.info.stages_ns = {}
    assert not [each for each in remarks(run, summarise(run.samples)) if "measured calls" in each.text]
