"""Conditions are declared once, and all lists of conditions use this declaration."""

from __future__ import annotations

from bench_runner.conditions import CONDITIONS, Conditions, conditions_text, same_for_raw_io
from bench_runner.results.records import changed
from bench_runner.suites import SUITES
from format_bench.options import BETWEEN, UNDER, WHICH


def test_every_condition_has_a_row_and_an_option() -> None:
    assert {each.name for each in CONDITIONS} == set(Conditions.__struct_fields__)

    @WHICH
    @UNDER
    @BETWEEN
    def command() -> None: ...

    offered = {name for option in command.__click_params__ for name in option.opts}  # type: ignore[attr-defined]
    assert {each.option for each in CONDITIONS} <= offered


def test_the_help_names_the_suites_with_other_defaults() -> None:
    @UNDER
    def command() -> None: ...

    told = {option.name: option.help for option in command.__click_params__}  # type: ignore[attr-defined]
    *most, last = (suite.name for suite in SUITES.values() if suite.target == "arrow")
    assert f"arrow in the suites {', '.join(most)} and {last}]" in told["target"]
    (both,) = (suite.name for suite in SUITES.values() if len(suite.threads) > 1)
    assert f"both in the suite {both}]" in told["threads"]


def test_defaults_are_left_out_of_the_text_but_for_three() -> None:
    assert conditions_text(Conditions()) == "track plain, cache warm, target pandas"
    under = Conditions(threads="1", strings="object", work_dir="/data", network="1000mbit", service="fresh")
    assert conditions_text(under) == (
        "track plain, cache warm, target pandas, 1 thread, strings as object, in /data, loopback at 1,000 Mbit/s, "
        "fresh service"
    )


def test_raw_io_is_measured_again_where_device_threads_cache_or_network_differ() -> None:
    usual = Conditions()
    different = {
        name: not same_for_raw_io(usual, changed(usual, **{name: value}))
        for name, value in {
            "cache": "cold",
            "threads": "1",
            "work_dir": "/data",
            "network": "loopback",
            "target": "arrow",
            "track": "equal",
            "strings": "object",
            "service": "warm",
        }.items()
    }
    assert different == {
        **dict.fromkeys(("cache", "threads", "work_dir", "network"), True),
        **dict.fromkeys(("target", "track", "strings", "service"), False),
    }
