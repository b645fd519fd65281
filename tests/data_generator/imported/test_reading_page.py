"""The page that states how files are read names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs/reading-your-data.md"


def test_each_test_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"`(test_[a-z0-9_]+)`", PAGE.read_text()))
    written = "".join(file.read_text() for file in Path(__file__).parent.rglob("test_*.py"))
    assert len(named) > 40
    assert {name for name in named if f"def {name}(" not in written} == set()


def test_each_row_has_an_outcome_and_a_test() -> None:
    rows = [
        line
        for line in PAGE.read_text().splitlines()
        if line.startswith("| ") and line.count("|") - line.count("\\|") == 4
    ]
    sections = PAGE.read_text().partition("## What becomes of what")[2]
    checked = [row for row in rows if row in sections and not row.startswith(("| in the file", "| ---"))]
    for row in checked:
        _, outcome, test = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:4]]
        assert outcome, row
        assert "test_" in test or test in ("the same", "as above"), row
