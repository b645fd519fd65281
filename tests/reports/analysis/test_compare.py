"""Comparing two runs: planted changes are found, noise and drift are not reported, and incomparable runs are
rejected."""

from __future__ import annotations

import io
import json
import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bench_runner.results.records import Failure, Run, Sample, SampleWriter, changed, write_run_info
from bench_runner.results.statistics import Shift, shift_ratio
from format_bench import cli
from reports.analysis.compare import ChangeVerdict, CompareError, _verdict, compare, decided
from reports.text import comparison as compare_text
from tests.reports.factory import make_run, with_info

PARQUET = "parquet[engine=pyarrow,codec=none]"


def run(seed: int, change: Callable[[Sample], Sample] = lambda sample: sample, **options: Any) -> Run:
    """Make a run in which each format has a library of its own."""
    made = make_run(datasets=("eq", "int"), tracks=("plain",), seed=seed, **options)
    samples = (changed(sample, library=f"{sample.variant.split('[')[0]} 1.0") for sample in made.samples)
    return replace(made, samples=tuple(change(sample) for sample in samples))


def only(run: Run, *variants: str) -> Run:
    return replace(run, samples=tuple(sample for sample in run.samples if sample.variant in variants))


def slower(factor: float, *, variant: str = PARQUET, operation: str = "read", figure: str = "wall_ns"):  # type: ignore[no-untyped-def]
    """Multiply one figure of one variant on eq, as if a library had become slower."""

    def change(sample: Sample) -> Sample:
        if (sample.variant, sample.operation, sample.dataset) != (variant, operation, "eq") or sample.failure:
            return sample
        return changed(sample, figures={**sample.figures, figure: int(sample.figures[figure] * factor)})

    return change


def times(factor: Callable[[Sample], float]) -> Callable[[Sample], Sample]:
    """Multiply the time of each sample by its factor."""

    def change(sample: Sample) -> Sample:
        if "wall_ns" not in sample.figures:
            return sample
        wall_ns = int(sample.figures["wall_ns"] * factor(sample))
        return changed(sample, figures={**sample.figures, "wall_ns": wall_ns})

    return change


def names(changes: Sequence[Any]) -> list[tuple[str, str, str, str]]:
    return [(item.cell.dataset, item.cell.variant, item.cell.operation, item.figure) for item in changes]


def test_two_runs_of_the_same_thing_show_no_change() -> None:
    found = compare(run(1), run(2))
    assert not found.failed
    assert found.regressions == ()
    assert found.improvements == ()
    assert len(found.changes) > 40


def test_a_planted_slowdown_is_found_and_nothing_else() -> None:
    found = compare(run(1), run(2, slower(1.15)))
    assert names(found.regressions) == [("eq", PARQUET, "read", "wall_ns")]
    (change,) = found.regressions
    assert change.ratio == pytest.approx(1.15, abs=0.06)
    assert found.failed


def test_runs_in_turn_name_a_certain_change_and_no_variant_is_decided_early() -> None:
    before, after = run(1, rounds=45), run(2, slower(1.15), rounds=45)
    assert names(compare(before, after, most_rounds=240).regressions) == [("eq", PARQUET, "read", "wall_ns")]
    before, after = run(1, rounds=25), run(2, rounds=25)
    assert decided(before, after, 240) == set()
    assert (PARQUET, "read") in (decided(before, after, 25) or ())


def test_runs_in_turn_go_on_while_samples_are_merely_not_counted() -> None:
    def busy(sample: Sample) -> Sample:
        return changed(sample, unsettled=sample.variant == PARQUET and not sample.failure)

    before = run(1, rounds=25)
    assert (PARQUET, "read") not in (decided(before, run(2, busy, rounds=25), 25) or ())
    assert (PARQUET, "read") in (decided(before, run(2, _failing, rounds=25), 25) or ())


def _failing(sample: Sample) -> Sample:
    if sample.variant != PARQUET:
        return sample
    failure = Failure(kind="error", reason="no")
    return changed(sample, figures={}, fidelity=None, saw_all=False, unsettled=False, failure=failure)


def test_a_planted_gain_is_no_failure() -> None:
    found = compare(run(1), run(2, slower(0.8)))
    assert names(found.improvements) == [("eq", PARQUET, "read", "wall_ns")]
    assert not found.failed


