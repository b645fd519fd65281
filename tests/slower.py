"""Which tests are too slow to be run while one works: `python -m tests.slower JUNIT.xml` writes them to slower.txt.

The file has a line for each: a folder, a file, or a test of a file without its parameters. `make test-times` runs the
whole suite for it. Tests that are newer than the file count as quick.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_suffix(".txt")
MOST_S = 0.03
"""So long a quick test may take, the mean over its parameters: 7,000 tests are run in a minute then."""
ADAPTERS = ("tests/document_stores", "tests/formats", "tests/image_storages")
"""Forty adapters under the same contract: who works at one runs its file, and the contract's own tests are quick."""


@cache
def slower() -> frozenset[str]:
    """The lines of the file."""
    return frozenset(LIST.read_text().split())


def found_slower(report: Path) -> list[str]:
    """The lines for what a whole run took, as pytest's JUnit file has it."""
    seconds: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        file, *classes = _places(case.attrib["classname"])
        name = "::".join((*classes, case.attrib["name"].split("[")[0]))
        seconds[file][name].append(float(case.attrib["time"]))
    lines = [*ADAPTERS]
    for file, tests in seconds.items():
        slow = [name for name, took in tests.items() if sum(took) / len(took) > MOST_S]
        if file.startswith(ADAPTERS):
            continue
        # Importing a file for a few of its tests is not worth it.
        lines += [file] if 2 * len(slow) > len(tests) else [f"{file}::{name}" for name in slow]
    return sorted(lines)


def _places(classname: str) -> list[str]:
    """The file of a test, and the classes in it."""
    parts = classname.split(".")
    for end in range(len(parts), 0, -1):
        if ROOT.joinpath(*parts[:end]).with_suffix(".py").is_file():
            return ["/".join(parts[:end]) + ".py", *parts[end:]]
    raise SystemExit(f"{classname}: no file of that name; time the tests that there are")


if __name__ == "__main__":
    LIST.write_text("\n".join(found_slower(Path(sys.argv[1]))) + "\n")
