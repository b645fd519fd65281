"""How the doctor's findings are shown: within the page, plain where piped, and the worst nearest to the prompt."""

import io

import pytest
from rich.console import Console

from bench_runner.machine.doctor import Finding
from format_bench.commands.doctor import show


def shown(findings, **options):
    console = Console(file=io.StringIO(), **options)
    show(findings, console)
    return console.file.getvalue()


FINDINGS = [
    Finding("bad", "load", "12.00 on average over the last minute, 2 cores " * 4, "end other work " * 12),
    Finding("good", "swap", "not in use"),
    Finding("hint", "libraries", "not installed: xml (needs lxml)", "pip install -e '.[xml]'"),
]


@pytest.mark.parametrize("width", [60, 100, 200])
def test_it_fits_the_columns(width):
    lines = shown(FINDINGS, width=width).splitlines()
    assert max(map(len, lines)) <= min(width, 100)


def test_brackets_of_a_command_are_not_taken_for_markup():
    assert "pip install -e '.[xml]'" in shown(FINDINGS, width=100)


def test_no_escape_codes_when_piped():
    assert "\x1b" not in shown(FINDINGS, width=100)
    assert "\x1b" in shown(FINDINGS, width=100, force_terminal=True, color_system="standard")


def test_the_worst_finding_is_last_and_the_verdict_follows():
    text = shown(FINDINGS, width=100)
    assert text.index("swap") < text.index("libraries") < text.index("12.00")
    assert text.rstrip().endswith("First fix: load; then run doctor again.")
