"""A PostgreSQL server of one's own for one folder: it is made, started, reached and stopped here.

The folder is the server's data directory and holds all of it: files, socket, and what it says. It listens to nothing
but that socket, which its account and root alone can reach.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

from adapters.errors import AdapterError

INSTALL = "apt-get install postgresql"
"""The command that installs the server's programs."""

START_LIMIT_S = 60.0
"""A server that does not answer for so long will not: after a crash it first replays its log."""
START_LOOK_S = 0.01
"""It is asked this often meanwhile."""
STOP_LIMIT_S = 60.0
"""A server that stops writes what is in memory; one that takes longer is stopped without."""

BUFFERS_BYTES = 128 << 20
"""PostgreSQL's own default: in so much memory it keeps what it has read."""

LOG, SIZES = "server.log", "sizes.json"
"""What the server says; what its files held when it stopped."""

_DEBIAN = Path("/usr/lib/postgresql")
_ACCOUNT = "nobody"
"""Who runs the server where we are root, which PostgreSQL refuses."""

_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_directories": ".",
    "unix_socket_permissions": "0700",
    "port": "5432",
    # All memory that processes share is their own, or a file in the folder.
    "shared_buffers": f"{BUFFERS_BYTES // 2**20}MB",
    "shared_memory_type": "mmap",
    "dynamic_shared_memory_type": "mmap",
    "allow_in_place_tablespaces": "on",
    # What is due is done when the store is told to settle, and not at some moment of a measurement.
    "autovacuum": "off",
}

# It ends at once when we have ended, however that happened, and does not begin where that came before it could be
# told. The process keeps its id through all three programs.
_WATCHED = 'test "$PPID" = "$1" && shift && exec "$@"'


@lru_cache(maxsize=1)
def programs() -> Path | None:
    """The folder of the server's programs: of those on the path, else of the newest that Debian has installed."""
    on_path = shutil.which("postgres")
    folders = [Path(on_path).resolve().parent] if on_path else []
    versions = [folder for folder in _DEBIAN.glob("*/bin") if folder.parent.name.isdigit()]
    folders += sorted(versions, key=lambda folder: int(folder.parent.name), reverse=True)
    for folder in folders:
        if all(os.access(folder / program, os.X_OK) for program in ("initdb", "postgres")):
            return folder
    return None


@lru_cache(maxsize=1)
def version() -> str | None:
    """The server's release, '15.18'; None where its programs are not installed."""
    folder = programs()
    if folder is None or shutil.which("setpriv") is None:
        return None
    try:
        told = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True)
    except OSError:
        return None
    found = re.search(r"\d[\w.]*", told.stdout)
    return found[0] if told.returncode == 0 and found else None


class Server:
    """One that runs. `stop` has to be called, or it goes with this process, as after a power cut."""

    def __init__(self, location: Path, folder: int, process: subprocess.Popen[bytes]) -> None:
        """Takes the process over, and the descriptor of its folder."""
        self._location, self._folder, self._process = location, folder, process

    def connect(self, psycopg: Any) -> Any:
        """A connection on which each statement is a transaction. Raises psycopg's errors."""
        connection = psycopg.connect(
            host=_named(self._folder),
            port=5432,
            user=_user(),
            dbname="postgres",
            client_encoding="utf8",
            sslmode="disable",
            gssencmode="disable",
            options="",
            autocommit=True,
        )
        # Variables of the environment may name another server.
        if connection.execute("SHOW data_directory").fetchone() != (_named(self._folder),):
            connection.close()
            raise AdapterError(f"{self._location}: another PostgreSQL answers, unset PGHOSTADDR and PGSERVICE")
        return connection

    def wait_until_it_answers(self, psycopg: Any) -> None:
        """Raises AdapterError, with what the server says, for one that never does."""
        socket, pause = self._location / ".s.PGSQL.5432", threading.Event()
        for _ in range(int(START_LIMIT_S / START_LOOK_S)):
            if self._process.poll() is not None:
                break
            if socket.exists():
                try:
                    self.connect(psycopg).close()
                    return
                except psycopg.OperationalError:
                    pass
            pause.wait(START_LOOK_S)
        raise AdapterError(f"{self._location}: PostgreSQL cannot open it ({self._last_words()})")

    def _last_words(self) -> str:
        lines = (self._location / LOG).read_text(errors="replace").splitlines()
        told = [line for line in lines if "FATAL" in line or "PANIC" in line] or lines or ["it says nothing"]
        return told[-1].strip()

    def stop(self) -> None:
        """Once all it has in memory is in its files. A second call does nothing."""
        if self._folder < 0:
            return
        try:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signal.SIGQUIT)
                self._process.wait()
        finally:
            os.close(self._folder)
            self._folder = -1
        if self._process.returncode == 0:
            (self._location / SIZES).write_text(json.dumps(_sizes(self._location)))