@pytest.mark.parametrize("figure", ["peak_private_bytes", "size_bytes"])
def test_memory_and_size_are_compared_too(figure: str) -> None:
    operation = "save" if figure == "size_bytes" else "read"
    found = compare(run(1), run(2, slower(1.2, operation=operation, figure=figure)))
    assert names(found.regressions) == [("eq", PARQUET, operation, figure)]


@pytest.mark.parametrize(
    ("shift", "ratio", "drift", "verdict"),
    [
        (Shift(1.5, 1.3, 1.7), 1.25, 1.2, ChangeVerdict.WORSE),
        # The variant is surely slower than before, but not surely by more than the drift of all other variants.
        (Shift(1.5, 1.1, 1.7), 1.25, 1.2, ChangeVerdict.SAME),
        (Shift(0.6, 0.5, 0.7), 0.75, 0.8, ChangeVerdict.BETTER),
        (Shift(0.6, 0.5, 0.9), 0.75, 0.8, ChangeVerdict.SAME),
        (Shift(1.5, None, None), 1.5, 1.0, ChangeVerdict.UNJUDGED),
    ],
)
def test_a_change_must_be_significant_without_the_drift(
    shift: Shift, ratio: float, drift: float, verdict: ChangeVerdict
) -> None:
    assert _verdict(shift, ratio, drift, 0.05) is verdict


def test_memory_below_the_probes_resolution_is_not_a_change() -> None:
    """Both peaks of the first comparison are under three times the probe's error of 1.5 MB."""

    def peak(value: int) -> Callable[[Sample], Sample]:
        def change(sample: Sample) -> Sample:
            return changed(sample, figures={**sample.figures, "peak_private_bytes": value} if sample.figures else {})

        return change

    assert not compare(run(1, peak(10_000)), run(2, peak(4_400_000))).regressions
    assert compare(run(1, peak(10_000)), run(2, peak(14_400_000))).regressions


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        # In each round of the second run, the peak is higher by one step of an allocator.
        ([10_790_000] * 7, [11_840_000] * 7, False),
        ([10_790_000] * 7, [13_100_000] * 7, True),
        # The sampling missed the peak altogether, in a run that did not record its probe's error.
        ([10_790_000] * 7, [0] * 7, False),
        ([0] * 6 + [10_790_000], [10_790_000] * 7, False),
        # The rounds within a run differ by more than the two runs do.
        ([40e6, 41e6, 43e6, 44e6, 45e6, 46e6, 46e6], [46e6, 46e6, 47e6, 47e6, 48e6, 48e6, 49e6], False),
        ([40e6, 41e6, 43e6, 44e6, 45e6, 46e6, 46e6], [56e6, 56e6, 57e6, 57e6, 58e6, 58e6, 59e6], True),
    ],
)
def test_memory_within_the_spread_of_rounds_is_not_a_change(
    before: list[float], after: list[float], told: bool
) -> None:
    def peaks(values: list[float]) -> Callable[[Sample], Sample]:
        def change(sample: Sample) -> Sample:
            if (sample.variant, sample.operation, sample.dataset) != (PARQUET, "read", "eq"):
                return sample
            figures = {**sample.figures, "peak_private_bytes": int(values[sample.round % 7])}
            return changed(sample, figures=figures)

        return change

    told_nothing: dict[str, Any] = {"probe": {}}
    runs = (run(seed, peaks(values), rounds=7) for seed, values in ((1, before), (2, after)))
    found = compare(*(with_info(each, **told_nothing) for each in runs))
    assert names(found.regressions) == ([("eq", PARQUET, "read", "peak_private_bytes")] if told else [])


def test_a_shift_of_all_cells_is_drift() -> None:
    found = compare(run(1), run(2, times(lambda _: 1.3)))
    assert found.regressions == ()
    read = next(drift for drift in found.drifts if drift.operation == "read")
    assert read.ratio == pytest.approx(1.3, abs=0.03)
    assert read.yardstick == pytest.approx(1.3, abs=0.05)
    assert "all read times are" in text(found)


def test_a_change_in_addition_to_drift_is_found() -> None:
    def both(sample: Sample) -> Sample:
        return slower(1.25)(times(lambda _: 1.3)(sample))

    assert names(compare(run(1), run(2, both)).regressions) == [("eq", PARQUET, "read", "wall_ns")]


