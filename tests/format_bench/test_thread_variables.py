"""Thread variables in the environment never cause a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from format_bench.errors import RequestError
from format_bench.thread_variables import make_readable

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("given", "numexpr"),
    [
        ({"OMP_NUM_THREADS": "4,2"}, "4"),
        ({"OMP_NUM_THREADS": " 4 , 2,1", "NUMEXPR_NUM_THREADS": ""}, "4"),
        ({"OMP_NUM_THREADS": "4,2", "NUMEXPR_NUM_THREADS": "3"}, "3"),
        ({"OMP_NUM_THREADS": "4"}, None),
        ({"OMP_NUM_THREADS": ""}, None),
        ({}, None),
    ],
)
def test_numexpr_gets_the_first_of_several_levels(given: dict[str, str], numexpr: str | None) -> None:
    environment = dict(given)
    make_readable(environment)
    assert environment == {**given, **({} if numexpr is None else {"NUMEXPR_NUM_THREADS": numexpr})}


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS"])
def test_what_is_no_number_is_refused_with_the_next_step(name: str) -> None:
    with pytest.raises(RequestError, match=rf"{name} must be a whole number \(got 'many'\)(.|\n)*env -u {name}"):
        make_readable({name: "many"})


@pytest.mark.parametrize(("value", "code"), [("4,2", 0), ("many", 2)])
def test_pandas_is_imported_or_the_reason_is_shown(value: str, code: int) -> None:
    words = [sys.executable, "main.py", "list", "suites"]
    said = subprocess.run(words, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": value}, capture_output=True, text=True)
    assert (said.returncode, "Traceback" in said.stderr) == (code, False), said.stderr
