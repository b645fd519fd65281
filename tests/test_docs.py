"""Check README and all pages against the code: commands parse, links and names exist, every rule has a test.

Sentences must be short; their content is not checked. tests/test_generated_docs.py checks the generated tables.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from format_bench import cli, terminal

ROOT = Path(__file__).resolve().parents[1]
FILES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("libraries/*/docs/*.md")))
PAGES = {path.relative_to(ROOT).as_posix(): path for path in FILES}
METHOD = (ROOT / "docs/method.md").read_text()
RESULTS = (ROOT / "docs/results.md").read_text()

MOST_WORDS = 40
"""Maximum number of words in a sentence."""
PROGRAM = re.compile(r"^(?:\.venv/bin/)?(?:python main\.py|format-bench)\b(.*)$")
PLACEHOLDERS = {"/mnt/disk": "/tmp"}
"""Example folders, which readers replace by their own."""


def named(page: Path, pattern: str) -> list[str]:
    """Return the distinct matches of the pattern's group in a page."""
    return list(dict.fromkeys(re.findall(pattern, page.read_text(), re.MULTILINE)))


def code_lines(page: Path) -> Iterator[str]:
    """Yield the lines of fenced blocks and the code spans of a page."""
    text = page.read_text()
    for block in re.findall(r"^ *```\w*\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL):
        yield from map(str.strip, block.splitlines())
    outside = re.sub(r"^ *```\w*\n.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    yield from (span.replace("\n", " ") for span in re.findall(r"`([^`]+)`", outside))


def program_commands(page: Path) -> list[list[str]]:
    """Return the words after `python main.py` or `format-bench` of each command on a page."""
    found = []
    for line in code_lines(page):
        match = PROGRAM.match(line)
        if match and "..." not in line:
            found.append(shlex.split(match[1], comments=True))
    return found


PAGES_BY_COMMAND = {tuple(words): name for name, page in PAGES.items() for words in program_commands(page)}
COMMANDS = [pytest.param(list(words), id=f"{name}: {' '.join(words)}") for words, name in PAGES_BY_COMMAND.items()]


@pytest.fixture(scope="module")
def users_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that the commands name; they are imported only once."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "measurements.csv").write_text("number,text,zip\n1,a,01234\n2,b,05678\n")
    (folder / "events.jsonl").write_text('{"id": 1, "kind": "commit"}\n{"id": 2}\n')
    return folder


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_shown_parses(
    words: list[str], users_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Plan each `run` with --list; parse other commands without executing them."""
    words = cli.expanded([PLACEHOLDERS.get(word, word) for word in words])
    monkeypatch.setenv("FORMAT_BENCH_CACHE", str(users_folder / "cache"))
    monkeypatch.chdir(users_folder)
    # `messaging` is the example suite of the guide to a new suite.
    if words[:1] == ["run"] and "SUITE" not in words and "messaging" not in words:
        with pytest.raises(SystemExit) as ended:
            cli.main([*words, "--list"])
        assert ended.value.code == 0, capsys.readouterr().err
        variants = {line.split("/")[3].partition("[")[0] for line in capsys.readouterr().out.splitlines()}
        assert variants - {"raw-io"}, "the command measures nothing but raw I/O"
    elif words:
        program = click.Context(cli.cli, **cli.cli.context_settings)
        command = cli.cli.get_command(program, words[0])
        assert command is not None, f"unknown command {words[0]!r}"
        command.make_context(words[0], list(words[1:]), parent=program)


def test_the_readme_shows_the_main_commands() -> None:
    readme = program_commands(PAGES["README.md"])
    for command in ("run", "report", "list", "doctor"):
        assert command in {words[0] for words in readme if words}, f"README shows no {command}"


def test_every_command_of_the_program_is_shown() -> None:
    shown = {word for page in PAGES.values() for words in program_commands(page) for word in words[:1]}
    assert set(cli.cli.commands) <= shown


@pytest.mark.parametrize("page", PAGES)
def test_every_make_target_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    matches = (re.fullmatch(r"make ([a-z0-9-]+)(\s+#.*)?", line) for line in code_lines(PAGES[page]))
    shown = {match[1] for match in matches if match}
    assert shown <= targets
    assert page != "README.md" or {"tabular", "test"} <= shown


def test_every_described_make_target_is_shown() -> None:
    targets = re.findall(r"^([a-z0-9-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    lines = [line for page in ("README.md", "docs/architecture.md") for line in code_lines(PAGES[page])]
    shown = {word for line in lines if line.startswith("make ") for word in line.partition("#")[0].split()[1:]}
    assert targets
    assert set(targets) - shown == set()


def test_the_glossary_defines_each_word_once() -> None:
    _, _, glossary = PAGES["docs/reading-figures.md"].read_text().partition("## What do the words mean?")
    cells = re.findall(r"^\| ([^|]+) \|", glossary, re.MULTILINE)
    words = [word for cell in cells for word in cell.split(", ")]
    assert {"variant", "tied"} <= set(words)
    assert [word for word in set(words) if words.count(word) > 1] == []


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_has_an_existing_target(page: str) -> None:
    for link in named(PAGES[page], r"(?<!!)\[[^\]]*\]\(([^)]+)\)"):
        if "://" in link:
            continue
        place, _, anchor = link.partition("#")
        target = (PAGES[page].parent / place).resolve() if place else PAGES[page]
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


PICTURES = [(page, link) for page, path in PAGES.items() for link in named(path, r"!\[[^\]]+\]\(([^)]+)\)")]


@pytest.mark.parametrize(("page", "link"), PICTURES)
def test_every_picture_exists(page: str, link: str) -> None:
    picture = PAGES[page].parent / link
    assert picture.exists(), f"{page} shows {link}, which does not exist"
    assert picture.read_bytes().startswith(b"\x89PNG\r\n")


def test_the_readme_shows_a_result() -> None:
    assert PICTURES
    assert "README.md" in {page for page, _ in PICTURES}


@pytest.mark.parametrize("page", PAGES)
def test_every_file_named_exists(page: str) -> None:
    """Check code spans that look like paths of this project."""
    packages = (
        "adapters|bench_runner|benchmarks|data_generator|document_stores|format_bench|formats|image_storages|libraries|"
        "reports|tests|docs"
    )
    for path in named(PAGES[page], rf"`((?:{packages})/[\w./-]*)`"):
        assert (ROOT / path).exists(), path


@cache
def defined_tests() -> dict[str, set[str]]:
    """Return the functions and methods of each test file, by its path below tests/ and by its bare name."""
    found: dict[str, set[str]] = {}
    for path in (*ROOT.glob("tests/**/*.py"), *ROOT.glob("libraries/*/tests/**/*.py")):
        names = set(re.findall(r"^ *def (\w+)\(", path.read_text(), re.MULTILINE))
        for name in (path.name, path.relative_to(ROOT).as_posix().partition("tests/")[2]):
            found[name] = found.get(name, set()) | names
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_test_cited_exists(page: str) -> None:
    defined = defined_tests()
    cited = [link.split("::") for link in named(PAGES[page], r"`([\w/]+\.py::\w+)`")]
    assert [f"{file}::{test}" for file, test in cited if test not in defined.get(file, set())] == []


def rules(page: str) -> dict[int, str]:
    """Return the text of each rule on a page, by its number."""
    parts = re.split(r"^## (\d+)\. ", page, flags=re.MULTILINE)
    # Text after the last rule has a separate heading.
    texts = (re.split(r"^# ", text, flags=re.MULTILINE)[0] for text in parts[2::2])
    return dict(zip(map(int, parts[1::2]), texts, strict=True))


def test_every_rule_states_the_problem_the_method_and_what_readers_see() -> None:
    # Code, tests and pages cite rules by number, so no number may disappear.
    assert {*range(1, 19), 20} <= set(rules(METHOD))
    assert list(rules(METHOD)) == sorted(rules(METHOD))
    for number, text in rules(METHOD).items():
        for part in ("**The problem.**", "**What we do.**", "**What you see.**"):
            assert part in text, f"rule {number} has no {part}"


def test_rules_and_rule_marks_of_tests_agree() -> None:
    marks = re.compile(r"^ *@pytest\.mark\.rule\((.+)\)$", re.MULTILINE)
    marked = {number for path in (ROOT / "tests").rglob("*.py") for number in marks.findall(path.read_text())}
    assert {int(number) for numbers in marked for number in numbers.split(",")} == set(rules(METHOD))


def sentences(page: str) -> Iterator[str]:
    """Yield the sentences of a page without code. Items of lists and cells of tables are separate sentences, and
    semicolons divide a cell."""
    prose = re.sub(r"^ *```.*?^ *```$|<!--.*?-->", "", page, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]+`", "code", prose))
    for block in re.split(r"\n\s*\n|^ *(?:[-*]|\d+\.) |^#+ |^(?=\|)", prose, flags=re.MULTILINE):
        row = block.startswith("|")
        yield from re.split(r"\||;\s|<br>|(?<=[.?!])\s" if row else r"(?<=[.?!])[\"')*]*\s", block)


