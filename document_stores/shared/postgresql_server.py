"""Creating, starting and stopping a private PostgreSQL server for one folder, and connecting to it.

The folder is the server's data directory and also contains its socket and its log. The server listens only on this
socket, which only the server's account and root can access.
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
"""Longest wait, in seconds, until a starting server answers. After a crash the server first replays its log."""
START_LOOK_S = 0.01
"""Interval in seconds between connection attempts while the server starts."""
STOP_LIMIT_S = 60.0
"""Longest wait, in seconds, until a stopping server has written all changed data to its files. After this time the
server is killed."""

BUFFERS_BYTES = 128 << 20
"""Size of PostgreSQL's cache: its default for `shared_buffers`."""

LOG, SIZES = "server.log", "sizes.json"
"""Names of two files in the folder: the server's log, and the sizes of the server's files when it stopped."""

_DEBIAN = Path("/usr/lib/postgresql")
_ACCOUNT = "nobody"
"""Account that runs the server if this process runs as root, because PostgreSQL refuses to run as root."""

_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_directories": ".",
    "unix_socket_permissions": "0700",
    "port": "5432",
    # Shared memory is private to these processes, or a file in the folder.
    "shared_buffers": f"{BUFFERS_BYTES // 2**20}MB",
    "shared_memory_type": "mmap",
    "dynamic_shared_memory_type": "mmap",
    "allow_in_place_tablespaces": "on",
    # Maintenance is done in `settle`, not in the background during a measurement.
    "autovacuum": "off",
}

# The kernel ends the server when this process ends. The shell compares its parent's id, so that the server does not
# start if this process has already ended. setpriv, the shell and the server have the same process id.
_WATCHED = 'test "$PPID" = "$1" && shift && exec "$@"'


@lru_cache(maxsize=1)
def programs() -> Path | None:
    """Return the folder of the server's programs, or None if they are not installed. Programs on the PATH are
    preferred. Without these, the newest version in Debian's folder for PostgreSQL is used."""
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
    """Return the server's version, such as '15.18', or None if the server's programs, or the program setpriv, are not
    installed."""
    folder = programs()
    if folder is None or shutil.which("setpriv") is None:
        return None
    try:
        done = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True)
    except OSError:
        return None
    found = re.search(r"\d[\w.]*", done.stdout)
    return found[0] if done.returncode == 0 and found else None


class Server:
    """A running server. Call `stop` to end it cleanly. Otherwise it is killed when this process ends."""

    def __init__(self, location: Path, folder: int, process: subprocess.Popen[bytes]) -> None:
        """Take ownership of the server's process and of `folder`, the file descriptor of its folder."""
        self._location, self._folder, self._process = location, folder, process

    def connect(self, psycopg: Any) -> Any:
        """Return a connection on which each statement is a transaction. Raises psycopg's errors."""
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
        # Environment variables may have caused a connection to another server.
        if connection.execute("SHOW data_directory").fetchone() != (_named(self._folder),):
            connection.close()
            raise AdapterError(
                f"{self._location}: a PostgreSQL server with a different data directory answered; "
                "unset PGHOSTADDR and PGSERVICE"
            )
        return connection

    def wait_until_it_answers(self, psycopg: Any) -> None:
        """Wait until the server accepts a connection. Raises AdapterError, with the server's last message, if the
        server ends or does not answer in time."""
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
        raise AdapterError(f"{self._location}: PostgreSQL did not start ({self._last_words()})")

    def _last_words(self) -> str:
        lines = (self._location / LOG).read_text(errors="replace").splitlines()
        said = [line for line in lines if "FATAL" in line or "PANIC" in line] or lines or ["it gives no reason"]
        return said[-1].strip()

    def stop(self) -> None:
        """Stop the server after it has written everything to its files. A second call does nothing."""
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
    """Create an empty data directory at `location`, which must not exist.

    The database's superuser has the name of this process's user and no password. Raises AdapterError if PostgreSQL's
    initdb is not installed or fails.
    """
    location.mkdir(mode=0o700)
    account = _account()
    if account:
        os.chown(location, account["user"], account["group"])
    folder = _opened(location)
    try:
        initdb = [_program("initdb"), "-D", _named(folder), "--username", _user(), "--encoding=UTF8", "--no-locale"]
        # The kernel identifies the user of a connection; connections from elsewhere are refused.
        done = subprocess.run(
            _watched("TERM", [*initdb, "--auth-local=peer", "--auth-host=reject"]),
            **_surroundings(folder),
            capture_output=True,
        )
    finally:
        os.close(folder)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["it gives no reason"]
        raise AdapterError(f"{location}: PostgreSQL's initdb failed ({said[-1]})")


def start(location: Path, psycopg: Any, threads: int | None = None) -> Server:
    """Start a server for a data directory and return it. If `threads` is 1, queries do not use parallel processes.
    Raises AdapterError if files are damaged or the server does not start."""
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
                # Start a new session: a signal to this process's group would end only some of the server's processes.
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
        raise AdapterError(f"PostgreSQL's programs are not installed; run '{INSTALL}'")
    return str(folder / name)


def _opened(location: Path) -> int:
    return os.open(location, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def _named(folder: int) -> str:
    """Return a path for the folder of a file descriptor, for this process and for processes that inherit the
    descriptor.

    The folder's own path may be too long for a socket, or lead through folders that the server's account cannot enter.
    """
    return f"/proc/self/fd/{folder}"


def _watched(ending: str, command: list[str]) -> list[str]:
    return ["setpriv", "--pdeathsig", ending, "sh", "-c", _WATCHED, "sh", str(os.getpid()), *command]


def _account() -> dict[str, Any]:
    """Return keyword arguments with which subprocess starts a process under another account, if this process runs as
    root; otherwise an empty dict."""
    if os.geteuid() != 0:
        return {}
    try:
        found = pwd.getpwnam(_ACCOUNT)
    except KeyError:
        raise AdapterError(f"PostgreSQL cannot run as root; it needs the user {_ACCOUNT}, which is missing") from None
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}


@lru_cache(maxsize=1)
def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        raise AdapterError(f"PostgreSQL needs a user with a name, and the user ID {os.geteuid()} has no name") from None


def _surroundings(folder: int) -> dict[str, Any]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {
        # Without this time zone, initdb would search for the system's time zone.
        "env": kept | {"LC_ALL": "C", "TZ": "UTC"},
        # PostgreSQL must be able to return to the folder in which it starts.
        "cwd": "/",
        "stdin": subprocess.DEVNULL,
        "pass_fds": (folder,),
        **_account(),
    }


def _sizes(location: Path) -> dict[str, int]:
    """Return the size of each file in the folder, by relative path. os.scandir is used, because pathlib would take ten
    times as long for about a thousand files."""
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
    """Raise AdapterError if a file does not have the size that it had when the server stopped. (PostgreSQL would read a
    truncated file as a smaller table.)"""
    note = location / SIZES
    if not note.exists():
        # Without recorded sizes, the server was not stopped cleanly. It then recovers its files from its log.
        return
    found = _sizes(location)
    for name, size in json.loads(note.read_text()).items():
        if found.get(name) != size:
            there = f"has {found[name]:,} bytes" if name in found else "is missing"
            raise AdapterError(f"{location}: the file {name} {there}, but had {size:,} bytes when the server stopped")
    # The server starts next and will change these sizes.
    note.unlink()
