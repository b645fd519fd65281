"""The commands of near storage, as on its page: serve, put, query, kill a node, query again."""

from __future__ import annotations

import io
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from format_bench import cli
from format_bench.commands import store as store_commands
from format_bench.errors import RequestError

# Some ten programs are started, each of which imports Arrow.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
MAIN = [sys.executable, str(ROOT / "main.py")]
SQL = "SELECT id, name FROM events WHERE id >= 100 AND id < 103"


def run(*words: object, token: str | None = None) -> subprocess.CompletedProcess[str]:
    """The program in this process, which has imported Arrow already."""
    # Answers are written as bytes.
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        mock.patch.dict(os.environ, _environment(token), clear=True),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        cli.main([*map(str, words)])
    assert isinstance(ended.value.code, int)
    return subprocess.CompletedProcess(words, ended.value.code, *(_text(stream) for stream in (out, err)))


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def _environment(token: str | None) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FORMAT_BENCH_")}
    return environment if token is None else environment | {"FORMAT_BENCH_TOKEN": token}


@contextmanager
def serving(*words: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A service that answers, and its address."""
    process = subprocess.Popen(
        [*MAIN, "serve", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        ready = select.select([process.stdout], [], [], 300)[0]
        line = process.stdout.readline() if ready else ""
        assert " at grpc://" in line, process.stderr.read() if process.poll() is not None else "no answer"
        yield process, line.split()[-1]
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@dataclass
class Store:
    """A catalog with two nodes, and the words that reach it."""

    folder: Path
    catalog: str
    nodes: list[subprocess.Popen[str]]

    def ask(self, *words: object) -> subprocess.CompletedProcess[str]:
        return run("store", *words, "--catalog", self.catalog, "--token-file", self.folder / "catalog" / "token")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("near")
    with ExitStack() as stack:
        _, catalog = stack.enter_context(serving("catalog", folder / "catalog", "--port", 0))
        secret = ("--catalog", catalog, "--secret-file", folder / "catalog" / "secret")
        nodes = [stack.enter_context(serving("node", folder / f"node-{n}", *secret))[0] for n in (1, 2)]
        yield Store(folder, catalog, nodes)


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("events")
    for part in range(3):
        ids = range(part * 1_000, (part + 1) * 1_000)
        table = pa.table({"id": list(ids), "name": [f"event {number}" for number in ids]})
        pq.write_table(table, folder / f"part-{part}.parquet", row_group_size=100)
    return folder


def lines_of_the_docs(store: Store) -> str:
    """What the lines of Python in the docs print: SQL, an explanation, DuckDB and Polars."""
    page = (ROOT / "libraries/near_storage/docs/near-storage.md").read_text()
    (lines,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert "grpc://127.0.0.1:8815" in lines
    lines = lines.replace("grpc://127.0.0.1:8815", store.catalog).replace('"store/', f'"{store.folder}/')
    lines += "\n    print(table)\n"
    out = io.StringIO()
    with redirect_stdout(out):
        exec(lines, {})
    return out.getvalue()


def test_the_life_of_a_table(store: Store, events: Path) -> None:
    put = store.ask("put", "events", events)
    assert (put.returncode, put.stdout) == (0, "events: version 1\n"), put.stderr
    answer = '"id","name"\n100,"event 100"\n101,"event 101"\n102,"event 102"\n'
    assert store.ask("query", SQL).stdout == answer
    counted = store.ask("query", "SELECT count(*) AS n, max(id) AS last FROM events WHERE id < 2500")
    assert counted.stdout == '"n","last"\n2500,2499\n'
    assert "3,000 rows  3 partitions" in store.ask("tables").stdout
    assert "1 of 30" in store.ask("query", SQL, "--explain").stdout
    written = store.folder / "answer.parquet"
    assert store.ask("query", SQL, "--out", written).returncode == 0
    assert pq.read_table(written)["id"].to_pylist() == [100, 101, 102]
    assert store.ask("check", "--verify").stdout == "all is well\n"
    before = lines_of_the_docs(store)
    assert [words for words in ("event 100", "1 of 30", "event 7") if words not in before] == []

    kept = store.ask("repair", "--forget", "node-1")
    assert (kept.returncode, kept.stdout) == (2, "")
    assert "Node node-1 answers, but only nodes that are gone for good" in kept.stderr

    store.nodes[0].send_signal(signal.SIGKILL)
    store.nodes[0].wait()
    assert store.ask("query", SQL).stdout == answer, "the other node has all of it"
    assert lines_of_the_docs(store) == before
    found = store.ask("check")
    assert found.returncode == 1
    assert "node-1" in found.stdout
    assert store.ask("delete", "events").returncode == 0
    gone = store.ask("query", SQL)
    assert gone.returncode == 2
    assert gone.stderr.startswith("error: ")
    assert "Traceback" not in gone.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("query", "SELECT * FROM events ORDER BY id"), "ORDER BY"),
        (("query", "SELECT nothing FROM nowhere"), "nowhere"),
        (("put", "../events", "x.parquet"), "../events"),
        (("put", "new", "missing.parquet"), "missing.parquet"),
    ],
)
def test_an_impossible_request_is_reported_in_a_line(store: Store, words: tuple[str, ...], reason: str) -> None:
    done = store.ask(*words)
    assert done.returncode == 2, done.stderr
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


def test_a_token_comes_from_the_environment_too_and_a_wrong_one_is_refused(store: Store) -> None:
    token = (store.folder / "catalog" / "token").read_text().strip()
    words = ("store", "tables", "--catalog", store.catalog)
    assert run(*words, token=token).returncode == 0
    wrong = run(*words, token="x" * 40)
    assert wrong.returncode == 2
    assert "token" in wrong.stderr
    none = run(*words)
    assert none.returncode == 2
    assert "Name the token's file by --token-file, or set the environment variable FORMAT_BENCH_TOKEN" in none.stderr


def test_files_that_others_may_read_hold_no_secrets(store: Store, tmp_path: Path) -> None:
    for name in ("secret", "token"):
        assert (store.folder / "catalog" / name).stat().st_mode & 0o077 == 0
    open_file = tmp_path / "token"
    open_file.write_text("x" * 40)
    open_file.chmod(0o644)
    done = run("store", "tables", "--catalog", store.catalog, "--token-file", open_file)
    assert done.returncode == 2
    assert f"other users can read {open_file}" in done.stderr


def refused(words: Callable[[Path], tuple[object, ...]], folder: Path) -> str:
    done = run("serve", *words(folder))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr


def test_services_refuse_what_would_not_be_safe(tmp_path: Path) -> None:
    told = refused(lambda folder: ("catalog", folder, "--host", "0.0.0.0"), tmp_path / "c")
    assert "0.0.0.0: without TLS" in told
    told = refused(lambda folder: ("catalog", folder, "--tls-key", folder / "key"), tmp_path / "d")
    assert "--tls-certificate and --tls-key are needed together" in told
    missing = ("--catalog", "grpc://127.0.0.1:1", "--secret-file", tmp_path / "none")
    assert "none" in refused(lambda folder: ("node", folder, *missing), tmp_path / "n")


def test_a_missing_catalog_is_a_failure(tmp_path: Path) -> None:
    done = run("store", "tables", "--catalog", "grpc://127.0.0.1:1", token="x" * 40)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")


def test_an_answer_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    """pyarrow removes the file that it could not write: under the user's name that would be the answer of yesterday, or
    a device."""
    device, file = tmp_path / "device", tmp_path / "answer.parquet"
    os.mkfifo(device)
    with pytest.raises(RequestError, match="out must be a file or a new path"):
        store_commands._give(pa.table({"a": [1]}), device)
    file.write_bytes(b"yesterday")
    (tmp_path / ".answer.parquet.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        store_commands._give(pa.table({"a": [1]}), file)
    assert file.read_bytes() == b"yesterday"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["answer.parquet", "device"]
    store_commands._give(pa.table({"a": [1]}), file)
    assert pq.read_table(file).num_rows == 1
