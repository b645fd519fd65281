"""Recommendations: the best variant by weights, its probability, variants that drop out, and where the best changes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

import pytest

from bench_runner.results.records import Conditions, Failure
from reports.analysis.recommendation.answer import Answer
from reports.analysis.recommendation.candidates import Candidate, Question, project_candidates, summary_of
from reports.analysis.recommendation.eligibility import eligible
from reports.analysis.recommendation.preferences import Preferences
from reports.analysis.recommendation.reasons import reasons
from reports.analysis.recommendation.recommend import recommend, weighed, weights
from reports.analysis.recommendation.round_effect import without_round_effect
from reports.analysis.units import number_text
from tests.reports.analysis.recommendation.invented import candidate, names
from tests.reports.factory import make_run


def test_the_weights_decide() -> None:
    kept = [candidate("quick", read=1, size=40), candidate("small", read=4, size=5)]
    assert names(recommend(kept, (), Preferences(weights={"read": 3, "size": 1}))) == ["quick", "small"]
    assert names(recommend(kept, (), Preferences(weights={"read": 1, "size": 3}))) == ["small", "quick"]


def test_a_score_is_the_weighted_geometric_mean() -> None:
    kept = [candidate("a", read=1, size=8), candidate("b", read=4, size=1)]
    found = recommend(kept, (), Preferences(weights={"read": 2, "size": 1}))
    a, b = (1**2 * 8) ** (1 / 3), (4**2 * 1) ** (1 / 3)
    assert names(found) == ["a", "b"]
    assert found.ranked[1].score == pytest.approx(b / a)
    assert found.ranked[0].ratios == pytest.approx({"read": 1.0, "size": 8.0})


def test_other_variants_do_not_change_the_order() -> None:
    one, two = candidate("a", read=1, size=8), candidate("b", read=3, size=3)
    for other in (candidate("c", read=0.001, size=1000), candidate("d", read=500, size=500)):
        found = names(recommend([one, two, other], (), Preferences(weights={"read": 1, "size": 1})))
        assert found.index("a") < found.index("b")


def test_a_clear_winner_is_sure_and_a_tie_is_not() -> None:
    weights = Preferences(weights={"read": 1})
    clear = recommend([candidate("a", noise=0.05), candidate("b", read=20, noise=0.05)], (), weights)
    assert clear.ranked[0].probability == 1
    assert [each.candidate.variant for each in clear.tied] == ["a"]
    even = recommend([candidate("a", noise=0.1), candidate("b", noise=0.1), candidate("c", read=30)], (), weights)
    assert len(even.tied) == 2
    assert sum(each.probability or 0 for each in even.ranked) == pytest.approx(1)


def test_the_probability_of_a_tied_variant_is_limited() -> None:
    """One variant is 1 % slower in every round, so every draw agrees. But the rounds differ by more than 1 %."""
    one = candidate("a")
    varied = {number: 1e6 * (10 + number) for number in one.figures["read"]}
    one = replace(one, figures={**one.figures, "read": varied})
    slower = {number: 1.01 * value for number, value in varied.items()}
    other = replace(one, variant=candidate("b").variant, figures={**one.figures, "read": slower})
    found = recommend([one, other], (), Preferences(weights={"read": 1}))
    assert [each.candidate.variant for each in found.tied] == ["a", "b"]
    assert found.ranked[0].probability == 0.975


def test_claims_of_nine_in_ten_are_right_as_often() -> None:
    """Two variants that differ by a few percent are measured repeatedly, with noise of the same size."""
    claims = right = 0
    preferences = Preferences(weights={"read": 1})
    for seed in range(300):
        gap = 1 + 0.02 * (seed % 4)
        kept = [candidate("a", noise=0.05, seed=seed), candidate("b", read=10 * gap, noise=0.05, seed=seed)]
        first = recommend(kept, (), preferences).ranked[0]
        if first.probability is not None and first.probability >= 0.9:
            claims += 1
            right += first.candidate.variant == "a"
    assert claims > 50
    assert right / claims >= 0.85


def test_too_few_rounds_make_no_claim() -> None:
    kept = [candidate("a", rounds=range(1, 4)), candidate("b", read=11)]
    found = recommend(kept, (), Preferences(weights={"read": 1}))
    assert all(each.probability is None for each in found.ranked)
    dear = candidate("b", read=500, rounds=range(1, 2))
    far = recommend([candidate("a"), dear], (), Preferences(weights={"read": 1}))
    assert far.ranked[0].probability == 1


@pytest.mark.rule(15)
def test_leaving_after_fast_rounds_is_no_advantage() -> None:
    """After the fifth round, every variant is slower by half.

    Eight of ten variants left before; they are 10 % slower.
    """
    long = range(1, 31)
    stayed = [candidate("a", noise=0.01, rounds=long), candidate("b", read=10.3, noise=0.01, rounds=long)]
    left = [candidate(f"c{number}", read=11, noise=0.01, rounds=range(1, 6)) for number in range(8)]

    def slowed(each: Candidate) -> Candidate:
        read = {number: value * (1.5 if number > 5 else 1) for number, value in each.figures["read"].items()}
        return replace(each, figures={**each.figures, "read": read})

    found = recommend([*left, *map(slowed, stayed)], (), Preferences(weights={"read": 1}))
    assert names(found)[:2] == ["a", "b"]
    assert [each.score for each in found.ranked[2:]] == pytest.approx([1.1] * 8, rel=0.03)
    assert found.ranked[0].probability is not None
    assert found.ranked[0].probability > 0.99


def test_figures_of_the_same_rounds_stay_as_they_are_measured() -> None:
    figures = {"a": {1: 10.0, 2: 30.0}, "b": {1: 12.0, 2: 11.0}, "c": {}}
    assert without_round_effect(figures) == figures
    longer = {"a": {1: 10.0, 2: 20.0, 3: 20.0}, "b": {1: 12.0}}
    # Ratios within a round stay unchanged. The round with the median speed keeps its times.
    free = without_round_effect(longer)
    assert free["b"][1] / free["a"][1] == pytest.approx(1.2)
    assert free["a"] == pytest.approx({1: 20.0, 2: 20.0, 3: 20.0}, rel=1e-9)


def test_the_frontier_has_no_variant_that_is_beaten_in_everything() -> None:
    kept = [candidate("a", read=1, size=9), candidate("b", read=9, size=1), candidate("c", read=9.5, size=9.5)]
    found = recommend(kept, (), Preferences(weights={"read": 1, "size": 1}))
    assert {each.candidate.variant for each in found.ranked if each.on_frontier} == {"a", "b"}


def test_reads_for_each_save_make_one_time() -> None:
    kept = [candidate("writes", save=1, read=10), candidate("reads", save=40, read=5)]
    seldom = Preferences(weights={"read": 1, "save": 1}, reads_per_save=1)
    often = Preferences(weights={"read": 1, "save": 1}, reads_per_save=100)
    assert names(recommend(kept, (), seldom))[0] == "writes"
    assert names(recommend(kept, (), often))[0] == "reads"
    assert weights(often) == {"time": 1.0}
    assert weighed(kept[0], often)["time"][1] == pytest.approx(1e6 + 100 * 10e6)


def test_slow_storage_favours_small_files() -> None:
    kept = [candidate("large", read=1, save=1, size=100), candidate("small", read=5, save=5, size=10)]
    fast, slow = (Preferences(weights={"read": 1}, bandwidth_bytes_per_s=rate) for rate in (1e12, 1e8))
    assert names(recommend(kept, (), fast))[0] == "large"
    assert names(recommend(kept, (), slow))[0] == "small"


def test_break_evens_are_where_the_lines_cross() -> None:
    kept = [candidate("writes", save=10, read=10, size=10), candidate("reads", save=34, read=2, size=10)]
    found = recommend(kept, (), Preferences(weights={"read": 1}))
    (change,) = [each for each in found.break_evens if each.of == "reads"]
    assert (change.first, change.then) == ("writes", "reads")
    assert change.at.median == pytest.approx(3)


def test_the_bandwidth_below_which_the_smaller_wins() -> None:
    kept = [candidate("large", save=10, read=10, size=100), candidate("small", save=20, read=20, size=20)]
    found = recommend(kept, (), Preferences(weights={"read": 1}))
    (change,) = [each for each in found.break_evens if each.of == "bandwidth"]
    assert (change.first, change.then) == ("small", "large")
    # 20 ms more of work are compared with 160 MB less to transfer.
    assert change.at.median == pytest.approx(160e6 / 20e-3)


@pytest.mark.parametrize(("cache", "kinds"), [("warm", {"reads", "bandwidth"}), ("cold (guest)", {"reads"})])
def test_cold_reads_have_no_bandwidth_at_which_another_wins(cache: str, kinds: set[str]) -> None:
    """Their times already include the device."""
    kept = [candidate("large", save=10, read=20, size=100), candidate("small", save=30, read=10, size=20)]
    kept.append(candidate("tiny", save=90, read=90, size=10))
    for cell in (cell for each in kept for cell in each.cells.values()):
        cell.cell.conditions = Conditions(cache=cache)  # type: ignore[misc]
    found = recommend(kept, (), Preferences(weights={"read": 1}))
    assert {each.of for each in found.break_evens} == kinds


def test_each_break_even_states_the_range_of_both_variants() -> None:
    kept = [
        candidate("large", save=10, read=10, size=100),
        candidate("middle", save=20, read=20, size=50),
        candidate("small", save=60, read=60, size=20),
    ]
    found = recommend(kept, (), Preferences(weights={"read": 1}))
    upper, lower = [each for each in found.break_evens if each.of == "bandwidth"]
    assert (lower.first, lower.then, upper.first, upper.then) == ("small", "middle", "middle", "large")
    assert (lower.since, lower.until) == (None, pytest.approx(upper.at.median))
    assert (upper.since, upper.until) == (pytest.approx(lower.at.median), None)


@pytest.mark.parametrize("kind", ["mismatch", "crash"])
def test_one_wrong_answer_in_seven_is_not_recommended(kind: str) -> None:
    """The variant is excluded however fast its other rounds are."""
    quick, slow = candidate("quick", read=1, parts={"take": 1.0}), candidate("slow", read=9, parts={"take": 9.0})
    failed = Failure(kind=kind, reason="row 3 came back as None")
    quick.cells["read"].failures = (failed,)  # type: ignore[misc]
    kept, dropped = eligible([quick, slow], Preferences(), 0)
    assert [each.variant for each in kept] == ["slow"]
    assert dropped == [("quick", f"{kind}: row 3 came back as None")]
    quick.cells["read"].failures, quick.cells["take"].failures = (), (failed,)  # type: ignore[misc]
    assert quick.reason == ""
    assert quick.lacks("take") == f"{kind}: row 3 came back as None"
    assert slow.lacks("take") == ""


def test_a_timeout_or_lack_of_memory_is_not_a_wrong_answer() -> None:
    quick = candidate("quick")
    quick.cells["read"].failures = (Failure(kind="timeout", reason="over 600 s"),)  # type: ignore[misc]
    assert quick.reason == ""


def test_variants_that_lack_a_need_drop_out_with_the_reason() -> None:
    able = candidate("a", capabilities=frozenset({"append"}))
    silent = candidate("c", capabilities=None)
    kept, dropped = eligible([able, candidate("b"), silent], Preferences(needs=("append",)), 0)
    assert [each.variant for each in kept] == ["a"]
    assert dict(dropped) == {"b": "cannot: append", "c": "the run did not record its abilities"}


def test_memory_over_the_limit_drops_out() -> None:
    kept, dropped = eligible([candidate("a")], Preferences(max_memory_bytes=60 * 10**6), held_bytes=20 * 10**6)
    assert kept == []
    assert "0.07 GB" in dropped[0][1]
    assert eligible([candidate("a")], Preferences(max_memory_bytes=60 * 10**6), held_bytes=9 * 10**6)[1] == []


def test_a_lossy_variant_drops_out_if_another_is_exact() -> None:
    lossy = candidate("b", losses=("floats keep 10 decimals",))
    kept, dropped = eligible([candidate("a"), lossy], Preferences(), 0)
    assert [each.variant for each in kept] == ["a"]
    assert dropped == [("b", "changes this data: floats keep 10 decimals")]
    assert [each.variant for each in eligible([lossy], Preferences(), 0)[0]] == ["b"]


def test_other_kinds_of_results_are_never_ranked() -> None:
    _, dropped = eligible([candidate("feather[engine=pyarrow,codec=none,mapped=true]")], Preferences(), 0)
    assert "another kind of result" in dropped[0][1]


def test_a_sample_is_projected_to_the_whole_round_by_round() -> None:
    few = [candidate("flat", read=10, size=1), candidate("steep", read=1, size=1)]
    many = [candidate("flat", read=12, size=4), candidate("steep", read=4, size=4)]
    found = project_candidates(many, few, (100, 400, 40_000))
    reads = {each.variant: each.figures["read"][1] / 1e6 for each in found}
    # 300 further rows take 2 ms or 3 ms. The second variant is faster on few rows, the first on all of them.
    assert reads == pytest.approx({"flat": 12 + 2 * 39_600 / 300, "steep": 4 + 3 * 39_600 / 300})
    assert names(recommend(found, (), Preferences(weights={"read": 1})))[0] == "flat"
    assert names(recommend(many, (), Preferences(weights={"read": 1})))[0] == "steep"
    lost = project_candidates(many, few[:1], (100, 400, 40_000))
    assert lost[1].rounds == frozenset()


def test_a_variant_without_a_counted_round_is_unknown_and_not_worse() -> None:
    nothing = candidate("a", rounds=range(0))
    assert nothing.unknown
    assert eligible([nothing], Preferences(), 0)[1] == [("a", "no round was counted")]
    assert not candidate("b").unknown


# --- what may be recommended -------------------------------------------------------------------------------------


def test_young_formats_are_shown_and_not_recommended() -> None:
    kept = [
        candidate("a", read=10, noise=0.02),
        candidate("b", read=20, noise=0.02),
        candidate("y", read=8, stage="young", noise=0.02),
        candidate("e", read=2, stage="experimental", noise=0.02),
    ]
    found = recommend(kept, (), Preferences(weights={"read": 1}))
    assert names(found) == ["a", "b"]
    assert [each.candidate.variant for each in found.not_accepted] == ["e", "y"]
    assert [each.score for each in found.not_accepted] == pytest.approx([0.2, 0.8], rel=0.05)
    young = recommend(kept, (), Preferences(weights={"read": 1}, accept="young"))
    assert (names(young), [each.candidate.variant for each in young.not_accepted]) == (["y", "a", "b"], ["e"])
    everything = recommend(kept, (), Preferences(weights={"read": 1}, accept="experimental"))
    assert (names(everything), everything.not_accepted) == (["e", "y", "a", "b"], ())


def test_ties_and_probabilities_are_among_what_may_be_recommended() -> None:
    kept = [
        candidate("a", read=10, save=10, noise=0.1),
        candidate("b", read=10, save=50, noise=0.1),
        candidate("e", read=1, save=1, stage="experimental", noise=0.1),
    ]
    found = recommend(kept, (), Preferences(weights={"read": 1, "save": 0.01}))
    assert sum(each.probability or 0 for each in found.ranked) == pytest.approx(1)
    assert [each.probability for each in found.not_accepted] == [None]
    assert {each.candidate.variant for each in found.tied} == {"a", "b"}
    assert found.ranked[0].ratios["read"] < 2, "multiples of the best of them"
    assert found.ranked[0].on_frontier
    assert not any("e" in (change.first, change.then) for change in found.break_evens)


def test_if_nothing_is_accepted_the_others_are_ranked_among_themselves() -> None:
    kept = [candidate("y", read=8, stage="young"), candidate("e", read=2, stage="experimental")]
    found = recommend(kept, (), Preferences(weights={"read": 1}))
    assert found.ranked == ()
    assert [each.candidate.variant for each in found.not_accepted] == ["e", "y"]
    assert [each.score for each in found.not_accepted] == pytest.approx([1, 4])


def test_a_format_without_a_declared_maturity_is_young() -> None:
    unknown = replace(candidate("a"), maturity=None)
    assert unknown.stage == "young"
    assert recommend([unknown], (), Preferences()).ranked == ()
    assert names(recommend([unknown], (), Preferences(accept="young"))) == ["a"]


def test_a_lossy_variant_stays_if_only_young_formats_are_exact() -> None:
    lossy, exact = candidate("a", losses=("dates become text",)), candidate("y", stage="young")
    also_lossy = candidate("z", stage="young", losses=("dates become text",))
    kept, dropped = eligible([lossy, exact, also_lossy], Preferences(), 0)
    assert [each.variant for each in kept] == ["a", "y"]
    assert dropped == [("z", "changes this data: dates become text")]
    kept, _ = eligible([lossy, exact, also_lossy], Preferences(accept="young"), 0)
    assert [each.variant for each in kept] == ["y"]
    assert [each.variant for each in eligible([lossy, also_lossy], Preferences(), 0)[0]] == ["a", "z"]


# --- against what the user has now -------------------------------------------------------------------------------


def test_the_baseline_is_compared_in_read_save_and_size() -> None:
    kept = [candidate("a", read=10, save=20, size=5)]
    now = candidate("now", read=90, save=60, size=55, losses=("dates become text",), rounds=range(1, 3))
    found = recommend(kept, (), Preferences(weights={"read": 1}), now).baseline
    assert found is not None
    assert {name: ratio.ratio for name, ratio in found.ratios.items()} == pytest.approx(
        {"read": 9, "save": 3, "size": 11}
    )
    assert (found.score, dict(found.values)) == (pytest.approx(9), {"read": pytest.approx(90e6)})
    wide = recommend(kept, (), Preferences(weights={"read": 1, "save_memory": 1}), now).baseline
    assert wide is not None
    assert set(wide.ratios) == {"read", "save", "size", "save_memory"}


def test_the_baseline_pays_for_its_transfer_too() -> None:
    kept, now = [candidate("a", read=10, size=10)], candidate("now", read=10, size=100)
    slow = Preferences(weights={"read": 1}, bandwidth_bytes_per_s=1e9)
    found = recommend(kept, (), slow, now).baseline
    assert found is not None
    assert found.ratios["read"].ratio == pytest.approx((10 + 100) / (10 + 10))


def test_a_baseline_without_rounds_or_rival_has_no_ratios() -> None:
    nothing = recommend([candidate("a")], (), Preferences(), candidate("now", rounds=range(0))).baseline
    assert nothing is not None
    assert (nothing.values, nothing.ratios, nothing.score) == ({}, {}, None)
    alone = recommend([], (), Preferences(), candidate("now")).baseline
    assert alone is not None
    assert alone.values
    assert alone.ratios == {}
    assert recommend([candidate("a")], (), Preferences()).baseline is None


def test_a_baseline_with_other_rounds_is_compared() -> None:
    kept = [candidate("a", read=10, rounds=range(1, 8))]
    found = recommend(kept, (), Preferences(), candidate("now", read=30, rounds=range(8, 10))).baseline
    assert found is not None
    assert found.ratios["read"].ratio == pytest.approx(3)
    assert found.ratios["read"].tied is None


# --- on a stored run ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def answer() -> Answer:
    run = make_run(datasets=("eq",), rounds=7)
    ((question, candidates),) = summary_of(run).questions.items()
    kept, dropped = eligible(candidates, Preferences(), 60_000_000)
    found = recommend(kept, dropped, Preferences(needs=("types",)))
    return Answer(question, found, ("a remark",), ("import x",), "x.save(df)", "df = x.read()")


def test_a_stored_run_has_one_question_for_all_tracks(answer: Answer) -> None:
    assert answer.question == Question("eq", answer.question.rows, answer.question.machine, Conditions(track=""))
    variants = names(answer.found)
    assert len(variants) == len(set(variants)) > 3
    assert not any(variant.startswith("raw-io") for variant in variants)
    assert any("codec=snappy" in variant for variant in variants + [name for name, _ in answer.found.dropped])


def test_every_winner_has_a_reason_of_figures(answer: Answer) -> None:
    found = reasons(answer.found)
    assert found[0].variant == answer.found.ranked[0].candidate.variant
    assert {title for each in found for title in each.wins} == {"the weighted whole", "read time", "size", "save time"}
    assert all("reads in" in each.sentence and "MB" in each.sentence for each in found)


def measured(rows: int) -> Sequence[Candidate]:
    (candidates,) = summary_of(make_run(datasets=("eq",), tracks=("plain",), rounds=7, rows=rows)).questions.values()
    return candidates


def shown(each: Candidate, name: str) -> str:
    return number_text(statistics.median(each.figures[name].values()) / 1e6)


@pytest.mark.parametrize(
    "preferences",
    [Preferences(), Preferences(weights={"read": 1}), Preferences(reads_per_save=10)],
    ids=["default", "read", "reads_per_save"],
)
def test_a_reason_of_a_projection_has_no_figures_of_the_sample(preferences: Preferences) -> None:
    whole = project_candidates(measured(200_000), measured(20_000), (20_000, 200_000, 10_000_000))
    found = recommend(eligible(whole, preferences, 0)[0], (), preferences)
    by_variant = {each.candidate.variant: each.candidate for each in found.ranked}
    for reason in reasons(found):
        each = by_variant[reason.variant]
        assert reason.sentence == (
            f"projected to 10,000,000 rows: reads in {shown(each, 'read')} ms; saves in {shown(each, 'save')} ms; "
            f"its file: {shown(each, 'size')} MB"
        )


def test_a_reason_has_the_multiple_of_raw_io_at_the_time_without_the_transfer() -> None:
    kept = [each for each in measured(200_000) if each.variant == "parquet[engine=pyarrow,codec=none]"]
    near, far = (
        recommend(kept, (), Preferences(weights={"read": 1}, bandwidth_bytes_per_s=rate)) for rate in (None, 1e6)
    )
    (at_once,), (transferred,) = reasons(near), reasons(far)
    first = far.ranked[0].candidate
    assert f"reads in {shown(first, 'read')} ms without the transfer, " in transferred.sentence
    assert f"saves in {shown(first, 'save')} ms without the transfer, " in transferred.sentence
    assert " times raw I/O (" in transferred.sentence
    assert transferred.sentence.replace(" without the transfer", "") == at_once.sentence
