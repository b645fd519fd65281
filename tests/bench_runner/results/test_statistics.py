"""Statistics on values whose answers are known by hand or by simulation."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

import pytest

from bench_runner.results import statistics
from bench_runner.results.information import ProbeInfo, RunInfo
from bench_runner.results.records import Conditions, Failure, Sample, changed
from tests.bench_runner.results.invented import make_rounds, make_sample, make_save


class TestMedianInterval:
    def test_under_five_values_there_is_only_minimum_and_maximum(self) -> None:
        interval = statistics.median_interval([4, 1, 3, 2])
        assert (interval.median, interval.low, interval.high, interval.minimum, interval.maximum) == (
            2.5,
            None,
            None,
            1,
            4,
        )
        assert interval.spread == (1, 4)

    def test_with_five_values_it_is_all_of_them(self) -> None:
        assert statistics.median_interval([3, 9, 1, 5, 4]).spread == (1, 9)

    @pytest.mark.rule(17)
    @pytest.mark.parametrize("count", [6, 7, 8, 9, 12, 50, 1_500])
    def test_it_is_the_interval_of_hettmansperger_and_sheather(self, count: int) -> None:
        from scipy.stats.mstats import median_cihs

        values = [random.Random(count).lognormvariate(0, 0.3) for _ in range(count)]
        assert statistics.median_interval(values).spread == pytest.approx(tuple(map(float, median_cihs(values))))

    @pytest.mark.parametrize(("count", "at_least"), [(5, 0.92), (7, 0.93), (9, 0.93), (12, 0.93)])
    @pytest.mark.parametrize(
        ("draw", "true_median"),
        [(lambda source: source.lognormvariate(0, 0.3), 1.0), (lambda source: 1 + source.expovariate(1), 1.6931)],
    )
    @pytest.mark.rule(17)
    def test_it_covers_the_median_of_skewed_noise(
        self, count: int, at_least: float, draw: Callable[[random.Random], float], true_median: float
    ) -> None:
        source = random.Random(count)
        covered = 0
        for _ in range(2000):
            low, high = statistics.median_interval([draw(source) for _ in range(count)]).spread
            covered += low <= true_median <= high
        assert covered / 2000 >= at_least

    def test_no_value_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="at least one"):
            statistics.median_interval([])

    def test_half_width(self) -> None:
        assert statistics.half_width([90, 95, 100, 105, 110]) == pytest.approx(0.1)
        assert statistics.half_width([1, 2, 3, 4]) is None
        assert statistics.half_width([]) is None
        assert statistics.half_width([0, 0, 0, 0, 0]) is None


class TestRatio:
    @pytest.mark.rule(17)
    def test_it_is_paired_by_round_so_that_slow_rounds_cancel(self) -> None:
        slow = {1: 1, 2: 10, 3: 100, 4: 3, 5: 7}
        ratio = statistics.ratio_interval({number: value * 2 for number, value in slow.items()}, slow)
        assert ratio is not None
        assert (ratio.ratio, ratio.low, ratio.high, ratio.tied) == (2, 2, 2, False)

    def test_only_common_rounds_count_and_under_five_there_is_no_verdict(self) -> None:
        ratio = statistics.ratio_interval({1: 2, 2: 2, 3: 2, 4: 2, 9: 50}, {1: 1, 2: 1, 3: 1, 4: 1, 5: 1})
        assert ratio is not None
        assert (ratio.ratio, ratio.rounds, ratio.tied) == (2, 4, None)
        assert statistics.ratio_interval({1: 1}, {2: 1}) is None

    @pytest.mark.rule(17)
    def test_tied_when_the_interval_holds_one(self) -> None:
        ratio = statistics.ratio_interval({1: 9, 2: 11, 3: 10, 4: 12, 5: 8}, dict.fromkeys(range(1, 6), 10))
        assert ratio is not None
        assert ratio.tied is True


class TestSummarise:
    def _one(self, *samples: Sample) -> statistics.CellSummary:
        (summary,) = statistics.summarise(samples).values()
        return summary

    def test_unsettled_failed_and_pilot_samples_are_not_counted(self) -> None:
        summary = self._one(
            make_sample(round=0, rows=20_000, figures={"wall_ns": 1}),
            make_sample(round=1, figures={"wall_ns": 10, "cpu_ns": 15}),
            make_sample(round=2, figures={"wall_ns": 900}, unsettled=True),
            make_sample(round=3, figures={}, failure=Failure(kind="crash", reason="signal 11")),
        )
        assert summary.by_round["wall_ns"] == {1: 10}
        assert (summary.rounds, summary.failed_rounds, summary.uncounted) == (1, 1, 1)
        assert summary.cores_used == 1.5
        assert [failure.reason for failure in summary.failures] == ["signal 11"]

    def test_a_pilot_that_failed_gives_the_reason_under_the_rows_of_the_whole_table(self) -> None:
        failed = make_sample(
            round=0, rows=20_000, variant="xml", figures={}, failure=Failure(kind="crash", reason="signal 9")
        )
        cells = statistics.summarise([failed, make_sample()])
        assert {cell.rows for cell in cells} == {1_000_000}
        assert [cell.variant for cell, summary in cells.items() if summary.failures] == ["xml"]

    @pytest.mark.rule(11)
    def test_a_save_counts_only_when_what_saw_all_of_its_chain_passed(self) -> None:
        failed_read = make_sample(round=2, figures={}, failure=Failure(kind="mismatch", reason="last row"))
        cells = statistics.summarise(
            [make_save(round=1), make_sample(round=1), make_save(round=2), failed_read, make_save(round=3)]
        )
        saves = next(summary for cell, summary in cells.items() if cell.operation == "save")
        assert set(saves.by_round["wall_ns"]) == {1}
        assert saves.uncounted == 2

    def test_an_operation_that_saw_a_part_alone_verifies_no_save(self) -> None:
        part = make_sample(operation="project[columns=4]", saw_all=False)
        cells = statistics.summarise([make_save(), part])
        rounds = {cell.operation: summary.rounds for cell, summary in cells.items()}
        assert rounds == {"save": 0, "project[columns=4]": 1}

    def test_what_saw_all_of_another_chain_verifies_no_save(self) -> None:
        elsewhere = make_sample(conditions=Conditions(threads="1"))
        cells = statistics.summarise([make_save(), elsewhere])
        assert [summary.rounds for cell, summary in cells.items() if cell.operation == "save"] == [0]

    def test_what_nobody_asked_for_verifies_and_is_no_cell(self) -> None:
        summary = self._one(make_save(), make_sample(in_service=True))
        assert (summary.cell.operation, summary.rounds) == ("save", 1)

    def test_a_save_with_a_verdict_of_its_own_needs_no_read(self) -> None:
        assert self._one(make_save(fidelity="exact")).rounds == 1

    def test_the_later_measurement_of_a_round_stands(self) -> None:
        again = make_sample(position=90, figures={"wall_ns": 7})
        assert self._one(make_sample(), again).by_round["wall_ns"] == {1: 7}

    @pytest.mark.rule(16)
    def test_raw_io_is_found_across_targets_and_tracks_but_not_across_machines(self) -> None:
        yardsticks = [
            make_sample(variant="raw-io", round=number, figures={"wall_ns": 10}, conditions=Conditions(target="arrow"))
            for number in range(1, 6)
        ]
        reads = [
            make_sample(round=number, figures={"wall_ns": 30}, conditions=Conditions(strings="object", track="equal"))
            for number in range(1, 6)
        ]
        other = changed(reads[0], machine="another")
        cells = statistics.summarise([*yardsticks, *reads, other])
        multiple = cells[reads[0].cell].raw_io_multiple
        assert multiple is not None
        assert (multiple.ratio, multiple.rounds) == (3, 5)
        assert cells[other.cell].raw_io_multiple is None
        assert cells[yardsticks[0].cell].raw_io_multiple is None

    @pytest.mark.rule(16)
    def test_raw_io_that_read_everything_for_a_part_is_no_yardstick(self) -> None:
        """Runs from before raw I/O could take rows contain such samples."""
        take = "take[rows=100,handle=kept]"
        samples = [
            make_sample(variant=variant, operation=take, round=number, figures={"wall_ns": wall_ns}, fallback=fallback)
            for number in range(1, 6)
            for variant, wall_ns, fallback in (("raw-io", 1_000, "read-all"), ("lance[engine=pylance]", 10, ""))
        ]
        cells = statistics.summarise(samples)
        assert cells[samples[1].cell].raw_io_multiple is None
        own = [changed(sample, fallback="") for sample in samples]
        multiple = statistics.summarise(own)[samples[1].cell].raw_io_multiple
        assert multiple is not None
        assert multiple.ratio == 0.01

    @pytest.mark.rule(16)
    def test_views_have_raw_io_of_their_own(self) -> None:
        images = Conditions(target="images")
        samples = [
            make_sample(variant=variant, round=number, figures={"wall_ns": wall_ns}, conditions=images)
            for number in range(1, 6)
            for variant, wall_ns in {
                "image-raw-io[engine=readinto]": 100,
                "image-raw-io[engine=readinto,arrays=views]": 20,
                "lmdb[engine=lmdb]": 200,
                "lmdb[engine=lmdb,arrays=views]": 80,
            }.items()
        ]
        multiples = {cell.variant: summary.raw_io_multiple for cell, summary in statistics.summarise(samples).items()}
        assert multiples["lmdb[engine=lmdb]"].ratio == 2
        assert multiples["lmdb[engine=lmdb,arrays=views]"].ratio == 4

    @pytest.mark.rule(13)
    def test_memory_figures_that_disagree_are_marked(self) -> None:
        assert self._one(make_sample(figures={"peak_private_bytes": 94, "peak_rss_bytes": 100})).memory_disagrees
        assert not self._one(make_sample(figures={"peak_private_bytes": 96, "peak_rss_bytes": 100})).memory_disagrees

    def test_one_lossy_round_makes_the_cell_lossy(self) -> None:
        lossy = make_sample(round=2, fidelity="declared loss", losses=("within 1e-10",))
        summary = self._one(make_sample(round=1), lossy)
        assert (summary.fidelity, summary.losses) == ("declared loss", ("within 1e-10",))


class TestRanking:
    def _ranks(
        self, times: dict[str, list[int]], first: Mapping[str, int] | None = None
    ) -> dict[str, statistics.Ratio]:
        """Rank variants by times of rounds that follow one another, beginning with round `first` or round 1."""
        samples = [
            make_sample(variant=variant, round=number, figures={"wall_ns": value})
            for variant, values in times.items()
            for number, value in enumerate(values, start=(first or {}).get(variant, 1))
        ]
        ranks = statistics.ranking(statistics.summarise(samples).values(), "wall_ns")
        return {cell.variant: ratio for cell, ratio in ranks.items()}

    @pytest.mark.rule(7)
    def test_best_first_with_ties_and_without_raw_io_and_what_stands_apart(self) -> None:
        ranks = self._ranks(
            {
                "slow": [20, 21, 22, 23, 24],
                "near": [11, 10, 13, 12, 12],
                "best": [10, 11, 12, 11, 12],
                "feather[engine=pyarrow,mapped=true]": [1] * 5,
                "hdf5-fixed[engine=pandas,nulls=numpy]": [1] * 5,
                "raw-io": [1] * 5,
            }
        )
        assert list(ranks) == ["best", "near", "slow"]
        assert [ratio.tied for ratio in ranks.values()] == [True, True, False]

    def test_what_stood_for_a_call_of_its_own_is_told_and_never_ranked(self) -> None:
        samples = [
            make_sample(variant=variant, fallback=fallback, round=number)
            for variant, fallback in {"own": "", "instead": "read-all"}.items()
            for number in range(1, 6)
        ]
        summaries = statistics.summarise(samples)
        assert {cell.variant: summary.fallback for cell, summary in summaries.items()} == {
            "own": "",
            "instead": "read-all",
        }
        assert [cell.variant for cell in statistics.ranking(summaries.values(), "wall_ns")] == ["own"]

    @pytest.mark.rule(11)
    def test_one_wrong_answer_in_seven_is_no_rank(self) -> None:
        """Neither the operation nor, if the copy is void for that reason, the save is ranked."""
        wrong = Failure(kind="mismatch", reason="row 3 came back as None")
        void = Failure(kind="skipped", reason=f"not verified, because the read failed: {wrong.reason}")
        late = Failure(kind="timeout", reason="over 600 s")
        samples = []
        for number in range(1, 8):
            for variant, failures in {"quick": (void, wrong), "slow": (None, None), "late": (None, late)}.items():
                for made, failure in zip((make_save, make_sample), failures, strict=True):
                    failed = failure if number == 3 else None
                    figures = {} if failed else {"wall_ns": 1 if variant == "quick" else 2}
                    seen = made().saw_all and not failed
                    made_now = made(variant=variant, round=number, figures=figures, failure=failed, saw_all=seen)
                    samples.append(changed(made_now, fidelity=made_now.fidelity if not failed else None))
        summaries = statistics.summarise(samples).values()
        assert {(summary.cell.variant, summary.wrong) for summary in summaries} == {
            ("quick", True),
            ("slow", False),
            ("late", False),
        }
        for operation in ("save", "read"):
            of_one = [summary for summary in summaries if summary.cell.operation == operation]
            assert {cell.variant for cell in statistics.ranking(of_one, "wall_ns")} == {"slow", "late"}

    @pytest.mark.rule(13)
    def test_what_the_probe_cannot_tell_apart_is_tied(self) -> None:
        samples = [
            make_sample(variant=variant, round=number, figures={"peak_private_bytes": value})
            for variant, value in {"a": 1, "b": 3, "c": 9}.items()
            for number in range(1, 6)
        ]
        ranks = statistics.ranking(statistics.summarise(samples).values(), "peak_private_bytes", least=4)
        assert [(cell.variant, ratio.ratio) for cell, ratio in ranks.items()] == [("a", 1), ("b", 1), ("c", 9 / 4)]

    def test_without_a_common_round_there_is_a_ratio_and_no_verdict(self) -> None:
        """Under a budget slow variants run in separate rounds, and no round is shared, however many there are."""
        samples = [
            make_sample(variant=variant, round=first + number, figures={"wall_ns": value})
            for variant, first, values in (("best", 0, [9, 10, 11, 10, 12]), ("late", 5, [30, 31, 29, 30, 30]))
            for number, value in enumerate(values, start=1)
        ]
        ranks = statistics.ranking(statistics.summarise(samples).values(), "wall_ns")
        assert [(cell.variant, ratio.ratio, ratio.tied) for cell, ratio in ranks.items()] == [
            ("best", 1, True),
            ("late", 3, None),
        ]

    def test_sizes_rank_from_one_round_on_also_where_the_machine_was_not_at_rest(self) -> None:
        samples = []
        for variant, size_bytes, unsettled in (("small", 10, True), ("same", 10, False), ("large", 25, False)):
            figures = {"wall_ns": 1, "size_bytes": size_bytes}
            samples += [make_save(variant=variant, figures=figures, unsettled=unsettled), make_sample(variant=variant)]
        saves = [each for each in statistics.summarise(samples).values() if each.cell.operation == "save"]
        ranks = statistics.ranking(saves, "size_bytes")
        assert [(cell.variant, ratio.ratio, ratio.tied) for cell, ratio in ranks.items()] == [
            ("small", 1, True),
            ("same", 1, True),
            ("large", 2.5, False),
        ]
        assert {cell.variant for cell in statistics.ranking(saves, "wall_ns")} == {"same", "large"}

    def test_sizes_that_differ_between_samples_are_compared_like_times(self) -> None:
        samples = [
            made(variant=variant, round=number, figures={"wall_ns": 1, "size_bytes": size_bytes})
            for variant, sizes in (("one", [10, 12]), ("two", [11, 11]))
            for number, size_bytes in enumerate(sizes, start=1)
            for made in (make_save, make_sample)
        ]
        saves = [each for each in statistics.summarise(samples).values() if each.cell.operation == "save"]
        assert {ratio.tied for ratio in statistics.ranking(saves, "size_bytes").values()} == {None}

    @pytest.mark.parametrize(("cells", "tied"), [(4, True), (5, False)])
    def test_round_effects_are_estimated_from_three_other_variants(self, cells: int, tied: bool) -> None:
        """Rounds differ by far more than the two variants, so a verdict needs their effects to be taken out."""
        factors = {name: 100_000 * (1 + 0.1 * (name == "b")) for name in "abcde"[:cells]}
        times = {name: [int(factor * 1.5**number) for number in range(7)] for name, factor in factors.items()}
        assert self._ranks(times)["b"].tied is tied

    def test_variants_of_separate_rounds_have_no_verdict_though_each_has_companions(self) -> None:
        """All are equal, and the machine becomes slower by half after round 9. The companions of each variant were
        measured in the same rounds as the variant, so none of them shows how these rounds differ from the others."""
        early = {name: [100_000, 101_000, 99_000] * 3 for name in "abcd"}
        late = {name: [150_000, 151_000, 149_000, 152_000, 148_000] for name in "efgh"}
        ranks = self._ranks({**early, **late}, dict.fromkeys("efgh", 10))
        assert {name: ratio.tied for name, ratio in ranks.items()} == {
            **dict.fromkeys("abcd", True),
            **dict.fromkeys("efgh"),
        }

    def test_variants_of_separate_rounds_are_compared_by_three_that_were_measured_in_both(self) -> None:
        early = {"a": [100_000, 101_000, 99_000] * 3}
        late = {"b": [100_000 * 3, 101_000 * 3, 99_000 * 3, 102_000 * 3, 98_000 * 3]}
        whole = {
            name: [place] * 9 + [place * 3 // 2] * 5
            for name, place in (("c", 500_000), ("d", 600_000), ("e", 7 * 10**5))
        }
        ranks = self._ranks({**early, **late, **whole}, {"b": 10})
        # Three times as long, in rounds in which the machine took one and a half times as long.
        assert ranks["b"].ratio == pytest.approx(2, abs=0.05)
        assert ranks["b"].tied is False

    def test_the_best_is_not_slower_than_another_in_the_same_rounds(self) -> None:
        """The median of 'a' is the lowest because 'a' was measured in no slow round but one."""
        slow = [1, 1, 1, 1, 1.5, 1.5, 1.5, 1.5, 1.5]
        noise = [1, 1.01, 0.99, 1.02, 1, 0.98, 1.01, 1, 0.99]
        whole = {
            name: [int(base * factor * more) for factor, more in zip(slow, noise, strict=True)]
            for name, base in (("b", 90_000), ("c", 500_000), ("d", 600_000), ("e", 700_000))
        }
        own = [int(100_000 * factor * more) for factor, more in zip(slow[:5], noise[::-1], strict=False)]
        ranks = self._ranks({"a": own, **whole})
        assert [(name, ratio.tied) for name, ratio in ranks.items()][:2] == [("b", True), ("a", False)]
        assert ranks["a"].ratio == pytest.approx(1 / 0.9, rel=0.03)

    def test_the_first_is_the_best_also_if_each_of_three_is_better_than_the_next(self) -> None:
        """Each pair was measured together in other rounds, at another speed of the machine."""
        times = {
            "a": {**dict.fromkeys(range(1, 6), 10), **dict.fromkeys(range(11, 16), 20)},
            "b": {**dict.fromkeys(range(1, 6), 12), **dict.fromkeys(range(6, 11), 15)},
            "c": {**dict.fromkeys(range(6, 11), 18), **dict.fromkeys(range(11, 16), 16)},
        }
        ranks = statistics.ranks(times)
        best, ratio = next(iter(ranks.items()))
        assert (ratio.ratio, ratio.tied) == (1, True)
        assert len(ranks) == 3
        assert best in times

    @pytest.mark.slow
    @pytest.mark.parametrize(("cells", "round_noise"), [(2, 0.0), (2, 0.2), (10, 0.0), (10, 0.05), (10, 0.2)])
    def test_equal_cells_are_seldom_told_apart_and_a_third_slower_often(self, cells: int, round_noise: float) -> None:
        """The noise is that of small virtual machines: 12 % per sample, one slow sample in ten, and slow rounds."""
        source = random.Random(cells)
        repetitions, rounds = 400, 7
        told = dict.fromkeys((1.0, 1.3), 0)
        held = 0
        for factor in told:
            for _ in range(repetitions):
                whole = [source.gauss(0, round_noise) for _ in range(rounds)]
                times = {
                    f"{'abcdefghij'[number]}": [
                        int(
                            1e6
                            * (factor if number == 1 else 1 if number == 0 else 3)
                            * math.exp(source.gauss(0, 0.12) + slow)
                            * (1 + (source.expovariate(2) if source.random() < 0.1 else 0))
                        )
                        for slow in whole
                    ]
                    for number in range(cells)
                }
                # Only the first two ranks are compared. If the variants are equal, chance decides which of them is
                # first.
                ranks = self._ranks(times)
                first, second = (name for name in ranks if name in "ab")
                ratio = ranks[second]
                told[factor] += ratio.tied is False
                truth = factor if (first, second) == ("a", "b") else 1 / factor
                held += ratio.low is not None and ratio.low <= truth <= (ratio.high or 0)
        # For 400 repetitions at a true rate of 4.5 %, two standard errors are 2 %.
        assert told[1.0] / repetitions <= 0.06
        assert held / (2 * repetitions) >= 0.93
        if cells > 2 or not round_noise:
            assert told[1.3] / repetitions >= 0.6

    def test_under_five_rounds_nothing_is_tied(self) -> None:
        assert {ratio.tied for ratio in self._ranks({"a": [1, 2], "b": [1, 2]}).values()} == {None}


class TestEffects:
    @pytest.mark.rule(16)
    def test_drift_of_raw_io_is_seen_from_ten_percent_on(self) -> None:
        for drift, warns in ((0.0, False), (0.3, True)):
            samples = make_rounds(("raw-io", "csv"), ("eq", "int", "str"), drift=drift)
            effects = statistics.raw_io_drift(statistics.summarise(samples).values())
            assert {effect.operation for effect in effects} == {"save", "read"}
            assert all(effect.warns == warns for effect in effects), effects
            assert all(abs(effect.change - drift) < 0.08 for effect in effects), effects

    def test_drift_is_from_the_first_round_to_the_last(self) -> None:
        samples = [
            make_sample(variant="raw-io", round=number, figures={"wall_ns": 100 + 2 * number}) for number in range(7)
        ]
        (effect,) = statistics.raw_io_drift(statistics.summarise(samples).values())
        # Round 0 is the pilot round. The counted rounds go from 102 to 112.
        assert effect.change == pytest.approx(10 / 107)

    @pytest.mark.rule(15)
    def test_a_place_in_the_round_that_costs_time_is_seen(self) -> None:
        for late, warns in ((0.0, False), (0.4, True)):
            effects = statistics.position_effect(make_rounds([f"variant-{number}" for number in range(16)], late=late))
            assert {effect.operation for effect in effects} == {"save", "read"}
            assert all(effect.warns == warns for effect in effects), effects

    def test_few_samples_tell_nothing_of_the_place(self) -> None:
        assert statistics.position_effect([make_sample(), make_sample(round=2)]) == []


def test_kendall_tau_of_known_orders() -> None:
    assert statistics.kendall_tau([1, 2, 3, 4], [10, 20, 30, 40]) == 1
    assert statistics.kendall_tau([1, 2, 3, 4], [4, 3, 2, 1]) == -1
    assert statistics.kendall_tau([1, 2, 3, 4], [1, 2, 4, 3]) == pytest.approx(2 / 3)
    assert statistics.kendall_tau([1, 2], [1, 2]) is None
    assert statistics.kendall_tau([1, 1, 1], [1, 2, 3]) is None


@pytest.mark.rule(17)
def test_overall_uses_only_tables_that_all_have() -> None:
    overall = statistics.overall({"a": {"eq": 1, "int": 4, "str": 100}, "b": {"eq": 2, "int": 1}, "none": {}})
    assert overall.tables == ("eq", "int")
    assert overall.means == {"b": pytest.approx(2**0.5), "a": pytest.approx(2)}
    assert statistics.overall({"a": {"eq": 1}, "b": {"int": 1}}).means == {}


def test_the_smallest_memory_shown_follows_the_probe_of_the_run() -> None:
    assert statistics.smallest_shown(RunInfo(probe=ProbeInfo(error_bytes=1_000_000))) == 3_000_000
    assert statistics.smallest_shown(RunInfo()) == 0
    assert statistics.smallest_shown(RunInfo(probe=ProbeInfo())) == 0
