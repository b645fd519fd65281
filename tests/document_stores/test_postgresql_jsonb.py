"""PostgreSQL's JSONB keeps the contract. Its server is private and never outlives the process that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from adapters.contract import Program
from adapters.document_store import identical
from adapters.errors import AdapterError, NotInstalled
from document_stores.postgresql_jsonb import PostgresqlJsonb
from document_stores.registry import DOCUMENT_STORES
from document_stores.shared import postgresql_server as servers
from document_stores.sql.postgresql_dialect import as_psycopg_takes_it
from document_stores.sql.postgresql_values import literal
from libraries.document_queries import Compare, Constant, Count, Filter, Plan, field, to_json
from tests.contracts.adapters import ROOT
from tests.contracts.documents import DocumentStoreContract

ENDED_S = 20.0
"""Maximum time for a server to end, which usually takes some milliseconds, even on a busy machine."""

BUSY = """
import sys, threading
from pathlib import Path
from document_stores.registry import DOCUMENT_STORES

store = DOCUMENT_STORES.build("postgresql-jsonb")
store.load_library()
location = Path(sys.argv[1])
store.begin(location)
busy = store._begun[location].connect(store._psycopg)
asking = threading.Thread(target=busy.execute, args=["SELECT count(*) FROM generate_series(1, 10000000000) a"])
asking.start()
print("busy", flush=True)
asking.join()
"""


@pytest.fixture
def installed() -> None:
    if servers.version() is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"no PostgreSQL here: {servers.INSTALL}")


@pytest.fixture
def adapter(installed: None) -> PostgresqlJsonb:
    made = DOCUMENT_STORES.build("postgresql-jsonb")
    made.load_library()
    assert isinstance(made, PostgresqlJsonb)
    return made


@pytest.fixture(scope="module")
def empty_cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    location = tmp_path_factory.mktemp("cluster") / "empty"
    if servers.version() is not None:
        servers.make(location)
        with (location / "postgresql.conf").open("a") as settings:
            settings.write("fsync = off\n")
        adapter = DOCUMENT_STORES.build("postgresql-jsonb")
        adapter.load_library()
        server = servers.start(location, adapter._psycopg)
        with server.connect(adapter._psycopg) as connection:
            connection.execute("UPDATE pg_database SET datistemplate = false")
            for database in ("template0", "template1"):
                connection.execute(f"DROP DATABASE {database}")
        server.stop()
    return location


@pytest.fixture
def initialised_once(empty_cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip initdb, waiting for the disk and two unused databases, which take longer than most tests.

    Tests of the server itself have all of these, as users do.
    """
    copy = ["cp", "--archive", "--", str(empty_cluster)]
    monkeypatch.setattr(servers, "make", lambda location: subprocess.run([*copy, str(location)], check=True))


@pytest.mark.slow
@pytest.mark.usefixtures("installed", "initialised_once")
class TestPostgresql(DocumentStoreContract):
    variant = "postgresql-jsonb[engine=psycopg]"


def _eventually(met: Callable[[], bool]) -> bool:
    until = time.monotonic() + ENDED_S
    while not met() and time.monotonic() < until:
        time.sleep(0.02)
    return met()


def _is_gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
def test_a_killed_process_leaves_no_server(tmp_path: Path) -> None:
    """Even if the server is running a query."""
    command = [sys.executable, "-c", BUSY, str(tmp_path / "stored.postgresql")]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert worker.stdout is not None
    try:
        assert worker.stdout.readline() == b"busy\n"
        started = psutil.Process(worker.pid).children(recursive=True)
        assert len(started) > 3
        # Ending a worker also ends its process group.
        assert not any(os.getpgid(process.pid) == os.getpgid(worker.pid) for process in started)
    finally:
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        worker.stdout.close()
    assert _eventually(lambda: all(map(_is_gone, started)))


def test_one_server_is_there_from_begin_to_end(adapter: PostgresqlJsonb, tmp_path: Path) -> None:
    location = tmp_path / "stored.postgresql"
    adapter.begin(location)
    adapter.begin(location)
    (server,) = (process for process in psutil.Process().children() if process.name() == "postgres")
    adapter.ingest([[{"id": 1, "a": 1.5}]], location)
    handle = adapter.open(location)
    assert handle.get([1]) == [{"id": 1, "a": 1.5}]
    handle.close()
    assert server.is_running()
    assert not _is_gone(server)
    # Only this user and the server's account, which differs if this user is root, have access.
    assert location.stat().st_mode & 0o077 == 0
    assert (location.stat().st_uid == os.geteuid()) == (os.geteuid() != 0)
    assert server.net_connections("inet") == []
    adapter.end(location)
    adapter.end(location)
    assert _is_gone(server)
    handle = adapter.open(location)
    assert handle.count() == 1
    handle.close()


def test_a_folder_that_its_account_may_not_enter_and_a_long_path_are_no_hindrance(
    adapter: PostgresqlJsonb, tmp_path: Path
) -> None:
    """A socket's path has at most 107 bytes, and working folders are private."""
    folder = tmp_path / ("long" * 30)
    folder.mkdir(mode=0o700)
    adapter.ingest([b'{"id":1}\n'], folder / "stored.postgresql")
    handle = adapter.open(folder / "stored.postgresql")
    assert handle.count() == 1
    handle.close()


