"""A run compared with the thesis's image storages.

The thesis's own figures support its findings, changed ones do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from bench_runner.results.records import Conditions, Run, RunInfo, Sample, changed
from reports.analysis.columns import READ_TIME, SAVE_TIME, SIZE, Role
from reports.sources.judgement import FindingVerdict
from reports.sources.reproduction import reproduce, reproduction_markdown
from reports.sources.reproduction_images import DATASETS, STORAGES, thesis_figures
from reports.sources.rows import Subject
from tests.reports.factory import make_run, make_sample

IMAGES = {"CIFAR-10": ("cifar-like", 50_000), "ImageNet-100": ("imagenet100", 126_689)}


REAL = IMAGES | {"CIFAR-10": ("cifar10", 50_000)}


def thesis_run(
    change: Callable[[Subject, float], float] = lambda subject, value: value,
    *,
    rounds: int = 5,
    images: int | None = None,
    suffix: str = "[engine=x]",
    datasets: Mapping[str, tuple[str, int]] = IMAGES,
) -> Run:
    """Return a run with the figures of the thesis, modified by `change`."""
    samples: list[Sample] = []
    for theirs, (dataset, number) in datasets.items():
        for storage, ours in STORAGES.items():
            for round_number in range(1, rounds + 1):
                base = make_sample(
                    suite="image",
                    dataset=dataset,
                    rows=images or number,
                    variant=f"{ours}{suffix}",
                    conditions=Conditions(target="images"),
                    round=round_number,
                )
                seconds = {
                    column: change(Subject(column, storage, theirs), thesis_figures()[Subject(column, storage, theirs)])
                    for column in (SAVE_TIME, READ_TIME, SIZE)
                }
                save = {"wall_ns": int(seconds[SAVE_TIME] * 1e9), "size_bytes": int(seconds[SIZE] * 1e6)}
                samples.append(changed(base, operation="save", figures=save, fidelity=None))
                samples.append(changed(base, operation="read", figures={"wall_ns": int(seconds[READ_TIME] * 1e9)}))
    return replace(make_run(datasets=()), samples=tuple(samples), info=RunInfo(), fidelity=())


def verdicts(run: Run) -> dict[str, FindingVerdict]:
    return {judgement.finding.statement: judgement.verdict for judgement in reproduce(run).judgements}


def test_the_figures_are_the_thesiss() -> None:
    assert len(thesis_figures()) == len(DATASETS) * len(STORAGES) * 3
    assert thesis_figures()[Subject(SIZE, "PNG", "CIFAR-10")] == 113
    assert thesis_figures()[Subject(READ_TIME, "LMDB", "ImageNet-100")] == 11.87


def test_the_thesiss_own_figures_support_its_tables() -> None:
    found = verdicts(thesis_run(datasets=REAL))
    assert found["PNG is the smallest"] is FindingVerdict.HOLDS
    assert found["on CIFAR-10 SQLite reads the fastest"] is FindingVerdict.HOLDS
    assert found["on CIFAR-10 Parquet saves the fastest"] is FindingVerdict.HOLDS
    # The thesis's summary names the winners of one data set. The other data set has different winners.
    assert found["SQLite has the shortest save time"] is FindingVerdict.DOES_NOT
    assert found["LMDB has the shortest read time"] is FindingVerdict.DOES_NOT


def test_a_finding_that_the_samples_contradict_does_not_hold() -> None:
    def quick_png(subject: Subject, value: float) -> float:
        return value / 100 if subject.format == "PNG" and subject.column == SAVE_TIME else value

    found = verdicts(thesis_run(quick_png))
    assert found["PNG saves the slowest, Base64 next"] is FindingVerdict.DOES_NOT


def test_too_few_rounds_leave_a_finding_open() -> None:
    found = reproduce(thesis_run(rounds=3)).judgements
    of_sizes = [item for item in found if {pair.lower.column.role for pair in item.finding.pairs} == {Role.SIZE}]
    assert {item.verdict for item in found if item not in of_sizes} == {FindingVerdict.OPEN}
    assert {item.verdict for item in of_sizes} == {FindingVerdict.HOLDS}


@pytest.mark.parametrize("changed", [{"images": 1000}, {"suffix": "[engine=x,arrays=views]"}])
def test_what_cannot_be_compared_gets_no_verdict(changed: dict[str, object]) -> None:
    assert set(verdicts(thesis_run(**changed)).values()) == {FindingVerdict.NOT_TESTABLE}  # type: ignore[arg-type]


def test_the_page_says_that_the_images_are_generated() -> None:
    text = reproduction_markdown(thesis_run())
    assert "| PNG | 10.5 / 10.54 | 5.72 / 5.72 | 113 / 113 |" in text
    assert "cifar-like images are generated" in text
    assert "SQLite has the shortest save time" in text


def test_generated_images_support_no_finding_about_pixels() -> None:
    only = {"CIFAR-10": IMAGES["CIFAR-10"]}
    real = {"CIFAR-10": REAL["CIFAR-10"]}
    assert verdicts(thesis_run(datasets=real))["PNG is the smallest"] is FindingVerdict.HOLDS
    assert verdicts(thesis_run(datasets=only))["PNG is the smallest"] is FindingVerdict.NOT_TESTABLE
    assert verdicts(thesis_run(datasets=only))["on CIFAR-10 SQLite reads the fastest"] is FindingVerdict.HOLDS
    found = reproduce(thesis_run()).judgements
    reason = next(item.reason for item in found if item.finding.statement == "PNG is the smallest")
    assert "CIFAR-10: our data are generated" in reason