@pytest.mark.parametrize("page", PAGES)
def test_sentences_are_short(page: str) -> None:
    long = [" ".join(sentence.split()) for sentence in sentences(PAGES[page].read_text())]
    assert [f"{len(each.split())} words: {each}" for each in long if len(each.split()) > MOST_WORDS] == []


def test_what_counts_as_a_sentence() -> None:
    page = """# A heading

One two. Three [four](five.md), `six and more`:

- seven
  eight? Nine
1. ten

| eleven | twelve; thirteen |
| --- | --- |

```
not a word
```
"""
    found = [" ".join(sentence.split()) for sentence in sentences(page)]
    assert [each for each in found if re.search(r"\w", each)] == [
        *("A heading", "One two.", "Three four, code:", "seven eight?", "Nine", "ten"),
        *("eleven", "twelve", "thirteen"),
    ]


def kinds_of_failure() -> Iterator[str]:
    """Yield every kind of failure in bench_runner: in `Failure(kind=...)`, and in pairs that two functions return."""
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


def test_results_explains_every_kind_of_failure() -> None:
    kinds = set(kinds_of_failure())
    assert {"mismatch", "crash", "timeout", "memory", "cache", "disk", "threads", "skipped"} <= kinds
    _, _, table = RESULTS.partition("## When something goes wrong")
    explained = re.findall(r"^\| ([^|]+) \|", table.partition("\n## ")[0], re.MULTILINE)
    assert kinds - set(re.findall(r"`([a-z ]+)`", " ".join(explained))) == set()


def test_every_column_of_the_terminal_is_explained() -> None:
    pinned = (ROOT / "tests/reports/golden/terminal.txt").read_text()
    header = re.search(r"^ +save .*\n.*fidelity$", pinned, re.MULTILINE)
    assert header is not None
    section = PAGES["docs/reading-figures.md"].read_text().partition("\n## ")[0]
    explained = " ".join(re.findall(r"^\| (.+?) \|", section, re.MULTILINE))
    words = set(re.findall(r"[\w+/]+", explained))
    assert set(header[0].split()) - words - {"format", "ms", "MB"} == set()


def test_documented_exit_codes_are_those_of_the_program() -> None:
    codes = (terminal.FAILED, terminal.WRONG_REQUEST, terminal.REGRESSION, terminal.INTERRUPTED)
    table = set(re.findall(r"^\| (\d+) \| ", PAGES["docs/tutorial.md"].read_text(), re.MULTILINE))
    assert table == {"0", *map(str, codes)}
