"""What the pages take from the code is what the code says now."""

import pytest

from tests.constants_table import Constant, constants, constants_of, in_peoples_units
from tests.generated_docs import COMMAND, PAGES, ROOT, renewed


@pytest.mark.parametrize("name", PAGES)
def test_what_is_generated_is_up_to_date(name: str) -> None:
    page = (ROOT / name).read_text()
    assert "<!-- generated: " in page
    if page != renewed(page):
        pytest.fail(f"{name} says otherwise than the code; renew it: {COMMAND}", pytrace=False)


def test_constants_come_with_what_is_said_below_them() -> None:
    text = '''
import mmap
MOST_BYTES = 4 * 10**6
"""What is larger
is refused: nobody needs it. Truly."""
LOW, HIGH = 0.5, 2
"""From here to there."""
PLACE = mmap.PAGESIZE
NAME = "no number"
IS_SO = True
_OWN = 1
'''
    assert list(constants_of("a.py", text)) == [
        Constant("a.py", {"MOST_BYTES": 4_000_000}, "What is larger is refused"),
        Constant("a.py", {"LOW": 0.5, "HIGH": 2}, "From here to there"),
    ]


def test_a_constant_of_which_nothing_is_said_is_named() -> None:
    with pytest.raises(ValueError, match=r"^a\.py: TRIES has no docstring"):
        list(constants_of("a.py", "TRIES = 3\nOTHER = None"))


def test_constants_are_found_in_the_code() -> None:
    found = {(constant.place, name) for constant in constants() for name in constant.numbers}
    assert ("bench_runner/worker/settle.py", "CONTROL_BYTES") in found
    assert ("bench_runner/run/prediction.py", "VERY_DEAR_ROUNDS") in found


@pytest.mark.parametrize(
    ("name", "number", "text"),
    [
        ("CONTROL_BYTES", 64 * 2**20, "64 MiB"),
        ("UNWRITTEN_LIMIT_BYTES", 16 * 10**6, "16 MB"),
        ("WARM_DEVICE_BYTES_PER_S", 10**6, "1 MB a second"),
        ("DEAR_NS", 10 * 10**9, "10 s"),
        ("TIMEOUT_S", 3600, "3,600 s"),
        ("POLL_MS", 2, "2 ms"),
        ("EACH_LOWER_DB", 10.0, "10 dB"),
        ("SLOW_FACTOR", 1.5, "1.5 times"),
        ("PILOT_ROWS", 20_000, "20,000 rows"),
        ("VERY_DEAR_ROUNDS", 1, "1 round"),
        ("LATE_SHARE", 1 / 8, "12.5 %"),
        ("ONE_THREAD_LIMIT", 1.05, "1.05"),
        ("BUSY_CORES", 0.1, "0.1 cores"),
    ],
)
def test_the_end_of_a_name_is_its_unit(name: str, number: float, text: str) -> None:
    assert in_peoples_units(name, number) == text
