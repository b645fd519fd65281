"""`ask`: SQL about JSON Lines files and stores, and what users see if something is wrong."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
import zstandard
from click.testing import CliRunner, Result

from data_generator.errors import DataError
from format_bench import ask, cli
from format_bench.errors import RequestError
from libraries.document_store import DocumentStore
from libraries.document_store.errors import FullError
from libraries.durable.tests.full_disk import run_on_small_disk

LINES = b"""\
{"id":1,"kind":"commit","size":17,"name":"\xe6\x97\xa5\xe6\x9c\xac"}

{"id":1,"kind":"commit","size":"large"}
{"id":2,"kind":"identity","tags":["a"]}
{}
"""
COUNT = "SELECT kind, count(*) AS n FROM docs GROUP BY kind ORDER BY n DESC, kind"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a separate folder for temporary files, which must be empty at the end."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    path.write_bytes(LINES)
    return path


def asked(*words: object) -> Result:
    result = CliRunner().invoke(cli.cli, ["ask", *map(str, words)])
    assert "Traceback" not in result.output
    return result


def test_the_answer_is_a_table_and_nothing_stays(file: Path, temporary: Path) -> None:
    result = asked(file, COUNT)
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines() if line.strip()] == [
        ["kind", "n"],
        ["─" * 12],
        ["commit", "2"],
        ["identity", "1"],
        ["-", "1"],
    ]
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".zst", zstandard.compress)])
def test_compressed_files_are_read(file: Path, ending: str, pack: object) -> None:
    packed = Path(f"{file}{ending}")
    packed.write_bytes(pack(LINES))  # type: ignore[operator]
    assert ask(packed, "SELECT count(*) AS n FROM docs").to_pylist() == [{"n": 4}]


def test_keys_are_line_numbers_unless_one_is_named(file: Path) -> None:
    assert ask(file, "SELECT _line, id FROM docs").to_pylist() == [
        {"_line": 1, "id": 1},
        {"_line": 3, "id": 1},
        {"_line": 4, "id": 2},
        {"_line": 5, "id": None},
    ]
    file.write_bytes(LINES.replace(b"{}\n", b""))
    assert ask(file, "SELECT id, kind FROM docs WHERE size = 'large'", key="id").num_rows == 1
    assert ask(file, "SELECT count(*) AS n FROM docs", key="id").to_pylist() == [{"n": 2}]


def test_json_keeps_every_row_and_value(file: Path) -> None:
    result = asked(file, "SELECT name, tags, size FROM docs", "--json")
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {"name": "日本", "tags": None, "size": "17"},
        {"name": None, "tags": None, "size": '"large"'},
        {"name": None, "tags": ["a"], "size": None},
        {"name": None, "tags": None, "size": None},
    ]
    assert result.stderr == "note: size has values of several types, and becomes JSON text\n"


def test_json_has_null_for_numbers_that_are_not_finite(file: Path) -> None:
    sql = "SELECT 'inf'::DOUBLE AS a, ['nan'::DOUBLE, 1] AS b, {'c': '-inf'::DOUBLE} AS d, 2.5::DOUBLE AS e FROM docs"
    lines = asked(file, f"{sql} LIMIT 1", "--json").stdout.splitlines()
    assert lines == ['{"a": null, "b": [null, 1.0], "d": {"c": null}, "e": 2.5}']


def test_a_long_and_wide_answer_is_cut_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "wide.jsonl"
    line = json.dumps({f"c{number}": "x" * 50 for number in range(20)})
    path.write_text(f"{line}\n" * 130)
    result = asked(path, "SELECT * FROM docs")
    assert result.stderr == "not shown: 30 more rows and 9 more columns; --json prints all\n"
    assert len(asked(path, "SELECT * FROM docs", "--json").stdout.splitlines()) == 130


def test_an_answer_without_rows(file: Path, tmp_path: Path) -> None:
    result = asked(file, "SELECT kind FROM docs WHERE kind = 'x'")
    assert (result.exit_code, result.stderr) == (0, "no rows\n")
    blank = tmp_path / "blank.jsonl"
    blank.write_text("\n\n")
    assert ask(blank, "SELECT count(*) AS n FROM docs").to_pylist() == [{"n": 0}]


def test_explain_says_which_way(file: Path) -> None:
    assert asked(file, COUNT, "--explain").stdout.startswith("way     the store's plan\nreads   kind\n")
    explained = ask(file, "SELECT lower(kind) FROM docs", explain=True)
    assert (explained.way, explained.fields) == ("duckdb", ("kind",))


def test_names_in_the_file_do_not_control_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "hostile.jsonl"
    path.write_text('{"a\\u001b[31m":1}\n{"a\\u001b[31m":"x"}\n')
    result = asked(path, "SELECT * FROM docs")
    assert "\x1b" not in result.output
    assert result.stderr == "note: a\\x1b[31m has values of several types, and becomes JSON text\n"
    explained = asked(path, "SELECT * FROM docs", "--explain")
    assert r"reads   _line, a\x1b\[31m" in explained.stdout
    assert "\x1b" not in explained.output


def test_a_store_is_asked_too(tmp_path: Path) -> None:
    with DocumentStore.open(tmp_path / "store", key="uid") as store:
        store.upsert([{"uid": "a", "n": 1}])
    assert ask(tmp_path / "store", "SELECT uid, n FROM docs").to_pylist() == [{"uid": "a", "n": 1}]
    with pytest.raises(RequestError, match=r"the folder .*: a document store already has a key\.(.|\n)*Omit key"):
        ask(tmp_path / "store", COUNT, key="uid")
    with DocumentStore.open(tmp_path / "store", key="uid"), pytest.raises(DataError, match="store"):
        ask(tmp_path / "store", COUNT)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"a":1}\n\n{"a":nope}\n', "events.jsonl, line 3: is not valid JSON: Expecting value at character 5"),
        (b'{"a":1}\n[1]\n', "events.jsonl, line 2: is not a JSON object.\n  Convert an array: jq"),
        (b'{"a":1}\n5\n', "events.jsonl, line 2: is not a JSON object.\n  Write one object per line: {..}"),
        (b'{"a":1}\n{"a":1,"a":2}\n', "line 2: a: occurs twice in one object"),
        (b'{"a":1}\n{"a":"\xff"}\n', "events.jsonl, line 2: a: "),
        (
            b'{"_line":1}\n',
            "has a field '_line', but line numbers are stored in a field of this name.\n  Use --key to name a field",
        ),
        (b"", "is empty (0 bytes)"),
        (b"\x1f\x8b\x08\x00", "is compressed (gz), but its name does not end with .gz"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(content: bytes, said: str, file: Path, temporary: Path) -> None:
    file.write_bytes(content)
    result = asked(file, "SELECT a FROM docs")
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert result.stderr.count("\n") <= 2
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nosuch.jsonl", COUNT], "nosuch.jsonl: No such file or directory"),
        (["FILE", "SELECT kind FRO docs"], "Error: SQL: cannot parse the SQL, line 1, column"),
        (["nosuch.jsonl", "SELECT"], "nosuch.jsonl: No such file or directory"),
        (["FILE", "DROP TABLE docs"], "Error: SQL: only SELECT is supported (got 'DROP').\n  Example: SELECT kind"),
        (["FILE", "SELECT kind FROM x"], "there is no table x; the table is docs"),
        (["FILE", COUNT, "--key", "nosuch"], "line 1: nosuch: the key must be an integer of 64 bits or a text"),
        (["FILE", COUNT, "--key", ""], "Error: --key must be the name of a field (got an empty text)"),
        (["FILE"], "Missing argument 'SQL'"),
        (["FOLDER", COUNT], "is a folder without a document store"),
    ],
)
def test_a_wrong_request_is_refused(words: list[str], said: str, file: Path, tmp_path: Path) -> None:
    result = asked(*({"FILE": file, "FOLDER": tmp_path}.get(word, word) for word in words))
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("", "key must be the name of a field (got an empty text). Name a field"),
        (5, "key must be the name of a field (got int)"),
        ("a\udcff", r"key='a\udcff' is not valid UTF-8"),
    ],
)
def test_a_wrong_key_is_refused_before_the_file_is_read(key: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError) as refused:
        ask(tmp_path / "nosuch.jsonl", COUNT, key=key)
    assert said in str(refused.value)


def test_a_message_of_duckdb_ends_in_one_point(file: Path) -> None:
    result = asked(file, "SELECT sum(kind) FROM docs")
    assert "You might need to add explicit type casts.\n  Example: " in result.stderr


def test_wrong_sql_is_found_before_the_file_is_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("format_bench.api.ask._load", lambda *_: pytest.fail("read"))
    assert "only SELECT" in asked(file, "UPDATE docs SET a = 1").stderr


def test_a_full_disk_says_where_and_what_to_do(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise FullError("the disk is full")

    monkeypatch.setattr("format_bench.api.ask._upsert", full)
    result = asked(file, COUNT)
    assert result.exit_code == 2
    assert result.stderr.startswith(
        "error: the disk is full.\n  Free some space, or name a folder on another disk: TMPDIR="
    )


ON_SMALL_DISK = """
import os, sys, tempfile
from pathlib import Path
from format_bench.api.ask import ask
from data_generator.errors import DataError
tempfile.tempdir = sys.argv[1]
file = Path(sys.argv[1]).parent / "large.jsonl"
with file.open("w") as out:
    for number in range(5000):
        print('{"n":"' + os.urandom(400).hex() + '"}', file=out)
