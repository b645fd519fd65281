"""The functions that dask calls on a host: continue the host's part of a run, fetch its new results, and stop it.

The part is an ordinary run in a folder on the host. It has its own process, which ends when the dask worker that
started it ends. If this worker dies, another worker of the host continues in the same folder, so only the results of
the running chain are lost.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import data_generator.cache as data_cache
from bench_runner.machine import environment
from bench_runner.run.cluster.messages import HostFacts, HostTask, Piece, Progress, State
from bench_runner.run.launcher import PROJECT_ROOT, finding_project
from bench_runner.worker.messages import decode, encode

INFO = "run.json"
SAMPLES = "samples.jsonl"
APPENDED = (SAMPLES, "fidelity.jsonl")
"""Files of a run to which lines are only appended."""
MOST_BYTES = 250_000
"""Maximum number of bytes of each file in one answer. Sending this many bytes takes some seconds on a line of one
megabit per second."""
HOST_VARIABLE = "FORMAT_BENCH_HOST"
"""Environment variable with which the user names the host of a worker. If it is not set, the host is identified by the
boot id, which is the same for all workers of a machine."""
FINISHED, SOME_FAILED, REFUSED, STOPPED = 0, 3, 4, 130
"""Exit codes of a part's process. FINISHED: everything was measured. SOME_FAILED: some cells failed. REFUSED: the part
ended with an error message. STOPPED: SIGTERM ended the part. After an unhandled exception the exit code is 1."""
_STATES: dict[int | None, State] = {None: "running", FINISHED: "finished", SOME_FAILED: "finished", REFUSED: "refused"}
_parts: dict[str, subprocess.Popen[bytes]] = {}


def facts() -> bytes:
    """Return the encoded HostFacts of this host: its identity, processor, memory and library versions."""
    known = environment.machine_facts(None)
    state = environment.repository_state(PROJECT_ROOT)
    versions = {**environment.library_versions(), **{name: str(value) for name, value in state.items()}}
    named = os.environ.get(HOST_VARIABLE, "")
    found = HostFacts(
        identity=named or Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        name=named or str(known["name"]),
        cpu=str(known.get("cpu", "")),
        cores=int(known.get("cores", 0)),
        memory_bytes=int(known.get("memory_bytes", 0)),
        versions={name: version for name, version in versions.items() if version},
    )
    return encode(found)


def folder_of(run_id: str) -> Path:
    """Return the folder of the host's part of a run."""
    return data_cache.default_folder() / "cluster" / run_id


def sizes(run_id: str) -> dict[str, int]:
    """Return the size in bytes of each file of the part. Files that do not exist on this host are omitted."""
    folder = folder_of(run_id)
    return {name: (folder / name).stat().st_size for name in (*APPENDED, INFO) if (folder / name).exists()}


def put(run_id: str, name: str, content: bytes) -> None:
    """Restore a file of the part from the client's copy. Raises OSError, and ValueError if `name` is not a file that
    parts have."""
    if name not in (*APPENDED, INFO):
        raise ValueError(name)
    folder = folder_of(run_id)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def start(task: bytes) -> None:
    """Start or continue the host's part, unless this worker is executing the part already. `task` is an encoded
    HostTask. Raises OSError."""
    asked: HostTask = decode(task, HostTask)
    before = _parts.get(asked.run_id)
    if before is not None and before.poll() is None:
        return
    folder = folder_of(asked.run_id)
    folder.mkdir(parents=True, exist_ok=True)
    with _log(asked.run_id).open("wb") as printed:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "bench_runner.run.cluster.part", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=printed,
            env=_own_environment(),
            start_new_session=True,
        )
    assert process.stdin is not None
    # If the process has ended already, `progress` returns its message.
    with suppress(BrokenPipeError):
        process.stdin.write(task)
        process.stdin.close()
    _parts[asked.run_id] = process


def _own_environment() -> dict[str, str]:
    """Return the environment of the part, without the variables that dask's nanny sets for its workers. These variables
    restrict numerical libraries to one thread and change the memory allocator, so they would change the figures."""
    import dask

    names = dask.config.get("distributed.nanny.pre-spawn-environ", {})
    return finding_project({name: value for name, value in os.environ.items() if name not in names})


def progress(run_id: str, known: dict[str, int]) -> bytes:
    """Return an encoded Progress: what the part has measured since the client last asked. `known` has the number of
    bytes that the client has of each file."""
    folder = folder_of(run_id)
    process = _parts.get(run_id)
    # The process is polled before the files are read, so that an answer with its end has everything that it wrote.
    code = process.poll() if process is not None else -1
    pieces, is_more = [], False
    for name in APPENDED:
        with suppress(FileNotFoundError), (folder / name).open("rb") as file:
            file.seek(known.get(name, 0))
            content = file.read(MOST_BYTES)
            lines_end = content.rfind(b"\n") + 1
            is_more = is_more or len(content) == MOST_BYTES
            if lines_end:
                pieces.append(Piece(name, known.get(name, 0), content[:lines_end]))
    state: State = "running" if is_more else _STATES.get(code, "killed")
    message = _last_line(run_id) if state in ("refused", "killed") else ""
    info = (folder / INFO).read_bytes() if (folder / INFO).exists() else b""
    return encode(Progress(pieces=tuple(pieces), info=info, state=state, message=message))


def stop(run_id: str) -> None:
    """Ask a part to end. This takes some seconds, and no samples are lost. `progress` reports when the part has
    ended."""
    process = _parts.get(run_id)
    if process is not None:
        process.send_signal(signal.SIGTERM)


def forget(run_id: str) -> None:
    """Remove the host's folder of a part. Call this only after the part has ended and the client has copied its
    results."""
    _parts.pop(run_id, None)
    shutil.rmtree(folder_of(run_id), ignore_errors=True)
    _log(run_id).unlink(missing_ok=True)


def _log(run_id: str) -> Path:
    return folder_of(run_id).parent / f"{run_id}.log"


def _last_line(run_id: str) -> str:
    try:
        lines = _log(run_id).read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1][:400] if lines else ""
