"""SQLite keeps the contract; its file is a table that any SQLite reads."""

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from adapters.errors import AdapterError
from image_storages.sqlite import SqliteImages
from tests.contracts.images import ImageStorageContract, colour, mixed, with_labels


class TestSqlite(ImageStorageContract):
    variant = "sqlite[engine=sqlite3]"


@pytest.mark.slow
class TestSqliteViews(ImageStorageContract):
    variant = "sqlite[engine=sqlite3,arrays=views]"


@pytest.fixture
def adapter() -> SqliteImages:
    adapter = SqliteImages()
    adapter.load_library()
    return adapter


def test_an_image_is_a_row(adapter: SqliteImages, tmp_path: Path) -> None:
    adapter.save(mixed(), tmp_path / "t")
    with closing(sqlite3.connect(tmp_path / "t")) as connection:
        rows = connection.execute("SELECT label, height, width, channels, pixels FROM images ORDER BY rowid").fetchall()
    assert [row[0] for row in rows] == mixed().labels
    assert rows[1][1:] == (1, 1, 0, mixed().arrays[1].tobytes())


def test_pages_of_4_kib_make_small_images_a_third_larger(adapter: SqliteImages, tmp_path: Path) -> None:
    images = with_labels([np.full((32, 32, 3), place % 251, np.uint8) for place in range(1_000)])
    adapter.save(images, tmp_path / "t")
    assert 1.33 < (tmp_path / "t").stat().st_size / (1_000 * 3072) < 1.36


def test_a_file_of_something_else_is_refused(adapter: SqliteImages, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"PAR1" * 2_000)
    with pytest.raises(AdapterError, match="not a database"):
        adapter.read(tmp_path / "t")


def test_another_database_is_refused(adapter: SqliteImages, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t")) as connection:
        connection.execute("CREATE TABLE other (x)")
    with pytest.raises(AdapterError, match="no such table: images"):
        adapter.read(tmp_path / "t")


def test_pixels_of_another_size_are_found(adapter: SqliteImages, tmp_path: Path) -> None:
    adapter.save(colour(), tmp_path / "t")
    with closing(sqlite3.connect(tmp_path / "t")) as connection, connection:
        connection.execute("UPDATE images SET width = 33 WHERE rowid = 7")
    with pytest.raises(AdapterError, match="is damaged"):
        adapter.read(tmp_path / "t")


def test_a_path_of_any_characters_is_taken(adapter: SqliteImages, tmp_path: Path) -> None:
    location = tmp_path / "a b?c#d%20é.sqlite"
    adapter.save(colour(), location)
    assert adapter.read(location).labels == colour().labels