try:
    ask(file, "SELECT count(*) FROM docs")
except DataError as error:
    assert "full" in str(error) and "TMPDIR=FOLDER" in str(error), error
else:
    raise AssertionError("the disk was not full")
assert os.listdir(sys.argv[1]) == [], os.listdir(sys.argv[1])
"""


def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    run_on_small_disk(ON_SMALL_DISK, tmp_path / "disk", "2m")


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_stays_after_an_end_at_any_time(kind: signal.Signals, tmp_path: Path, temporary: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(b'{"n":%d}\n' % number for number in range(20_000)))
    endless = "SELECT count(*) FROM docs a, docs b, docs c WHERE a.n + b.n + c.n = 1"
    command = [sys.executable, "-m", "format_bench", "ask", str(path), endless]
    started = subprocess.Popen(
        command, env={**os.environ, "TMPDIR": str(temporary)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        while not list(temporary.iterdir()):
            assert started.poll() is None, started.stderr and started.stderr.read()
            time.sleep(0.05)
        time.sleep(1)
        started.send_signal(kind)
        out, err = started.communicate(timeout=30)
    finally:
        started.kill()
    assert out == ""
    # Python ends by the signal instead of the exit code 130 if Ctrl-C came while a module was imported. Shells show 130
    # for both.
    assert started.returncode in ((130, -kind) if kind == signal.SIGINT else (-kind,))
    if kind == signal.SIGINT:
        assert err == "stopped\n"
    for _ in range(100):
        if not list(temporary.iterdir()):
            break
        time.sleep(0.05)
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("missing", ["sqlglot", "zstandard"])
def test_a_missing_library_says_what_to_install(missing: str, file: Path) -> None:
    script = f"import sys; sys.modules[{missing!r}] = None; from format_bench.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", script, "ask", str(file), COUNT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"A query needs {missing}, which is not installed. pip install 'format-bench[documents]'" in done.stderr
