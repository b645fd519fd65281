"""The functions that dask calls on a host: start the host's part of a run, fetch its new results, and stop it.

The part runs in a process of its own, which ends with the worker that started it, as an ordinary run in a folder on the
host. So a worker that dies costs the chain that was running: another worker of the same host continues the folder.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

import data_generator.cache as data_cache
from bench_runner.machine import environment
from bench_runner.run.cluster.messages import HostFacts, HostTask, Piece, Progress

APPENDED = ("samples.jsonl", "fidelity.jsonl")
"""Files of a run to which lines are only appended."""
MOST_BYTES = 8_000_000
"""Bytes of each file that one answer carries."""
HOST_VARIABLE = "FORMAT_BENCH_HOST"
"""Environment variable of a worker that names its host. Without it, workers with one boot id share a host."""
END_S = 30.0
"""Longest wait for a run to end in an orderly way."""
_runs: dict[str, subprocess.Popen[bytes]] = {}


def facts() -> bytes:
    """Return this host's HostFacts."""
    known = environment.machine_facts(None)
    state = environment.repository_state(Path(__file__).resolve().parents[3])
    versions = {**environment.library_versions(), **{name: str(value) for name, value in state.items()}}
    named = os.environ.get(HOST_VARIABLE, "")
    found = HostFacts(
        boot_id=named or Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        name=named or str(known["name"]),
        cpu=str(known.get("cpu", "")),
        cores=int(known.get("cores", 0)),
        memory_bytes=int(known.get("memory_bytes", 0)),
        versions={name: version for name, version in versions.items() if version},
    )
    return msgspec.msgpack.encode(found)


def folder_of(run_id: str) -> Path:
    """Return the folder of the host's part of a run."""
    return data_cache.default_folder() / "cluster" / run_id


def start(task: bytes) -> None:
    """Start or continue the host's part. Raises OSError."""
    asked = msgspec.msgpack.decode(task, type=HostTask, strict=False)
    folder = folder_of(asked.run_id)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{asked.run_id}.log").open("wb") as printed:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "bench_runner.run.cluster.part", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=printed,
            start_new_session=True,
        )
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(task)
        process.stdin.close()
    _runs[asked.run_id] = process


def progress(run_id: str, known: dict[str, int]) -> bytes:
    """Return the Progress of a run since the client has `known` bytes of each file."""
    folder = folder_of(run_id)
    process = _runs.get(run_id)
    # Ask for the end before reading, so that an answer that says 'ended' has everything.
    ended = None if process is None else process.poll()
    pieces = []
    for name in APPENDED:
        with suppress(FileNotFoundError), (folder / name).open("rb") as file:
            file.seek(known.get(name, 0))
            content = file.read(MOST_BYTES)
            whole = content.rfind(b"\n") + 1
            if whole:
                pieces.append(Piece(name, known.get(name, 0), content[:whole]))
    more = any(len(piece.content) > MOST_BYTES // 2 for piece in pieces)
    info = (folder / "run.json").read_bytes() if (folder / "run.json").exists() else b""
    said = _last_words(run_id) if ended not in (None, 0, 1) else ""
    found = Progress(pieces=tuple(pieces), info=info, ended=None if more else ended, last_words=said)
    return msgspec.msgpack.encode(found)


def stop(run_id: str) -> None:
    """End a run in an orderly way, and wait for its end."""
    process = _runs.get(run_id)
    if process is None or process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def forget(run_id: str) -> None:
    """Remove the host's folder of a run that the client has completely."""
    stop(run_id)
    _runs.pop(run_id, None)
    shutil.rmtree(folder_of(run_id), ignore_errors=True)
    (folder_of(run_id).parent / f"{run_id}.log").unlink(missing_ok=True)


def _last_words(run_id: str) -> str:
    with suppress(OSError):
        lines = (folder_of(run_id).parent / f"{run_id}.log").read_text(errors="replace").strip().splitlines()
        return lines[-1][:400] if lines else ""
    return ""
