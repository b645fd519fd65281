"""Rows that declare more than they have raise an error, use little memory and do not end the process."""

import subprocess
import sys
from pathlib import Path

import pytest

from libraries.document_store import kernels

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(not kernels.NATIVE, reason="C is not built")

CLAIMING = """
import re, struct
from libraries.document_store import kernels

row = bytearray(1 << 20)
for place in range(0, 64 * 6, 6):
    row[place : place + 6] = struct.pack(">BIB", 0xDF, (len(row) - place - 5) // 2 - 1, 0xA0)
most_kib = lambda: int(re.search("VmHWM:\\s*([0-9]+)", open("/proc/self/status").read())[1])
before_kib = most_kib()
assert kernels.first_faulty_row([bytes(row)]) == 0
assert most_kib() - before_kib < 64 * 1024, most_kib() - before_kib
"""

NESTED_NAMES = """
from libraries.document_store import kernels
from libraries.document_store.schema import Schema
from libraries.document_store.shredding import native
from libraries.document_store.values import ValueKind

deep = b"\\x81" * 3_000_000
assert kernels.keys_of([b"\\x82\\xa1x" + deep], b"id") is None
assert native.shred([b"\\x82\\xa2id\\x01\\xa1x" + deep], Schema.new("id", ValueKind.INTEGER, limit=1)) == 0
"""


@pytest.mark.parametrize("program", [CLAIMING, NESTED_NAMES])
def test_a_row_that_claims_too_much_is_refused(program):
    """In a separate process, where memory is limited and a crash is noticed."""
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