def make(location: Path) -> None:
    """An empty data directory at `location`, which does not exist yet, and a superuser of our own name, who needs no
    password. Raises AdapterError."""
    location.mkdir(mode=0o700)
    account = _account()
    if account:
        os.chown(location, account["user"], account["group"])
    folder = _opened(location)
    try:
        initdb = [_program("initdb"), "-D", _named(folder), "--username", _user(), "--encoding=UTF8", "--no-locale"]
        # Who asks is told by the kernel; nobody is let in from elsewhere.
        done = subprocess.run(
            _watched("TERM", [*initdb, "--auth-local=peer", "--auth-host=reject"]),
            **_surroundings(folder),
            capture_output=True,
        )
    finally:
        os.close(folder)
    if done.returncode != 0:
        told = done.stderr.decode(errors="replace").strip().splitlines() or ["it says nothing"]
        raise AdapterError(f"{location}: PostgreSQL's initdb fails ({told[-1]})")


def start(location: Path, psycopg: Any, threads: int | None = None) -> Server:
    """A server for a data directory; with one thread it makes no workers for a query. Raises AdapterError."""
    _check_sizes(location)
    settings = _SETTINGS | ({"max_parallel_workers_per_gather": "0"} if threads == 1 else {})
    words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    folder = _opened(location)
    try:
        with (location / LOG).open("wb") as log:
            process = subprocess.Popen(
                _watched("QUIT", [_program("postgres"), "-D", _named(folder), *words]),
                **_surroundings(folder),
                stdout=log,
                stderr=log,
                # What ends our group would end the first of its processes alone.
                start_new_session=True,
            )
    except BaseException:
        os.close(folder)
        raise
    server = Server(location, folder, process)
    try:
        server.wait_until_it_answers(psycopg)
    except BaseException:
        server.stop()
        raise
    return server


def _program(name: str) -> str:
    folder = programs()
    if folder is None:
        raise AdapterError(f"PostgreSQL's programs are not installed: {INSTALL}")
    return str(folder / name)


def _opened(location: Path) -> int:
    return os.open(location, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def _named(folder: int) -> str:
    """The folder of a descriptor, for this process and for those that have it from us. So a path may be longer than
    that of a socket, and lead through folders that the server's account may not enter."""
    return f"/proc/self/fd/{folder}"


def _watched(ending: str, command: list[str]) -> list[str]:
    return ["setpriv", "--pdeathsig", ending, "sh", "-c", _WATCHED, "sh", str(os.getpid()), *command]


def _account() -> dict[str, Any]:
    """How subprocess makes a process that is not root's."""
    if os.geteuid() != 0:
        return {}
    try:
        found = pwd.getpwnam(_ACCOUNT)
    except KeyError:
        raise AdapterError(f"PostgreSQL is not run by root, and there is no user {_ACCOUNT}") from None
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}


@lru_cache(maxsize=1)
def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        raise AdapterError(f"PostgreSQL needs a user with a name, number {os.geteuid()} has none") from None


def _surroundings(folder: int) -> dict[str, Any]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {
        # With a time zone that is given none is looked for.
        "env": kept | {"LC_ALL": "C", "TZ": "UTC"},
        # PostgreSQL leaves the folder that it begins in, and has to find back.
        "cwd": "/",
        "stdin": subprocess.DEVNULL,
        "pass_fds": (folder,),
        **_account(),
    }


def _sizes(location: Path) -> dict[str, int]:
    """Of a thousand files; pathlib takes ten times as long over them."""
    found, folders = {}, [("", location)]
    while folders:
        within, folder = folders.pop()
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                folders.append((f"{within}{entry.name}/", Path(entry.path)))
            elif entry.is_file() and entry.name not in (LOG, SIZES):
                found[within + entry.name] = entry.stat().st_size
    return found


def _check_sizes(location: Path) -> None:
    """PostgreSQL takes a table whose file was cut for a shorter table. Raises AdapterError."""
    note = location / SIZES
    if not note.exists():
        # It did not stop by itself: what is whole is told by its log, which it replays.
        return
    found = _sizes(location)
    for name, size in json.loads(note.read_text()).items():
        if found.get(name) != size:
            there = f"has {found[name]:,} bytes" if name in found else "is missing"
            raise AdapterError(f"{location}: {name} {there}, it had {size:,} when the server stopped")
    # From now on they change.
    note.unlink()
