"""Messages of the verbs of near storage for a missing library or catalog."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click
import pytest

from format_bench.commands.near_storage_access import made_once, near_storage_errors, private_text
from format_bench.commands.store import store
from format_bench.errors import RequestError
from libraries.near_storage.errors import NotFoundError, SilentError, UnavailableError


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        (ModuleNotFoundError("No module named 'xxhash'", name="xxhash"), "needs xxhash, which is not installed"),
        (ImportError("The pyarrow installation is not built with support for 'flight'"), "needs pyarrow with Flight"),
    ],
)
def test_a_library_that_is_missing_is_named_with_what_installs_it(missing: ImportError, named: str) -> None:
    with pytest.raises(click.UsageError, match=named) as told, near_storage_errors():
        raise missing
    assert "pip install -e '.[near-storage]'" in str(told.value)
    assert told.value.exit_code == 2


def test_a_catalog_that_does_not_answer_is_named_with_what_starts_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(click.exceptions.Exit) as ended, near_storage_errors():
        raise SilentError("grpc://127.0.0.1:8815 does not answer (Connection refused)\nat some place")
    assert ended.value.exit_code == 1
    told = capsys.readouterr().err
    assert "the catalog at grpc://127.0.0.1:8815 does not answer" in told
    assert "serve catalog FOLDER" in told
    assert "some place" not in told


def test_errors_of_a_service_are_shown_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(click.exceptions.Exit) as ended, near_storage_errors():
        raise UnavailableError("the server is ending")
    assert (ended.value.exit_code, capsys.readouterr().err) == (1, "error: the server is ending\n")
    with pytest.raises(click.exceptions.Exit) as ended, near_storage_errors():
        raise NotFoundError("no table is called 'events'")
    assert ended.value.exit_code == 2


def test_a_binary_file_is_refused_as_a_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.touch(0o600)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(RequestError, match=r"token_file must be the name of a text file \(got '.*token'\)"):
        private_text(file, "token_file")


def test_a_secret_has_its_name_when_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If killed between creating and filling the file, a first start would leave an empty one for all later starts."""
    file = tmp_path / "store" / "secret"
    synced = os.fsync

    def killed(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        made_once(file, "x" * 40)
    assert list(file.parent.iterdir()) == []
    monkeypatch.setattr(os, "fsync", synced)
    assert made_once(file, "x" * 40)
    assert not made_once(file, "y" * 40)
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("x" * 40 + "\n", 0o600)
    assert list(file.parent.iterdir()) == [file]


def test_verbs_that_messages_name_are_there() -> None:
    library = Path(__file__).parents[2] / "libraries/near_storage"
    named = {verb for path in library.rglob("*.py") for verb in re.findall(r"'store (\w+)", path.read_text())}
    assert "tables" in named
    assert named - set(store.commands) == set()
