"""README and docs/ held to the code: commands parse, links lead somewhere, names exist, numbers are the code's.

What a page says in words is not checked here; what it names is.
"""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from bench_runner.results.figures import FIGURES
from format_bench import cli, terminal

ROOT = Path(__file__).resolve().parents[1]
FILES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
PAGES = {path.relative_to(ROOT).as_posix(): path for path in FILES}
METHOD = (ROOT / "docs/method.md").read_text()
OPERATIONS = (ROOT / "docs/operations.md").read_text()

PROGRAM = re.compile(r"^(?:\.venv/bin/)?(?:python main\.py|format-bench)\b(.*)$")
PLACEHOLDERS = {"/mnt/disk": "/tmp"}
"""Folders that a reader replaces by one of theirs."""


def named(page: Path, pattern: str) -> list[str]:
    """What the pattern's group finds in a page, each once."""
    return list(dict.fromkeys(re.findall(pattern, page.read_text(), re.MULTILINE)))


def code_lines(page: Path) -> Iterator[str]:
    """Lines of fenced blocks, and code spans, of a page."""
    text = page.read_text()
    for block in re.findall(r"^ *```\w*\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL):
        yield from map(str.strip, block.splitlines())
    outside = re.sub(r"^ *```\w*\n.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    yield from (span.replace("\n", " ") for span in re.findall(r"`([^`]+)`", outside))


def program_commands(page: Path) -> list[list[str]]:
    """The words after `python main.py` or `format-bench` of each command that a page shows."""
    found = []
    for line in code_lines(page):
        match = PROGRAM.match(line)
        if match and "..." not in line:
            found.append(shlex.split(match[1], comments=True))
    return found


COMMANDS = [
    pytest.param(words, id=f"{name}: {' '.join(words)}")
    for name, page in PAGES.items()
    for words in program_commands(page)
]


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_shown_parses(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`run` is planned with --list; the others are parsed to the point where they would begin."""
    words = cli.expanded([PLACEHOLDERS.get(word, word) for word in words])
    monkeypatch.setenv("FORMAT_BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "measurements.csv").write_text("number,text\n1,a\n2,b\n")
    monkeypatch.chdir(tmp_path)
    # The suite that the guide to a new suite makes up.
    if words[:1] == ["run"] and "SUITE" not in words and "messaging" not in words:
        with pytest.raises(SystemExit) as ended:
            cli.main([*words, "--list"])
        assert ended.value.code == 0, capsys.readouterr().err
        variants = {line.split("/")[3].partition("[")[0] for line in capsys.readouterr().out.splitlines()}
        assert variants - {"raw-io"}, "the command measures nothing but raw I/O"
    elif words:
        program = click.Context(cli.cli, **cli.cli.context_settings)
        command = cli.cli.get_command(program, words[0])
        assert command is not None, f"no command is called {words[0]!r}"
        command.make_context(words[0], list(words[1:]), parent=program)


def test_the_pages_show_commands() -> None:
    readme = program_commands(PAGES["README.md"])
    for command in ("run", "report", "list", "doctor"):
        assert command in {words[0] for words in readme}, f"README shows no {command}"


def test_every_command_of_the_program_is_shown() -> None:
    shown = {word for page in PAGES.values() for words in program_commands(page) for word in words[:1]}
    assert set(cli.cli.commands) <= shown


@pytest.mark.parametrize("page", PAGES)
def test_every_make_target_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    told = (re.fullmatch(r"make ([a-z0-9-]+)(\s+#.*)?", line) for line in code_lines(PAGES[page]))
    shown = {match[1] for match in told if match}
    assert shown <= targets
    assert page != "README.md" or {"tabular", "test"} <= shown


def anchors(page: Path) -> set[str]:
    """The names under which the headings of a page can be linked."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    for link in named(PAGES[page], r"(?<!!)\[[^\]]*\]\(([^)]+)\)"):
        if "://" in link:
            continue
        place, _, anchor = link.partition("#")
        target = (PAGES[page].parent / place).resolve() if place else PAGES[page]
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


PICTURES = [(page, link) for page, path in PAGES.items() for link in named(path, r"!\[[^\]]+\]\(([^)]+)\)")]


@pytest.mark.parametrize(("page", "link"), PICTURES)
def test_every_picture_is_there(page: str, link: str) -> None:
    picture = PAGES[page].parent / link
    assert picture.exists(), f"{page} shows {link}, which does not exist"
    assert picture.read_bytes().startswith(b"\x89PNG\r\n")


def test_the_readme_shows_a_result() -> None:
    assert PICTURES
    assert "README.md" in {page for page, _ in PICTURES}


@pytest.mark.parametrize("page", PAGES)
def test_every_file_named_exists(page: str) -> None:
    """Code spans that look like a path of this project."""
    rooms = "adapters|bench_runner|benchmarks|data_generator|format_bench|formats|libraries|reports|tests|docs"
    for path in named(PAGES[page], rf"`((?:{rooms})/[\w./-]*)`"):
        # 'would be' paths of the guides to a new format and a new suite.
        if path not in ("formats/arrow_stream.py", "bench_runner/suites/messaging.py"):
            assert (ROOT / path).exists(), path


@cache
def defined_tests() -> dict[str, set[str]]:
    """The test functions of each test file, methods included, by its name below tests/ and by its bare name."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "tests").rglob("*.py"):
        tree = ast.parse(path.read_text())
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        for name in (path.name, path.relative_to(ROOT / "tests").as_posix()):
            found[name] = found.get(name, set()) | names
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_test_cited_exists(page: str) -> None:
    defined = defined_tests()
    cited = [link.split("::") for link in named(PAGES[page], r"`([\w/]+\.py::\w+)`")]
    assert [f"{file}::{test}" for file, test in cited if test not in defined.get(file, set())] == []
    assert page != "docs/method.md" or len(cited) > 50


def rules() -> dict[int, str]:
    """The text of each rule of docs/method.md, by its number."""
    parts = re.split(r"^## (\d+)\. ", METHOD.partition("\n# Where the code deviates")[0], flags=re.MULTILINE)
    return {int(number): text for number, text in zip(parts[1::2], parts[2::2], strict=True)}


def test_every_rule_has_its_heading_and_its_four_parts() -> None:
    assert list(rules()) == [*range(1, 19), 20]
    for number, text in rules().items():
        for part in ("**Problem.**", "**What we do", "**Tests.**", "**In the records.**"):
            assert part in text, f"rule {number} has no {part}"
        tests = text.partition("**Tests.**")[2].partition("**In the records.**")[0]
        assert "test_" in tests, f"rule {number} names no test"


SAID = {
    "settle.CONTROL_BYTES": (64 * 2**20, "write 64 MiB to a file"),
    "settle.UNWRITTEN_LIMIT_BYTES": (16 * 10**6, "at most 16 MB (`UNWRITTEN_LIMIT_BYTES`)"),
    "settle.WRITE_BACK_LIMIT_S": (30, "for 30 s at\n   most (`WRITE_BACK_LIMIT_S`)"),
    "settle.GAIN_FACTOR": (1.5, "over 1.5 times as long as the\nsecond (`GAIN_FACTOR`)"),
    "settle.TRIES": (3, "Three tries in all (`TRIES`)"),
    "settle.SLOW_FACTOR": (1.5, "over 1.5 times the run's best (`SLOW_FACTOR`)"),
    "settle.CALIBRATIONS": (5, "five controls before the first sample (`CALIBRATIONS`"),
    "rounds.DISK_SHARE": (0.9, "over 90 % of the free space (`DISK_SHARE`"),
    "operations.PRIMER_ROWS": (1_000, "first 1,000 rows of the same data set (`PRIMER_ROWS`)"),
    "prediction.MEMORY_SHARE": (0.8, "over 80 % of the memory that is available (`MEMORY_SHARE`"),
    "prediction.PILOT_ROWS": (20_000, "20,000 rows (`PILOT_ROWS`)"),
    "prediction.SMALL_ROWS": (50_000, "at most 50,000 rows (`SMALL_ROWS`)"),
    "schedule.LATE_SHARE": (1 / 8, "over an eighth of the budget (`LATE_SHARE`)"),
    "schedule.LATE_FACTOR": (4, "over four times as long as the middle one\n  (`LATE_FACTOR`)"),
    "prediction.DEAR_NS": (10 * 10**9, "predicted over 10 s (`DEAR_NS`)"),
    "prediction.VERY_DEAR_NS": (60 * 10**9, "1 over 60 s (`VERY_DEAR_NS`)"),
    "prediction.ROUNDS": (7, "- 7 rounds; 3 for chains"),
    "prediction.DEAR_ROUNDS": (3, "- 7 rounds; 3 for chains"),
    "prediction.VERY_DEAR_ROUNDS": (1, "1 over 60 s"),
    "chains.MEMORY_SHARE": (0.9, "passes 90 % of what was available"),
    "chains.WARM_RESIDENT_SHARE": (0.99, "at least\n  99 % of the stored copy must lie there"),
    "chains.WARM_DEVICE_SHARE": (0.01, "at most 1 % of the size from the device (`WARM_DEVICE_SHARE`)"),
    "chains.COLD_DEVICE_SHARE": (0.90, "at least 90 %\n  of the size from the device (`COLD_DEVICE_SHARE`)"),
    "chains.DEVICE_SLACK_BYTES": (256 * 1024, "256 KiB if that\n  is more (`DEVICE_SLACK_BYTES`)"),
    "chains.WARM_LONG_SHARE": (0.10, "up to 10 % of the size\n  (`WARM_LONG_SHARE`)"),
    "chains.WARM_DEVICE_BYTES_PER_S": (1_000_000, "or 1 MB for each second that it took (`WARM_DEVICE_BYTES_PER_S`)"),
    "chains.ONE_THREAD_LIMIT": (1.05, "over 1.05 times its wall time is refused (`ONE_THREAD_LIMIT`)"),
    "facts.ROUNDS_SHARE": (3 / 4, "get three\n  quarters of it (`ROUNDS_SHARE`)"),
    "schedule.EARLY_STOP_ROUNDS": (5, "From 5 rounds on (`EARLY_STOP_ROUNDS`)"),
    "schedule.EARLY_STOP_HALF_WIDTH": (0.05, "half-width under\n  5 % (`EARLY_STOP_HALF_WIDTH`)"),
    "schedule.EXTRA_ROUNDS": (2, "Up to 2 more rounds make up\n   for it (`EXTRA_ROUNDS`"),
    "schedule.FAILURES_ALLOWED": (2, "After 2 failed rounds (`FAILURES_ALLOWED`)"),
    "statistics.FEWEST_ROUNDS": (5, "Under 5 rounds (`FEWEST_ROUNDS`)"),
    "statistics.DRIFT_LIMIT": (0.10, "over 10 % from the first to the last round (`DRIFT_LIMIT`"),
    "statistics.POSITION_LIMIT": (0.05, "over 5 % slower or faster than earlier ones (`POSITION_LIMIT`)"),
    "statistics.MEMORY_DISAGREEMENT": (0.05, "differ by over 5 % (`MEMORY_DISAGREEMENT`)"),
    "statistics.PROBE_ERRORS": (3, "under 3 times that error (`PROBE_ERRORS`)"),
    "process_tree.LOOK_MS": (20, "and every 20 ms (`LOOK_MS`)"),
    "process_tree.INHERITED_MS": (100, "every 100 ms (`INHERITED_MS`)"),
    "launcher.POLL_MS": (2, "every 2 ms\n  (`POLL_MS`"),
    "jobs.COMPARE_GROUP_BYTES": (256 * 2**20, "at most about 256 MiB"),
    "targets.PAGE_BYTES": (4096, "each 4 KiB page"),
    "targets.RECORDS_PER_BATCH": (65_536, "65,536 rows at a time\n(`RECORDS_PER_BATCH`)"),
}
"""What the pages say of a constant of bench_runner, and its value: both must hold."""


@cache
def modules_of_the_runner() -> dict[str, str]:
    """Dotted names by the last part: 'bench_runner.run.rounds' of 'rounds'."""
    paths = [path.relative_to(ROOT).with_suffix("") for path in (ROOT / "bench_runner").rglob("*.py")]
    places = [path.parent if path.name == "__init__" else path for path in paths]
    return {place.name: ".".join(place.parts) for place in places}


@pytest.mark.parametrize("name", SAID)
def test_numbers_are_those_of_the_code(name: str) -> None:
    module, _, constant = name.partition(".")
    value, words = SAID[name]
    found = getattr(importlib.import_module(modules_of_the_runner()[module]), constant)
    assert found == value, f"say it anew: {words!r}"
    # Wherever a line of the page ends.
    assert " ".join(words.split()) in " ".join((METHOD + OPERATIONS).split())


@pytest.mark.parametrize("figure", FIGURES)
def test_operations_says_when_each_figure_is_read(figure: str) -> None:
    (row,) = re.findall(rf"^\| `{figure}` \|([^|]+)\|([^|]+)\|$", OPERATIONS, re.MULTILINE)
    assert all(cell.strip() for cell in row)


def test_operations_names_no_figure_that_does_not_exist() -> None:
    _, _, table = OPERATIONS.partition("## Every figure")
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(FIGURES)


def kinds_of_failure() -> Iterator[str]:
    """Every kind that bench_runner gives a failure: `Failure(kind=...)`, and the pairs that two functions return."""
    for path in (ROOT / "bench_runner").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Failure":
                for kind in [keyword.value for keyword in node.keywords if keyword.arg == "kind"]:
                    choices = [kind.body, kind.orelse] if isinstance(kind, ast.IfExp) else [kind]
                    yield from (choice.value for choice in choices if isinstance(choice, ast.Constant))
            if isinstance(node, ast.FunctionDef) and node.name in ("classify", "_failure"):
                pairs = [each.value for each in ast.walk(node) if isinstance(each, ast.Return)]
                firsts = [pair.elts[0] for pair in pairs if isinstance(pair, ast.Tuple)]
                yield from (first.value for first in firsts if isinstance(first, ast.Constant))


def test_operations_names_every_way_to_fail() -> None:
    kinds = set(kinds_of_failure())
    assert {"mismatch", "crash", "timeout", "memory", "cache", "disk", "threads", "skipped"} <= kinds
    _, _, table = OPERATIONS.partition("## When something goes wrong")
    assert kinds - set(re.findall(r"`([a-z ]+)`", table)) == set()


def test_the_readme_explains_every_column_of_the_terminal() -> None:
    pinned = (ROOT / "tests/reports/golden/terminal.txt").read_text()
    header = re.search(r"^ +save .*\n.*fidelity$", pinned, re.MULTILINE)
    assert header is not None
    section = PAGES["README.md"].read_text().partition("## How to read")[2].partition("\n## ")[0]
    explained = " ".join(re.findall(r"^\| (.+?) \|", section, re.MULTILINE))
    words = set(re.findall(r"[\w+/]+", explained))
    assert set(header[0].split()) - words - {"format", "ms", "MB"} == set()


def test_exit_codes_are_those_of_the_program() -> None:
    codes = (terminal.FAILED, terminal.WRONG_REQUEST, terminal.REGRESSION, terminal.INTERRUPTED)
    table = set(re.findall(r"^\| (\d+) \| ", PAGES["README.md"].read_text(), re.MULTILINE))
    assert table == {"0", *map(str, codes)}