@pytest.mark.usefixtures("initialised_once")
def test_the_size_is_of_documents_and_their_index(adapter: PostgresqlJsonb, tmp_path: Path) -> None:
    location = tmp_path / "stored.postgresql"
    adapter.begin(location)
    adapter.ingest([[{"id": n, "text": f"{n}" * 40} for n in range(2_000)]], location)
    handle = adapter.open(location)
    assert handle._rows("SELECT pg_total_relation_size('documents')") == [(adapter.size_bytes(location),)]
    handle.close()
    adapter.end(location)
    assert 300_000 < adapter.size_bytes(location) < 600_000


@pytest.mark.usefixtures("initialised_once")
def test_an_index_is_taken_and_means_the_same(adapter: PostgresqlJsonb, tmp_path: Path) -> None:
    location = tmp_path / "stored.postgresql"
    kinds = (None, "text", True, [1], {"a": 1}, 2.5, 10**18)
    documents = [{"id": n, "at": {"n": n if n % 50 else kinds[n // 50 % 7]}} for n in range(10_000)]
    adapter.ingest([documents], location)
    handle = adapter.open(location)
    handle.index(("at", "n"))
    for operator, value in (("<", 9), (">=", 9_990), ("=", 123), ("=", 2.5)):
        plan = to_json(Plan((Filter(Compare(field("at.n"), operator, Constant(value))), Count())))
        handle.prepare(plan)
        told = handle.statement(plan)
        explained = handle._rows(f"EXPLAIN {as_psycopg_takes_it(told.text)}", told.parameters)
        assert any("by_" in line for (line,) in explained), explained
        wanted = [each for each in documents if _met(each["at"]["n"], operator, value)]
        assert handle.query(plan) == [{"count": len(wanted)}], (operator, value)
    handle.close()
    again = adapter.open(location)
    again.index(("at", "n"))
    assert len(again._rows("SELECT 1 FROM pg_indexes WHERE tablename = 'documents'")) == 2
    again.close()


def _met(found: object, operator: str, value: object) -> bool:
    if isinstance(value, str) or not isinstance(found, int | float) or isinstance(found, bool):
        return type(found) is type(value) and found == value
    assert isinstance(value, int | float)
    return {"<": found < value, ">=": found >= value, "=": found == value}[operator]


@pytest.mark.usefixtures("initialised_once")
def test_a_write_behind_an_open_scan_survives(adapter: PostgresqlJsonb, tmp_path: Path) -> None:
    location = tmp_path / "stored.postgresql"
    adapter.ingest([[{"id": n} for n in range(5_000)]], location)
    handle = adapter.open(location)
    scanned = handle.scan()
    next(scanned)
    handle.upsert([{"id": 9_999, "new": True}])
    scanned.close()  # type: ignore[attr-defined]
    handle.close()
    handle = adapter.open(location)
    assert identical(handle.get([9_999]), [{"id": 9_999, "new": True}])
    handle.close()


def test_another_server_in_the_environment_is_not_asked(
    adapter: PostgresqlJsonb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PGHOST": "example.org", "PGPORT": "1", "PGUSER": "x", "PGDATABASE": "y"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PGOPTIONS", "-c no_such_setting=1")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    adapter.ingest(['{"id":1,"a":"é漢"}\n'.encode()], tmp_path / "stored.postgresql")
    handle = adapter.open(tmp_path / "stored.postgresql")
    assert handle.get([1]) == [{"id": 1, "a": "é漢"}]
    handle.close()


def test_a_folder_of_something_else_is_named(adapter: PostgresqlJsonb, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with pytest.raises(AdapterError, match="other: the data directory of PostgreSQL does not exist"):
        adapter.open(tmp_path / "other")


@pytest.mark.parametrize(
    ("lacking", "told"),
    [
        ((), r"needs postgresql, which is not installed here; apt-get install postgresql$"),
        (
            ("no-such-library",),
            r"needs no-such-library, postgresql, .*; pip install -e '.\[documents\]' && apt-get install postgresql$",
        ),
    ],
)
def test_without_its_programs_it_is_not_installed(
    lacking: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresqlJsonb, "distributions", ("msgspec", *lacking))
    monkeypatch.setattr(PostgresqlJsonb, "programs", (Program("postgresql", lambda: None, servers.INSTALL),))
    with pytest.raises(NotInstalled, match=told):
        DOCUMENT_STORES.build("postgresql-jsonb")


def test_the_release_of_the_server_stands_for_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresqlJsonb, "distributions", ("msgspec",))
    monkeypatch.setattr(PostgresqlJsonb, "programs", (Program("postgresql", lambda: "15.18", servers.INSTALL),))
    found = DOCUMENT_STORES.availability(PostgresqlJsonb)
    assert found.installed
    assert next(iter(found.versions.items())) == ("postgresql", "15.18")


def test_literals_hold_no_sign_that_psycopg_reads() -> None:
    assert literal("it's 50 % of \\x") == "E'it''s 50 \\x25 of \\\\x'"
    assert as_psycopg_takes_it("a % %(bound_000)s") == "a %% %(bound_000)s"
    with pytest.raises(ValueError, match="NUL"):
        literal("\0")
