"""The same measurements on several machines side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bench_runner.results.information import DataSetInfo
from bench_runner.results.records import Conditions, RunInfo, Sample, changed
from reports.analysis.figures import Figures
from reports.analysis.machines import MEANING, machines_of
from reports.analysis.sections import Contents
from reports.site.pages import write_site
from tests.reports.factory import make_run, make_sample


def samples_on(machine: str, times_ms: dict[str, int], operation: str = "read") -> Iterator[Sample]:
    for variant, time_ms in times_ms.items():
        for number in range(1, 8):
            wall_ns = time_ms * 1_000_000 + number * 1000
            yield make_sample(
                machine=machine, variant=variant, operation=operation, round=number, figures={"wall_ns": wall_ns}
            )


def side_by_side(*machines: Sequence[Sample], digests: Sequence[str] = ()) -> list[Figures]:
    infos = [RunInfo(datasets={"eq": DataSetInfo(digest=digest)}) for digest in digests] or [
        RunInfo() for _ in machines
    ]
    runs = [
        replace(make_run(datasets=()), samples=tuple(each), fidelity=(), info=info)
        for each, info in zip(machines, infos, strict=True)
    ]
    return list(machines_of((run, table) for run in runs for table in Contents(run).tables))


def test_each_machine_has_its_times_and_its_ratios_to_its_own_best() -> None:
    fast = list(samples_on("fast", {"csv[engine=pandas]": 20, "orc[engine=pyarrow]": 10}))
    slow = list(samples_on("slow", {"csv[engine=pandas]": 300, "orc[engine=pyarrow]": 600}))
    (figures,) = side_by_side(fast, slow)
    assert figures.headers == ("fast\nms", "fast\nx best", "slow\nms", "slow\nx best")
    lines = dict(figures.lines)
    assert {label: [text[:3] for text in texts] for label, texts in lines.items()} == {
        "csv": ["20.", "2.0", "300", "1.0"],
        "orc": ["10.", "1.0", "600", "2.0"],
    }
    assert figures.notes == (MEANING,)


def test_what_only_one_machine_has_measured_is_left_out() -> None:
    both = {"csv[engine=pandas]": 20}
    one = [*samples_on("one", both), *samples_on("one", both, operation="save")]
    found = side_by_side(one, list(samples_on("two", both)))
    assert [figures.title.split(":")[0] for figures in found] == ["read time"]
    assert side_by_side(one) == []


def test_other_data_of_the_same_name_are_not_shown_next_to_each_other() -> None:
    one, two = (list(samples_on(name, {"csv[engine=pandas]": 20})) for name in ("one", "two"))
    assert side_by_side(one, two, digests=("a", "b")) == []
    assert len(side_by_side(one, two, digests=("a", "a"))) == 1


def test_the_site_shows_machines_side_by_side(tmp_path: Path) -> None:
    runs = [
        replace(make_run(datasets=()), samples=tuple(samples_on(name, {"csv[engine=pandas]": 20})), fidelity=())
        for name in ("one", "two")
    ]
    write_site(runs, tmp_path / "site")
    page = (tmp_path / "site" / "suite-tabular.html").read_text()
    assert page.count("Machines side by side") == 1
    assert "two x best" in page


def test_the_amount_of_data_is_in_images_for_images() -> None:
    def images_on(machine: str) -> list[Sample]:
        conditions = Conditions(target="images")
        return [changed(each, conditions=conditions) for each in samples_on(machine, {"png": 20})]

    (figures,) = side_by_side(images_on("one"), images_on("two"))
    assert figures.title.startswith("read time: eq, 1,000,000 images, ")
