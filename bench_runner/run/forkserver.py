"""The forkserver: a process that has imported the libraries and forks a fresh worker for each task. A fork takes about
15 ms, while a new process that imports the libraries takes about a second.

The forkserver only forks. bench_runner.run.launcher sends the tasks and handles the results. Forking must not affect
the results (rule 18 of docs/method.md). `--isolate spawn` runs without a forkserver.

Each request is one JSON message on a Unix socket that preserves message boundaries. The file descriptors for the worker
are attached to the message.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
import traceback
import warnings
from collections.abc import Iterable

MESSAGE_BYTES = 1 << 20
"""Size limit of a request for a worker."""


def preload(variants: Iterable[str], strings: str) -> dict[str, str]:
    """Load the libraries of the variants, with `strings` as pandas' dtype for text. If the library of a variant cannot
    be loaded, the returned dict maps the variant to the reason."""
    from bench_runner import registries
    from bench_runner.machine import linux
    from bench_runner.operations import targets
    from bench_runner.worker import jobs as worker

    # Some libraries, such as fastparquet, read pandas' dtype of text only once, when they are loaded.
    targets.apply_strings(targets.Target(strings=strings))

    # Lance warns at each fork, because its threads would not survive a fork. It starts them at its first call, and the
    # forkserver never calls Lance.
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    # The same is true of polars, whose thread pool starts at its first call.
    warnings.filterwarnings("ignore", message="Using fork\\(\\) can cause Polars to deadlock")
    failures = {}
    for variant in variants:
        try:
            registries.build(variant).load_library()
        except Exception as error:
            failures[variant] = worker.classify(error).reason
    gc.collect()
    linux.trim_heap()
    return failures


def serve(control: socket.socket) -> None:
    """Fork a worker for each request, until the parent closes the socket."""
    from bench_runner.worker import jobs as worker
    from bench_runner.worker.messages import AnyTask, Ended, Preload, Preloaded, Started, decode, encode

    me = os.getpid()
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, MESSAGE_BYTES, 2)
        if not message:
            return
        request: Preload | AnyTask = decode(message, Preload | AnyTask)
        if isinstance(request, Preload):
            control.send(encode(Preloaded(preload(request.variants, request.strings))))
            continue
        answers, phase_page = descriptors
        child = os.fork()
        if child == 0:
            try:
                control.close()
                worker.become_worker(request, me)
                worker.run_job(request, answers, phase_page)
                sys.stdout.flush()
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        os.close(answers)
        os.close(phase_page)
        control.send(encode(Started(child)))
        _, status = os.waitpid(child, 0)
        control.send(encode(Ended(status)))


def main() -> None:
    """Entry point: `python -m bench_runner.run.forkserver PARENT SOCKET`."""
    from bench_runner.machine import linux

    parent, descriptor = map(int, sys.argv[1:3])
    linux.die_with_parent(parent)
    serve(socket.socket(fileno=descriptor))


if __name__ == "__main__":
    main()
