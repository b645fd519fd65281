"""`make test-quick` leaves out the tests that were slow when last timed, and the list of them is up to date."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import slower

TIMED = """<testsuites><testsuite>
<testcase classname="tests.test_slower" name="test_one" time="0.001"/>
<testcase classname="tests.test_slower" name="test_two[a::b-1]" time="0.001"/>
<testcase classname="tests.test_slower" name="test_two[2]" time="0.099"/>
<testcase classname="tests.test_rooms.TestAll" name="test_all[x]" time="2"/>
<testcase classname="tests.test_rooms.TestAll" name="test_some" time="1"/>
<testcase classname="tests.formats.test_csv.TestCsv" name="test_it" time="0.001"/>
<testcase classname="" name="tests.formats.test_orc" time="0.000"><skipped message="collection skipped"/></testcase>
</testsuite></testsuites>"""


def test_slow_tests_are_listed_one_by_one_or_as_a_file_if_most_of_it_is_slow(tmp_path: Path) -> None:
    report = tmp_path / "times.xml"
    report.write_text(TIMED)
    assert set(slower.found_slower(report)) - set(slower.ADAPTERS) == {
        "tests/test_slower.py::test_two",
        "tests/test_rooms.py",
    }
    report.write_text(TIMED.replace("test_slower", "test_gone"))
    with pytest.raises(SystemExit, match="test_gone"):
        slower.found_slower(report)


def test_every_file_on_the_list_exists() -> None:
    gone = [line for line in slower.slower() if not (slower.ROOT / line.split("::")[0]).exists()]
    assert gone == [], "run `make test-times` to renew the list"


@pytest.mark.slow
def test_quick_leaves_out_exactly_the_tests_on_the_list() -> None:
    folder = "tests/bench_runner/machine"

    def collected(*words: str) -> set[str]:
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "addopts=", *words, folder]
        done = subprocess.run(command, cwd=slower.ROOT, capture_output=True, text=True, timeout=100)
        return {line.split("[")[0] for line in done.stdout.splitlines() if "::" in line}

    everything = collected()
    left = {name for name in everything if not {name, name.split("::")[0]} & slower.slower()}
    assert len({name.split("::")[0] for name in everything}) > len({name.split("::")[0] for name in left}) > 1
    assert collected("--quick") == left
