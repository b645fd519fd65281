"""A few broken rows, lines, schemas and chunks; `make fuzz-documents` breaks many, under the address sanitiser."""

import random

import msgspec
import pytest

from libraries.document_store import kernels
from libraries.document_store.tests import fuzzing

pytestmark = pytest.mark.skipif(not kernels.NATIVE, reason="the kernels are not built: python -m libraries.build")


@pytest.mark.parametrize("kind", fuzzing.KINDS)
def test_what_is_broken_is_refused_or_read_as_python_reads_it(kind):
    dice = random.Random(11)
    outcomes = {kind(dice) for _ in range(150)}
    # Mutations that are all refused, or all accepted, would test nothing.
    assert {"refused", "taken"} <= outcomes


def test_a_kernel_that_believes_too_much_would_be_found(monkeypatch):
    """A planted fault: C accepts every row."""
    monkeypatch.setattr(kernels, "first_faulty_row", lambda rows: None)
    with pytest.raises((AssertionError, msgspec.DecodeError)):
        list(fuzzing.counted(150, seed=1))