@pytest.mark.parametrize("variants", [(PARQUET, "raw-io"), (PARQUET,)])
def test_a_slowdown_of_a_single_variant_is_not_drift(variants: tuple[str, ...]) -> None:
    slow = only(
        run(2, times(lambda sample: 2.0 if sample.variant == PARQUET and sample.operation == "read" else 1.0)),
        *variants,
    )
    found = compare(only(run(1), *variants), slow)
    assert names(found.regressions) == [(name, PARQUET, "read", "wall_ns") for name in ("eq", "int")]
    assert [change.ratio for change in found.regressions] == pytest.approx([2, 2], abs=0.15)
    assert not any("all read times" in line for line in text(found).splitlines())


@pytest.mark.parametrize(("restless", "worse"), [(True, False), (False, True)])
def test_uncertain_raw_io_is_no_drift(restless: bool, worse: bool) -> None:
    """Raw I/O that is 15 % faster, but varies by more, does not make an unchanged variant slower."""

    def change(sample: Sample) -> float:
        if sample.variant != "raw-io":
            return 1.0
        return 0.85 * (random.Random(sample.round).choice((0.7, 1.0, 1.4)) if restless else 1.0)

    kept = PARQUET, "raw-io"
    found = compare(only(run(1), *kept), only(run(1, times(change)), *kept))
    assert bool(found.regressions) is worse


def test_a_peak_that_is_zero_now_is_shown() -> None:
    def none(sample: Sample) -> Sample:
        if "peak_private_bytes" not in sample.figures:
            return sample
        return changed(sample, figures={**sample.figures, "peak_private_bytes": 0})

    told_nothing: dict[str, Any] = {"probe": {}}
    found = compare(*(with_info(each, **told_nothing) for each in (run(1), run(2, none))))
    assert found.improvements
    assert "better than before" in text(found)


def test_a_slowdown_of_a_library_with_most_of_the_variants_is_not_drift() -> None:
    """All variants but CSV and raw I/O use the library that became slower."""
    kept = ("csv", "raw-io")

    def of_one(made: Run) -> Run:
        return replace(
            made,
            samples=tuple(
                changed(each, library=each.library if each.variant in kept else "one 1.0") for each in made.samples
            ),
        )

    slow = run(2, times(lambda sample: 1.0 if sample.variant in kept or sample.operation != "read" else 1.5))
    found = compare(of_one(run(1)), of_one(slow))
    assert {cell.variant for cell in (change.cell for change in found.regressions)}.isdisjoint(kept)
    assert len(found.regressions) >= 6
    assert all(change.ratio == pytest.approx(1.5, abs=0.15) for change in found.regressions)


def test_a_slowdown_of_everything_but_raw_io_does_not_pass_in_silence() -> None:
    found = compare(run(1), run(2, times(lambda sample: 1.0 if sample.variant == "raw-io" else 1.4)))
    assert "no regression of single variants, but all save and read times are slower" in " ".join(text(found).split())


def test_an_interval_is_shown_without_the_drift_like_its_ratio() -> None:
    def both(sample: Sample) -> Sample:
        return slower(1.5)(times(lambda _: 1.3)(sample))

    (change,) = compare(run(1), run(2, both)).regressions
    *_, ratio, interval, _ = compare_text._row(change)
    low, high = map(float, interval.split(" to "))
    assert low < float(ratio) < high < 1.7


def test_memory_of_hundreds_of_rounds_is_not_judged_by_its_single_outlier() -> None:
    def peak(after: bool) -> Callable[[Sample], Sample]:
        def change(sample: Sample) -> Sample:
            if "peak_private_bytes" not in sample.figures:
                return sample
            peak_bytes = 150_000_000 if after else 200_000_000 if sample.round == 3 else 100_000_000
            return changed(sample, figures={**sample.figures, "peak_private_bytes": peak_bytes})

        return change

    found = compare(run(1, peak(False), rounds=40), run(2, peak(True), rounds=40))
    assert {change.figure for change in found.regressions} == {"peak_private_bytes"}


def test_a_change_below_the_users_limit_is_ignored() -> None:
    assert not compare(run(1), run(2, slower(1.15)), least_change=0.3).failed


def chance(seed: object, sample: Sample) -> random.Random:
    """Return a random source that is the same for all samples of a cell, unless the seed includes the round."""
    return random.Random(f"{seed}{sample.variant}{sample.dataset}{sample.operation}")


def moved(seed: int, deviation: float, operations: Sequence[str] = ("read", "save")) -> Callable[[Sample], Sample]:
    """Multiply each cell of some operations by a separate factor, as happens between two runs of the same code."""
    return times(
        lambda sample: math.exp(chance(seed, sample).gauss(0, deviation)) if sample.operation in operations else 1.0
    )


