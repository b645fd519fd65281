"""Errors name parameters in the caller's terms: keywords in Python, flags on the command line."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from adapters.errors import UserError
from bench_runner.errors import PlanError
from data_generator.errors import DataError
from data_generator.imported.read_options import ReadOptions
from format_bench import cli, run
from format_bench.errors import Interrupted, RequestError
from format_bench.terminal import with_flags

ROOT = Path(__file__).parents[2]
NAME_NO_FLAG = ("format_bench/api", "bench_runner/plan", "data_generator")
WRONG = ReadOptions(encoding="cp-1")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


@pytest.mark.parametrize(
    ("call", "parameter", "words", "flag"),
    [
        (lambda: run("tabular", work_dirs=["/absent"]), "work_dirs", "tabular --work-dir /absent", "--work-dir"),
        (lambda: run("tabular", datasets="evnts"), "datasets", "tabular --datasets evnts", "--datasets"),
        (lambda: run("tabular", formats="parqet"), "formats", "tabular --formats parqet", "--formats"),
        (lambda: run("tabular", networks="fast"), "networks", "tabular --network fast", "--network"),
        (lambda: run("tabular", codecs=["zstd"]), "codecs", "tabular --codecs zstd", "--codecs"),
        (lambda: run("image", tracks="plain"), "tracks", "image --track plain", "--track"),
        (lambda: run("tabular", resume=True), "out", "tabular --resume", "--out"),
        (lambda: run("sweep", over={"nulls": (0.5,)}), "over", "sweep --over nulls=0.5", "--over nulls=0,0.1"),
        (lambda: run("tabular", options=WRONG), "encoding", "tabular --encoding cp-1", "--encoding"),
    ],
)
def test_python_sees_the_keyword_and_the_command_line_the_flag(
    call: Callable[[], object], parameter: str, words: str, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UserError) as caught:
        call()
    assert caught.value.parameter == parameter
    assert parameter in str(caught.value)
    assert FLAG.search(str(caught.value)) is None
    assert "`" not in str(caught.value)
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", *words.split()])
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert flag in shown
    assert "`" not in shown


def test_an_error_carries_its_parts() -> None:
    with pytest.raises(RequestError) as caught:
        run("tabular", rows="x")  # type: ignore[arg-type]
    error = caught.value
    assert (error.parameter, error.given) == ("rows", "x")
    assert error.allowed == "a whole number of at least 1"
    assert error.next_step == "Omit it to use the default."
    assert str(error) == "rows must be a whole number of at least 1 (got 'x'). Omit it to use the default."
    with pytest.raises(RequestError) as caught:
        run("tabular", cache="hot")
    assert caught.value.allowed == ("warm", "cold")
    assert str(caught.value) == "cache must be 'warm' or 'cold' (got 'hot')."


@pytest.mark.parametrize("kind", [RequestError, PlanError, DataError])
def test_an_error_passes_between_processes(kind: type[UserError]) -> None:
    error = kind("`rows` is wrong.", "Omit it.", parameter="rows", given=3, allowed="less")
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.text, vars(copied)) == (str(error), error.text, vars(error))


def test_a_long_next_step_begins_a_line() -> None:
    assert str(UserError("Short.", "Do this.")) == "Short. Do this."
    assert str(UserError("a" * 60, "b" * 60)).splitlines() == ["a" * 60, f"  {'b' * 60}"]


@pytest.mark.parametrize(
    ("verb", "text", "shown"),
    [
        ("run", "`work_dirs` and `budget_s`", "--work-dir and --budget"),
        ("run", "`target='arrow'`", "--target arrow"),
        ("run", "`resume=True`", "--resume"),
        ("run", "`fidelity=False`, `header=False`", "--no-fidelity, --no-header"),
        ("run", "`datasets=('a', 'b c')`", "--datasets a --datasets 'b c'"),
        ("run", "`codecs=('zstd', 'gzip')`", "--codecs zstd,gzip"),
        ("run", "`over={'nulls': (0, 0.5)}`", "--over nulls=0,0.5"),
        ("run", "`columns={'zip': 'text', 'day': 'date'}`", "--column zip=text --column day=date"),
        ("run", "`data=PATH`", "--data PATH"),
        ("recommend", "`stored='reference'` `weights={'read': 3}`", "--from reference --prefer read=3"),
        ("inspect", "`data`", "PATH"),
        # Not a parameter of this verb, but of another.
        ("inspect", "`datasets`", "--datasets"),
        ("run", "`no_such_parameter=1`", "no_such_parameter=1"),
    ],
)
def test_parameters_become_flags(verb: str, text: str, shown: str) -> None:
    root = click.Context(cli.cli)
    with click.Context(cli.cli.commands[verb], parent=root).scope():
        assert with_flags(text) == shown


def test_an_interruption_names_the_next_step_in_the_caller_s_terms(tmp_path: Path) -> None:
    stopped = Interrupted(tmp_path)
    assert f"out={str(tmp_path)!r} and resume=True" in str(stopped)
    with click.Context(cli.cli.commands["run"], parent=click.Context(cli.cli)).scope():
        assert f"--out {tmp_path} and --resume" in with_flags(stopped.text)


def flags_in_errors(text: str) -> Iterator[tuple[int, str]]:
    """(line, flag) of each flag of our command line in a text within a `raise` statement."""
    known = {flag for command in cli.cli.commands.values() for each in command.params for flag in each.opts}
    for statement in ast.walk(ast.parse(text)):
        if not isinstance(statement, ast.Raise):
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from ((node.lineno, flag) for flag in FLAG.findall(node.value) if flag in known)


def test_no_error_text_names_a_flag() -> None:
    files = [file for place in NAME_NO_FLAG for file in (ROOT / place).rglob("*.py")]
    assert len(files) > 50
    found = [
        f"{file.relative_to(ROOT)}:{line}: {flag}" for file in files for line, flag in flags_in_errors(file.read_text())
    ]
    assert found == []


def test_the_scan_finds_a_flag() -> None:
    assert list(flags_in_errors('raise PlanError(f"--rows {rows}: too few")')) == [(1, "--rows")]
    assert list(flags_in_errors('raise PlanError("`rows`: too few")')) == []
