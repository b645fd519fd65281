"""Descendant processes are found however they were started and however the kernel lists them. Without any, a poll is
free."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from bench_runner.machine import process_tree

MB = 10**6
TAKES = "kept = b'x' * 50_000_000; print(flush=True); input()"


@pytest.fixture
def grandparent() -> Iterator[subprocess.Popen[bytes]]:
    """A process with one child that has allocated 50 MB."""
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {TAKES!r}])"
    command = [sys.executable, "-S", "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()
        yield started
        if started.poll() is None:
            started.communicate(b"\n")


@pytest.mark.parametrize("lists", [True, False])
@pytest.mark.rule(20)
def test_descendants_are_found_parents_first(
    grandparent: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, lists: bool
) -> None:
    if lists and not process_tree._LISTS_CHILDREN:
        pytest.skip("this kernel lists no children")
    monkeypatch.setattr(process_tree, "_LISTS_CHILDREN", lists)
    found = process_tree.descendants(os.getpid())
    (child,) = process_tree.descendants(grandparent.pid)
    assert found.index(grandparent.pid) < found.index(child)
    assert process_tree.descendants(child) == []


def test_a_tree_is_followed_as_it_grows_and_ends(grandparent: subprocess.Popen[bytes]) -> None:
    tree = process_tree.ProcessTree(grandparent.pid)
    try:
        assert tree.memory() == process_tree.NOTHING
        tree.look()
        assert len(tree.members) == 1
        assert tree.memory().private_bytes == pytest.approx(50 * MB, abs=8 * MB)
        grandparent.communicate(b"\n")
        assert tree.memory() == process_tree.NOTHING
        tree.look()
        tree.look()
    finally:
        tree.close()


@pytest.mark.rule(20)
def test_processes_are_not_listed_again_while_none_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no process has started since the last poll, a poll reads only the kernel's last process id."""
    walks: list[int] = []
    monkeypatch.setattr(process_tree, "descendants", lambda root: walks.append(root) or [])
    monkeypatch.setattr(process_tree, "LOOK_MS", 10**6)
    last_id = [b"0.1 0.1 0.1 1/100 7\n"]
    monkeypatch.setattr(os, "pread", lambda *arguments: last_id[0])
    tree = process_tree.ProcessTree(1)
    for _ in range(5):
        tree.look()
    assert len(walks) == 2, "at the first poll, and once more"
    last_id[0] = b"0.1 0.1 0.1 1/100 8\n"
    for _ in range(5):
        tree.look()
    assert len(walks) == 4
    monkeypatch.setattr(process_tree, "LOOK_MS", 0)
    tree.look()
    assert len(walks) == 5, "and now and then all the same"
    tree.close()


@pytest.mark.rule(20)
def test_cpu_time_is_counted_once_whether_waited_for_or_not() -> None:
    code = "import time\nwhile time.process_time() < 0.2: pass\nprint(flush=True); input()"
    before = process_tree.started_cpu_ns()
    with subprocess.Popen([sys.executable, "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()
        living = process_tree.started_cpu_ns() - before
        os.kill(started.pid, 9)
        os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)
        ended = process_tree.started_cpu_ns() - before
        started.wait()
        waited_for = process_tree.started_cpu_ns() - before
    for seen in (living, ended, waited_for):
        assert seen == pytest.approx(0.2e9, abs=0.06e9)


FORKS = f"""
import os
from bench_runner.machine import linux, process_tree
held = b"x" * {100 * MB}
reading, writing = os.pipe()
before = process_tree.started_memory().private_bytes
child = os.fork()
if child == 0:
    kept = b"y" * {30 * MB}
    os.write(writing, b"\\n")
    os.kill(os.getpid(), 19)
    os._exit(len(kept) + len(held))
try:
    os.read(reading, 1)
    grown = process_tree.started_memory().private_bytes - before
    print(grown, linux.share_memory(os.getpid(), child), linux.share_memory(child, child))
finally:
    os.kill(child, 9)
    os.waitpid(child, 0)
"""


@pytest.mark.rule(20)
def test_a_forked_process_has_only_what_is_its_own() -> None:
    """Runs in a separate process. Threads of the tests rewrite pages after the fork, which would count as the child's
    memory."""
    said = subprocess.run([sys.executable, "-c", FORKS], stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    assert int(said[0]) == pytest.approx(30 * MB, abs=4 * MB)
    assert said[1:] == ["False", "True"]