def restless(deviation: float) -> Callable[[Sample], Sample]:
    """Make every sample slower or faster at random, as on a busy machine."""
    return times(lambda sample: math.exp(chance(sample.round, sample).gauss(0, deviation)))


def test_runs_that_differ_from_cell_to_cell_are_noise() -> None:
    """If every cell moves by up to 20 % between runs, a change of 15 % is noise."""

    def noisy(seed: int) -> Callable[[Sample], Sample]:
        return times(lambda sample: chance(seed, sample).uniform(0.8, 1.25))

    found = compare(run(1, noisy(1)), run(2, noisy(2)))
    assert found.regressions == ()
    assert all(drift.noise > 0.15 for drift in found.drifts)


def test_equal_runs_seldom_show_a_change() -> None:
    """At most one pair of runs in twenty may show a change, whatever the noise and the number of cells."""
    pairs = [compare(run(seed, moved(seed, 0.08)), run(seed + 100, moved(seed + 100, 0.08))) for seed in range(40)]
    assert sum(bool(pair.regressions or pair.improvements) for pair in pairs) <= 4


def test_cells_that_happen_to_agree_do_not_hide_how_far_rounds_differ() -> None:
    """The two runs have identical figures, so their cells have no spread. This does not predict the spread of the next
    run."""
    calm, busy = (compare(run(1, restless(noise)), run(1, restless(noise))) for noise in (0.02, 0.2))
    assert all(drift.noise > 0.2 for drift in busy.drifts)
    assert all(drift.noise < 0.1 for drift in calm.drifts)


def test_operations_share_their_noise() -> None:
    """If saves differ between the runs, reads are considered as uncertain, even if only few of them differ."""
    found = compare(run(1, moved(1, 0.15, ("save",))), run(2, moved(2, 0.15, ("save",))))
    first, second = (drift.noise for drift in found.drifts)
    assert first == pytest.approx(second, rel=0.5)
    assert min(first, second) > compare(run(1), run(2)).drifts[0].noise


def test_few_rounds_are_not_judged() -> None:
    found = compare(run(1, rounds=4), run(2, slower(3.0), rounds=4))
    assert found.regressions == ()
    times = [change for change in found.changes if change.figure == "wall_ns"]
    assert {change.verdict for change in times} == {ChangeVerdict.UNJUDGED}


def test_a_cell_that_fails_now_is_a_failure() -> None:
    failure = Failure(kind="crash", reason="killed by signal 11")

    def crash(sample: Sample) -> Sample:
        if sample.variant != PARQUET or sample.dataset != "eq":
            return sample
        return changed(sample, figures={}, failure=failure, fidelity=None)

    found = compare(run(1), run(2, crash))
    assert {cell.operation for cell, _ in found.newly_failing} == {"save", "read"}
    assert found.failed
    assert "crash: killed by signal 11" in text(found)


def test_a_cell_that_fails_in_both_is_named() -> None:
    def crash(sample: Sample) -> Sample:
        failed = Failure(kind="crash", reason="the worker ended")
        return changed(sample, figures={}, failure=failed) if sample.variant == PARQUET else sample

    found = compare(run(1, crash), run(2, crash))
    assert not found.failed
    assert {cell.variant for cell in found.failing_in_both} == {PARQUET}
    assert f"failed in both runs: eq/{PARQUET}" in text(found)


def test_library_versions_are_shown_with_each_change() -> None:
    libraries = {"pandas": "3.2.0", "pyarrow": "26.0.0", "pylance": "14.0.0", "numpy": "2.4.6"}
    found = compare(run(1), run(2, slower(1.2), info={"libraries": libraries}))
    (change,) = found.regressions
    assert change.libraries == ("pandas 3.1.0 -> 3.2.0",)
    assert found.libraries == ("pandas 3.1.0 -> 3.2.0",)


def other_machine(sample: Sample) -> Sample:
    return changed(sample, machine="elsewhere")


def other_data(sample: Sample) -> Sample:
    return changed(sample, dataset_digest="ffff")


UNLIKE = [(other_machine, "different machines"), (other_data, "data of eq differ")]


@pytest.mark.parametrize(("change", "words"), UNLIKE)
def test_runs_that_cannot_be_compared_are_refused_unless_the_user_insists(
    change: Callable[[Sample], Sample], words: str
) -> None:
    with pytest.raises(CompareError, match=words):
        compare(run(1), run(2, change))
    found = compare(run(1), run(2, change), anyway=True)
    assert words in found.differences[0]
    assert words in text(found)


