"""Messages for errors of the operating system: which file, why, and what to do."""

from __future__ import annotations

import errno
import os

import click
import pytest

from format_bench.terminal import errors_told


def told(number: int, verb: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What the verb prints for this error number."""

    @click.command(verb)
    def command() -> None:
        with errors_told():
            raise OSError(number, os.strerror(number), "some/place")

    assert command.main([], standalone_mode=False) == 1
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "step"),
    [
        (errno.ENOSPC, "Free some space"),
        (errno.EACCES, "Choose a place that you may write to"),
        (errno.EROFS, "Choose a place that you may write to"),
        (errno.ENOENT, "Name a file or folder that exists"),
        (errno.ENOTDIR, "Name a file or folder that exists"),
    ],
)
def test_errors_of_the_system_come_with_a_next_step(number: int, step: str, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = told(number, "report", capsys).splitlines()
    assert first == f"error: some/place: {os.strerror(number)}"
    assert second.startswith(f"  {step}")


def test_only_a_run_mentions_resume(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--resume" in told(errno.ENOSPC, "run", capsys)
    assert "--resume" not in told(errno.ENOSPC, "list", capsys)
