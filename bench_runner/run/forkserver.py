"""A process that has imported the libraries and forks a fresh worker for each job, in about 15 ms instead of a second.

It only forks: which job, and what comes of it, is its parent's business (bench_runner.run.launcher). Rule 18 of the
method: it is an optimisation that must not be seen in the figures; `--isolate spawn` does without it.

Requests come as JSON over a Unix socket that keeps message bounds; a job's descriptors come along with it.
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
"""The most that a request for a worker may take."""


def preload(variants: Iterable[str], strings: str) -> dict[str, str]:
    """Load the libraries of the variants, with `strings` as pandas' dtype of text; returns the reason for each that
    could not be."""
    from bench_runner import registries
    from bench_runner.machine import linux
    from bench_runner.operations import targets
    from bench_runner.worker import jobs as worker

    # Some libraries, such as fastparquet, ask pandas for its dtype of text once, when they are loaded.
    targets.apply_strings(targets.Target(strings=strings))

    # Lance warns at each fork, because its thread pools would not survive one; they start at its first call, which
    # no forkserver makes.
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    # Polars likewise, whose pool starts with its first call.
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
    """Fork a worker for each request until the parent closes the socket."""
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
    """Entry: `python -m bench_runner.run.forkserver PARENT SOCKET`."""
    from bench_runner.machine import linux

    parent, descriptor = map(int, sys.argv[1:3])
    linux.die_with_parent(parent)
    serve(socket.socket(fileno=descriptor))


if __name__ == "__main__":
    main()