def test_runs_without_a_common_cell_are_refused() -> None:
    other = make_run(datasets=("str",), tracks=("plain",))
    with pytest.raises(CompareError, match="no measurement in common"):
        compare(run(1), other)
    with pytest.raises(CompareError, match="no measurement in common"):
        compare(run(1), replace(run(1), samples=()), anyway=True)


def text(found: Any) -> str:
    stream = io.StringIO()
    compare_text.show(found, Console(file=stream))
    return " ".join(stream.getvalue().split())


def test_the_page_fits_and_names_the_cell() -> None:
    stream = io.StringIO()
    compare_text.show(compare(run(1), run(2, slower(1.2))), Console(file=stream))
    assert max(map(len, stream.getvalue().splitlines())) <= 100
    assert "1 regression" in stream.getvalue()


def test_markdown_and_json_hold_the_verdict() -> None:
    found = compare(run(1), run(2, slower(1.2)))
    page = compare_text.markdown(found)
    assert page.startswith("**1 regression**")
    assert f"| tabular/read/eq/{PARQUET} | time |" in page
    shape = json.loads(compare_text.as_json(found))
    assert shape["failed"] is True
    worse = [change for change in shape["changes"] if change["verdict"] == "worse"]
    assert [change["variant"] for change in worse] == [PARQUET]
    assert worse[0]["low"] > 1


# --- the statistic -------------------------------------------------------------------------------------------------


def test_the_shift_of_two_samples_is_the_median_of_all_ratios() -> None:
    found = shift_ratio([2.0, 4.0, 6.0], [1.0, 2.0])
    assert found is not None
    assert found.ratio == 2.5
    assert found.low is None


def test_the_interval_of_a_shift_covers_the_truth() -> None:
    """2,000 pairs of skewed samples of 7 values: at least 95 % of the intervals must contain the true ratio of 1.1."""
    source = random.Random(5)
    held = 0
    for _ in range(2_000):
        before = [source.lognormvariate(0, 0.1) for _ in range(7)]
        after = [1.1 * source.lognormvariate(0, 0.1) for _ in range(7)]
        found = shift_ratio(after, before)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 1.1 <= found.high
    assert held / 2_000 >= 0.94


@pytest.mark.parametrize(
    ("after", "before", "outside"),
    [(5, 5, 2), (7, 7, 8), (20, 20, 127), (10, 60, 183), (51, 51, 1_007), (60, 60, 1_426)],
)
def test_the_interval_of_a_shift_ends_at_the_tabled_critical_values(after: int, before: int, outside: int) -> None:
    """The tabled values are Mann and Whitney's, two-sided at 5 %. `shift_ratio` counts all orders, up to 50 and 50."""
    late, early = [1 + place / 1_000 for place in range(after)], [1 + place / 7_919 for place in range(before)]
    ratios = sorted(one / other for one in late for other in early)
    assert shift_ratio(late, early) == Shift(statistics.median(ratios), ratios[outside], ratios[-1 - outside])


def test_a_shift_between_hundreds_of_rounds_is_soon_known() -> None:
    source = random.Random(6)
    many = [source.lognormvariate(0, 0.1) for _ in range(600)]
    found = shift_ratio([1.02 * value for value in reversed(many)], many[:400])
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low < 1.02 < found.high < 1.05


# --- the command ---------------------------------------------------------------------------------------------------


def stored(made: Run, folder: Path) -> str:
    folder.mkdir()
    write_run_info(folder, made.info)
    SampleWriter(folder).append(*made.samples)
    return str(folder)


def code_of(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(words))
    return int(ended.value.code or 0)


def test_the_exit_code_is_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, same = stored(run(1), tmp_path / "a"), stored(run(2), tmp_path / "b")
    worse = stored(run(3, slower(1.3)), tmp_path / "c")
    other = stored(make_run(datasets=("str",), tracks=("plain",)), tmp_path / "d")
    assert code_of("compare", first, same) == 0
    assert code_of("compare", first, worse) == 3
    assert code_of("compare", first, worse, "--fail-above", "50%") == 0
    assert code_of("compare", first, worse, "--json") == 3
    capsys.readouterr()
    assert code_of("compare", first, other) == 2
    assert "no measurement in common" in capsys.readouterr().err
    assert code_of("compare", first, worse, "--fail-above", "10") == 2
    assert code_of("compare", first, str(tmp_path / "none")) == 2
