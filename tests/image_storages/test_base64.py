"""Base64 in a CSV file keeps the contract, with fields of any size."""

import base64
import csv
from pathlib import Path

import numpy as np
import pytest

from adapters.errors import AdapterError
from image_storages.base64 import Base64Csv
from tests.contracts.images import ImageStorageContract, colour, same, with_labels


class TestBase64(ImageStorageContract):
    variant = "base64[engine=csv]"


@pytest.fixture
def adapter() -> Base64Csv:
    adapter = Base64Csv()
    adapter.load_library()
    return adapter


def test_a_line_is_an_image(adapter: Base64Csv, tmp_path: Path) -> None:
    adapter.save(colour(), tmp_path / "t")
    lines = (tmp_path / "t").read_text().splitlines()
    assert lines[0] == "shape,label,pixels"
    shape, label, pixels = lines[2].split(",")
    assert (shape, label) == ("32x32x3", "-1")
    assert base64.b64decode(pixels) == colour().arrays[1].tobytes()


def test_fields_beyond_the_limit_of_csv_are_read_and_the_limit_stays(adapter: Base64Csv, tmp_path: Path) -> None:
    limit = 131_072
    others = csv.field_size_limit(limit)
    try:
        images = with_labels([np.full((500, 500, 3), 7, np.uint8)])
        adapter.save(images, tmp_path / "t")
        assert (tmp_path / "t").stat().st_size > limit
        same(images, adapter.read(tmp_path / "t"), None)
        assert csv.field_size_limit() == limit
    finally:
        csv.field_size_limit(others)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("2x2,5,AAAA", "cannot reshape"),
        ("2x2,5,AAAAAA=", "padding"),
        ("2x2,5,AAA!AA==", "Only base64 data"),
        ("2x2,five,AAAAAA==", "invalid literal"),
        ("2x2,5", "not enough values"),
        ("axb,5,AAAAAA==", "invalid literal"),
    ],
)
def test_a_line_that_is_not_an_image_is_named(line: str, reason: str, adapter: Base64Csv, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(f"shape,label,pixels\n2x2,5,AAAAAA==\n{line}\n")
    with pytest.raises(AdapterError, match=rf"line 3 .*{reason}"):
        adapter.read(tmp_path / "t")


def test_a_file_of_something_else_is_refused(adapter: Base64Csv, tmp_path: Path) -> None:
    (tmp_path / "t").write_text("a,b\n1,2\n")
    with pytest.raises(AdapterError, match="the header is not shape,label,pixels"):
        adapter.read(tmp_path / "t")
    with pytest.raises(AdapterError, match="begins with 'a,b'"):
        adapter.stored(tmp_path / "t")
