"""Check that every planted fault can be applied to the current sources. `make planted` checks that tests find them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planted.__main__ import Copy
from tests.planted.faults import ROOT, Fault, faults

LEAST = 60


def test_there_are_enough_faults_with_unique_names() -> None:
    names = [fault.name for fault in faults()]
    assert len(set(names)) == len(names) >= LEAST


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_a_fault_can_be_planted(fault: Fault) -> None:
    text = (ROOT / fault.file).read_text()
    assert fault.planted(text) != text
    if fault.file.endswith(".py"):
        compile(fault.planted(text), fault.file, "exec")
    assert all((ROOT / test.split("::")[0]).is_file() for test in fault.tests)
    assert fault.tests


@pytest.mark.slow
def test_a_fault_is_found_or_missed_and_the_copy_is_restored(tmp_path: Path) -> None:
    copy, file = Copy(tmp_path), "adapters/spelling.py"
    tests = ("tests/planted/test_faults.py::test_there_are_enough_faults_with_unique_names",)
    broken = Fault("", "tests/planted/test_faults.py", "\nLEAST = 60", "\nLEAST = 60_000", tests)
    harmless = Fault("", file, "import re\n", "import re  # a remark\n", tests)
    assert [copy.tried(fault) for fault in (harmless, broken, harmless)] == ["MISSED", "found", "MISSED"]
