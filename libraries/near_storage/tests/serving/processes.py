"""A catalog and nodes as separate processes, as a command line starts them; they can be killed and stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from libraries.near_storage.serving import security
from libraries.near_storage.serving.limits import Limits

ROOT = Path(__file__).parents[4]

SERVE = """
import sys
from pathlib import Path
from libraries.near_storage.serving.server_process import serve_catalog, serve_node
from libraries.near_storage.serving.limits import Limits

def ready(uri):
    print(uri, flush=True)

what, folder, secret, batch_bytes, memory_bytes, *rest = sys.argv[1:]
limits = Limits(batch_bytes=int(batch_bytes), memory_bytes=int(memory_bytes))
if what == "catalog":
    token, port = rest
    serve_catalog(Path(folder), secret.encode(), [token], port=int(port), limits=limits, ready=ready)
else:
    name, catalog, port = rest
    serve_node(Path(folder), secret.encode(), name, catalog, port=int(port), limits=limits, ready=ready)
"""


@dataclass
class Processes:
    folder: Path
    secret: str = field(default_factory=lambda: security.new_secret().decode())
    token: str = field(default_factory=security.new_token)
    uri: str = ""
    batch_bytes: int = 65_536
    memory_bytes: int = Limits().memory_bytes
    running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)

    def start(self, name: str, port: int = 0) -> None:
        """Start the catalog or a node; return when it answers."""
        arguments = [security.hash_token(self.token)] if name == "catalog" else [name, self.uri]
        what = "catalog" if name == "catalog" else "node"
        command = [sys.executable, "-c", SERVE, what, str(self.folder / name), self.secret, str(self.batch_bytes)]
        command += [str(self.memory_bytes), *arguments, str(port)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.running[name] = process
        assert process.stdout is not None
        self.addresses[name] = process.stdout.readline().strip()
        if name == "catalog":
            self.uri = self.addresses[name]
        assert self.addresses[name].startswith("grpc://"), process.stderr.read() if process.stderr else ""

    def send(self, name: str, number: signal.Signals) -> None:
        self.running[name].send_signal(number)

    def end(self, name: str) -> int:
        """Terminate it and wait; return its exit code."""
        self.send(name, signal.SIGTERM)
        return self.running.pop(name).wait(20)


@contextmanager
def processes(
    folder: Path, nodes: int = 2, batch_bytes: int = 65_536, memory_bytes: int = Limits().memory_bytes
) -> Iterator[Processes]:
    made = Processes(folder, batch_bytes=batch_bytes, memory_bytes=memory_bytes)
    try:
        for name in ("catalog", *(f"node{number}" for number in range(nodes))):
            made.start(name)
        yield made
    finally:
        for process in made.running.values():
            process.kill()
            process.communicate()
