"""List the tests that are too slow to run during development: `python -m tests.slower JUNIT.xml` writes slower.txt.

Each line is a folder, a file, or a test without its parameters. `make test-times` runs the whole suite and writes the
list. Tests that are newer than the list count as quick.
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
"""Maximum time of a quick test, the mean over its parameters. 7,000 such tests run in a minute."""
ADAPTERS = ("tests/document_stores", "tests/formats", "tests/image_storages")
"""Always left out: forty adapters under the same contract. Run the file of the adapter that you change instead."""


@cache
def slower() -> frozenset[str]:
    """Return the lines of slower.txt."""
    return frozenset(LIST.read_text().split())


def found_slower(report: Path) -> list[str]:
    """Return the lines for the times of a whole run, which are in pytest's JUnit file."""
    seconds: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if not case.attrib["classname"]:
            # A file that was skipped as a whole, because its library is missing.
            continue
        file, *classes = _places(case.attrib["classname"])
        name = "::".join((*classes, case.attrib["name"].split("[")[0]))
        seconds[file][name].append(float(case.attrib["time"]))
    lines = [*ADAPTERS]
    for file, tests in seconds.items():
        slow = [name for name, took in tests.items() if sum(took) / len(took) > MOST_S]
        if file.startswith(ADAPTERS):
            continue
        # If most tests of a file are slow, importing it for the others is not worth the time.
        lines += [file] if 2 * len(slow) > len(tests) else [f"{file}::{name}" for name in slow]
    return sorted(lines)


def _places(classname: str) -> list[str]:
    """Return the file of a test, followed by its classes."""
    parts = classname.split(".")
    for end in range(len(parts), 0, -1):
        if ROOT.joinpath(*parts[:end]).with_suffix(".py").is_file():
            return ["/".join(parts[:end]) + ".py", *parts[end:]]
    raise SystemExit(f"{classname}: no such file. Run the tests of this checkout again.")


if __name__ == "__main__":
    LIST.write_text("\n".join(found_slower(Path(sys.argv[1]))) + "\n")
