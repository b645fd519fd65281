"""A Git LFS pointer is named as such, whatever kind of file was expected."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import pytest

from data_generator.imported.images import image_import, image_input
from data_generator.imported.import_process import Progress, opened
from data_generator.imported.refusal import Refused
from tests.data_generator.imported.tables.table_files import refusal

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d" * 32 + b"\nsize 12345\n"
SAID = "is a Git LFS pointer, not the file itself"


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl", "a.arrow", "a.xlsx", "parts/a.parquet"])
def test_a_table_that_is_a_pointer_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(POINTER)
    given = path.parent if "/" in name else path
    assert refusal(given) == f"{path}: {SAID}\n  Run: git lfs pull"


def test_an_image_that_is_a_pointer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(POINTER)
    found = image_input.find(tmp_path)
    task = {**asdict(found), "path": str(found.path), "rows": None, "batch_bytes": 1 << 20}
    page = os.memfd_create("progress")
    os.ftruncate(page, 4096)
    with pytest.raises(Refused, match=SAID) as caught:
        list(image_import.frames(task, Progress(page)))
    os.close(page)
    assert caught.value.step == "Run: git lfs pull"


def test_other_files_are_opened_at_their_beginning(tmp_path: Path) -> None:
    for content in (b"", b"version", b"version,1\n", POINTER.replace(b"git-lfs", b"git")):
        (tmp_path / "a").write_bytes(content)
        with opened(str(tmp_path / "a")) as stream:
            assert os.lseek(stream.fileno(), 0, os.SEEK_CUR) == 0
            assert stream.read() == content
