"""Files that earlier versions wrote are read natively, with the values that were written."""

import io

import pyarrow as pa
import pytest

from libraries import f3
from libraries.f3.decoders import native
from libraries.f3.tests.arrays import assert_same
from libraries.f3.tests.written_files import stored_files

FILES = {name: (content, table) for name, content, table in stored_files()}


def _assert_equal(found: pa.Table, expected: pa.Table) -> None:
    assert found.schema.equals(expected.schema, check_metadata=True)
    assert found.num_rows == expected.num_rows
    for name in expected.column_names:
        one, other = (pa.concat_arrays(table[name].chunks) for table in (found, expected))
        if pa.types.is_nested(one.type):
            assert one.equals(other), name
        else:
            assert_same(one, other)


@pytest.mark.skipif(native.library() is None, reason="the kernels are not built: python -m libraries.build")
@pytest.mark.parametrize("name", FILES)
def test_a_stored_file_is_read_natively(name):
    content, expected = FILES[name]
    with f3.open(io.BytesIO(content), verify="file") as file:
        _assert_equal(file.read(), expected)
        assert {module.how for module in file.modules} <= {"native"}


@pytest.mark.parametrize("name", FILES)
def test_a_stored_file_is_read_by_its_own_module(name):
    content, expected = FILES[name]
    with f3.open(io.BytesIO(content), verify="file", prefer="wasm") as file:
        _assert_equal(file.read(), expected)
        assert {module.how for module in file.modules} <= {"wasm"}
