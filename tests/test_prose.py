"""Texts avoid habits that make them hard to read for newcomers: comments, docstrings, messages, pages and help.

Each pattern is a phrase that well-kept projects (pytest, click, fsspec, hypothesis) hardly use. A hit is not always
wrong, so each folder has a budget.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

ROOT = Path(__file__).parents[1]
HABITS: Mapping[str, str] = {
    "a program is a person": r"\b(?:[Ww]hoever|[Nn]obody|(?:^|[.:;] )Who)\b",
    "of its own": r"\bof (?:its|their|our|one's|his) own\b",
    "told": r"\b(?:is|are|be|was|were) told\b|\btells? (?:of|by|that|what|how|whether)\b",
    "stands or lies for 'is'": (
        r"\b(?:stands?|lies?|lay) (?:in|at|on|for|beside|behind|below|above|there|here|between|within|under)\b"
    ),
    "beside": r"\bbesides?\b",
    "so many": r"\bso (?:many|much|long|few)\b(?! as| that)",
    "is no X": r"(?<!\b[Tt]here )\b(?:is|are|was|were) no (?!longer|more|matter|other|such)\w+",
    "'Of' in front": r"(?:^|[.;:] )Of (?:a|an|the|all|each|whom|those|what|such|its|their|one|two)\b",
    "knows no": r"\b(?:knows?|know) (?:no|nothing|neither|only|one)\b|\bmust not know\b",
    "likewise": r"\b[Ll]ikewise\b|\b[Tt]hereof\b|\b[Tt]herein\b|\bwhereof\b",
    "is to be done": r"\b(?:is|are) to be \w+ed\b",
    "dear, hungry": r"\b(?:dear|dearer|hungry|hungrier|in its stead)\b",
}
PATTERNS = {name: re.compile(text, re.MULTILINE) for name, text in HABITS.items()}
ANY = re.compile("|".join(HABITS.values()), re.MULTILINE)
COMMENT = re.compile(r"(?:^|\s)# (.+)")
"""A '#' within a string counts as well: finding strings first takes ten times as long."""
MOST = 1.0
"""Hits per 1,000 words of a folder."""
MOST_AT_FIRST_SIGHT = 0.5
"""The same of what a new user reads first: README, and the help of all commands."""
LEAST_WORDS = 300
"""Folders with fewer words count with the folder around them alone."""
FEWEST_WORDS = 4
"""Strings with fewer words in Python files are not prose."""


@dataclass(frozen=True)
class Hit:
    """A phrase of a file that matches a pattern."""

    file: str
    line: int
    habit: str
    phrase: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.habit}: ...{self.phrase}..."


def python_texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of comments, docstrings and other strings of several words."""
    for number, line in enumerate(source.splitlines(), 1):
        if comment := COMMENT.search(line):
            yield number, comment[1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value.split()) >= FEWEST_WORDS:
            yield node.lineno, node.value


def markdown_texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines outside code and generated tables."""

    def emptied(match: re.Match[str]) -> str:
        return "\n" * match.group().count("\n")

    text = re.sub(r"^```.*?^```", emptied, source, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!-- generated.*?<!-- end[^>]*-->", emptied, text, flags=re.DOTALL)
    return ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())


def hits_of(name: str, line: int, text: str) -> Iterator[Hit]:
    """Yield the habits in a text that begins at `line` of a file."""
    for habit, pattern in PATTERNS.items() if ANY.search(text) else ():
        for match in pattern.finditer(text):
            phrase = text[max(match.start() - 40, 0) : match.end() + 40].replace("\n", " ")
            yield Hit(name, line + text.count("\n", 0, match.start()), habit, phrase)


def tracked() -> list[str]:
    """The project's Python files and pages, but for this one."""
    listed = subprocess.run(["git", "ls-files", "*.py", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if name != Path(__file__).relative_to(ROOT).as_posix()]


def over_budget(words: int, hits: list[Hit], most: float) -> bool:
    """Whether there are more hits than `most` per 1,000 words, of which one is always allowed."""
    return len(hits) > max(most * words / 1_000, 1)


@pytest.mark.slow
def test_every_folder_keeps_its_budget() -> None:
    words: dict[str, int] = defaultdict(int)
    hits: dict[str, list[Hit]] = defaultdict(list)
    for name in tracked():
        source = (ROOT / name).read_text()
        for line, text in (python_texts if name.endswith(".py") else markdown_texts)(source):
            found = list(hits_of(name, line, text))
            for folder in (parent.as_posix() for parent in Path(name).parents):
                words[folder] += len(text.split())
                hits[folder] += found
    over = {
        folder for folder in words if words[folder] >= LEAST_WORDS and over_budget(words[folder], hits[folder], MOST)
    }
    told = {hit: None for folder in over for hit in hits[folder]}
    assert not over, "\n".join([f"over {MOST} per 1,000 words: {', '.join(over)}", *map(str, told)])


def test_the_readme_keeps_its_budget() -> None:
    texts = list(markdown_texts((ROOT / "README.md").read_text()))
    hits = [hit for line, text in texts for hit in hits_of("README.md", line, text)]
    assert not over_budget(sum(len(text.split()) for _, text in texts), hits, MOST_AT_FIRST_SIGHT), "\n".join(
        map(str, hits)
    )


def test_the_help_of_all_commands_keeps_its_budget() -> None:
    from format_bench.cli import cli

    texts = list(helps(cli, cli.make_context("format-bench", [], resilient_parsing=True)))
    hits = [hit for name, text in texts for hit in hits_of(f"{name} --help", 1, " ".join(text.split()))]
    assert not over_budget(sum(len(text.split()) for _, text in texts), hits, MOST_AT_FIRST_SIGHT), "\n".join(
        map(str, hits)
    )


def helps(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the name and the help of a command and of those below it."""
    yield context.command_path, command.get_help(context)
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        below = command.get_command(context, name)
        assert below is not None
        # click keeps the help option of a command's first context, so each context must have the command's settings.
        yield from helps(below, below.make_context(name, [], parent=context, resilient_parsing=True))


@pytest.mark.parametrize(
    ("source", "line", "habit"),
    [
        ("# Whoever asks gets an answer.\n", 1, "a program is a person"),
        ('"""One.\n\nIt keeps a copy of its own."""\n', 3, "of its own"),
        ('raise ValueError("so many rows are in it")\n', 1, "so many"),
    ],
)
def test_a_planted_habit_is_found_with_its_line(source: str, line: int, habit: str) -> None:
    (found,) = (hit for at, text in python_texts(source) for hit in hits_of("planted.py", at, text))
    assert (found.line, found.habit) == (line, habit)


def test_code_and_generated_tables_of_pages_are_not_prose() -> None:
    page = "Text.\n```\nwhoever\n```\n<!-- generated: x -->\nnobody\n<!-- end -->\nlikewise\n"
    assert [(line, text) for line, text in markdown_texts(page)] == [(1, "Text."), (8, "likewise")]
