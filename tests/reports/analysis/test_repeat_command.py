"""The command shown next to a figure measures that variant again. Each command is parsed and planned."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import cache

import click
import pytest

from bench_runner.plan.chain import Chain, Plan
from bench_runner.plan.planning import make_plan
from bench_runner.request import Request
from bench_runner.results.information import information
from bench_runner.results.records import Conditions, Run
from bench_runner.suites import SUITES
from format_bench import cli
from format_bench.api.request import requested
from format_bench.commands.run import selected
from reports.analysis.repeat_command import PROGRAM, command_text, repeating_command
from reports.analysis.tables import Table, tables
from tests.reports.factory import make_run, make_sample


@cache
def planned(suite: str) -> Plan:
    return make_plan([SUITES[suite]], Request(webface=None, rows=2000))


def chains(suite: str) -> list[Chain]:
    """Return every variant on one data set, and every data set with one variant."""
    plan = planned(suite)
    everything = [*plan.chains, *(each.chain for each in plan.excluded)]
    first = everything[0].dataset
    variants = {chain.variant for chain in everything if not chain.is_raw_io}
    one = min(variants)
    chosen = [chain for chain in everything if not chain.is_raw_io and (chain.dataset == first or chain.variant == one)]
    # The plan lists operations that the data set cannot support as separate chains.
    return list({(chain.dataset, chain.variant, chain.conditions): chain for chain in reversed(chosen)}.values())


def rows_of(suite: str, dataset: str) -> int:
    known = planned(suite).datasets.get(dataset)
    return known.rows if known else 2000


def table_of(chain: Chain, info: dict[str, object] | None = None, variant: str = "") -> tuple[Run, Table]:
    samples = tuple(
        make_sample(
            suite=chain.suite,
            dataset=chain.dataset,
            rows=rows_of(chain.suite, chain.dataset),
            variant=variant or chain.variant,
            conditions=chain.conditions,
            operation=operation,
            round=number,
            position=10 * number + (operation == "read"),
        )
        for number in (1, 2, 3)
        for operation in ("save", "read")
    )
    run = replace(make_run(datasets=(), rounds=1), samples=samples, info=information(info or {}))
    (table,) = tables(run)
    return run, table


def plan_of(command: str) -> tuple[Plan, dict[str, object]]:
    assert command.startswith(PROGRAM)
    words = shlex.split(command.removeprefix(PROGRAM))
    run = cli.cli.get_command(click.Context(cli.cli), "run")
    assert run is not None
    context = run.make_context("run", words, parent=click.Context(cli.cli, help_option_names=["-h", "--help"]))
    suites = context.params.pop("suites")
    return make_plan([SUITES[name] for name in suites], requested(**selected(context.params))), context.params


@pytest.mark.parametrize("suite", SUITES)
def test_every_variant_and_every_data_set_is_planned_again_alone(suite: str, subtests: pytest.Subtests) -> None:
    for chain in chains(suite):
        with subtests.test(f"{chain.label()} {chain.conditions.track}"):
            run, table = table_of(chain)
            plan, options = plan_of(repeating_command(run, table, table.rows[0]))
            found = [*plan.chains, *(each.chain for each in plan.excluded)]
            # The plan lists operations that the data set cannot support as separate chains.
            assert {(each.dataset, each.variant, each.conditions) for each in found if not each.is_raw_io} == {
                (chain.dataset, chain.variant, chain.conditions)
            }
            assert plan.datasets[chain.dataset].rows == rows_of(chain.suite, chain.dataset)
            assert options["rounds"] == 3


CSV = next(chain for chain in chains("tabular") if chain.variant == "csv[engine=pandas]")


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        (Conditions(), "--track plain"),
        (Conditions(cache="cold (guest)"), "--track plain --cache cold"),
        (Conditions(threads="1", target="arrow"), "--track plain --target arrow --threads 1"),
        (Conditions(track="default", strings="object"), "--track default --strings object"),
        (Conditions(work_dir="/mnt/my disk"), "--track plain --work-dir '/mnt/my disk'"),
    ],
)
def test_conditions_that_are_not_the_usual_ones_are_named(conditions: Conditions, words: str) -> None:
    run, table = table_of(replace(CSV, conditions=conditions))
    assert repeating_command(run, table, table.rows[0]).endswith(f"--rows 2000 --rounds 3 {words}")


def test_what_the_runner_adds_to_a_variant_is_left_to_the_runner() -> None:
    run, table = table_of(CSV, variant="hdf5-fixed[engine=pandas,nulls=numpy]")
    words = shlex.split(repeating_command(run, table, table.rows[0]))
    assert words[words.index("--formats") + 1] == "hdf5-fixed[engine=pandas]"


def test_codecs_files_and_isolation_of_the_request_are_kept() -> None:
    codecs = next(chain for chain in chains("compression"))
    info: dict[str, object] = {"request": {"codecs": ["zstd", "gzip"], "levels": [1, 9]}, "isolate": "spawn"}
    run, table = table_of(codecs, info)
    assert repeating_command(run, table, table.rows[0]).endswith("--codecs zstd,gzip --levels 1,9 --isolate spawn")
    run, table = table_of(replace(CSV, dataset="webface"), {"request": {"webface": "/data/web face.h5"}})
    assert "--webface '/data/web face.h5'" in repeating_command(run, table, table.rows[0])
    images = chains("image")[0]
    run, table = table_of(replace(images, dataset="images"), {"request": {"data": "pictures"}})
    assert repeating_command(run, table, table.rows[0]).endswith("--data pictures")
    run, table = table_of(replace(CSV, dataset="table[share=0.25]"), {"request": {"data": "my.csv"}})
    assert repeating_command(run, table, table.rows[0]).endswith("--data my.csv")


def test_raw_io_is_repeated_with_another_variant() -> None:
    run = make_run(datasets=("eq",), tracks=("plain",), rounds=5)
    (table,) = tables(run)
    (yardstick,) = [row for row in table.rows if row.variant.is_raw_io]
    first = table.rows[0]
    assert repeating_command(run, table, yardstick) == repeating_command(run, table, first)


def test_hostile_names_are_one_word_for_the_shell() -> None:
    run, table = table_of(replace(CSV, dataset="a; rm -rf '$HOME'"), variant="csv[engine=`reboot`]")
    words = shlex.split(repeating_command(run, table, table.rows[0]))
    assert words[words.index("--formats") + 1] == "csv[engine=`reboot`]"
    assert words[words.index("--datasets") + 1].startswith("^a;")


def test_a_row_with_a_projection_names_its_operations() -> None:
    run = make_run(datasets=("eq",), tracks=("plain",), rounds=5, project=True)
    (table,) = tables(run)
    row = next(row for row in table.rows if row.variant.startswith("parquet"))
    words = shlex.split(repeating_command(run, table, row))
    chosen = [words[place + 1] for place, word in enumerate(words) if word == "--operations"]
    assert chosen == ["read", "project[columns=10]"]


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (("format-bench", "run", "tabular", "-d", "eq|core"), "format-bench run tabular -d 'eq|core'"),
        (("format_bench.run('tabular', rows=5)",), "format_bench.run('tabular', rows=5)"),
        ((), ""),
    ],
)
def test_a_recorded_command_can_be_pasted(command: tuple[str, ...], text: str) -> None:
    assert command_text(command) == text
