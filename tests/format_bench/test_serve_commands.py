"""`format-bench serve` when it cannot start: nothing is left behind, and the message says what to do."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from format_bench.cli import main


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["serve", *map(str, words)])
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_a_port_in_use_leaves_no_files_and_names_the_option(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, taken_port: int
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x" * 64)
    secret.chmod(0o600)
    for words in (
        ("catalog", tmp_path / "new"),
        ("node", tmp_path / "new", "--catalog", "grpc://127.0.0.1:1", "--secret-file", secret),
    ):
        said = refused(capsys, *words, "--port", taken_port)
        assert f"127.0.0.1:{taken_port}: cannot listen there (Address already in use)" in said
        assert "--port" in said
        assert not (tmp_path / "new").exists()


def test_a_file_in_place_of_the_folder_is_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"mine")
    said = refused(capsys, "catalog", file, "--port", 0)
    assert f"FOLDER must be a folder or a new path (got {str(file)!r})" in said
    said = refused(capsys, "node", file, "--catalog", "grpc://127.0.0.1:1", "--secret-file", file)
    assert f"FOLDER must be a folder or a new path (got {str(file)!r})" in said
    assert file.read_bytes() == b"mine"
