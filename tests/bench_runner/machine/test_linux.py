"""The probes of the kernel, each tested with a known quantity."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bench_runner.machine import linux

MB = 10**6


def in_a_child(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.disk
@pytest.mark.rule(14)
def test_page_cache_is_seen_evicted_and_filled(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(5 * MB + 123))
    assert linux.resident_file_bytes(path) == 5 * MB + 123
    linux.fsync_all(path)
    linux.evict_file(path)
    assert linux.resident_file_bytes(path) == 0
    linux.read_through(path)
    assert linux.resident_file_bytes(path) == 5 * MB + 123


def test_an_empty_file_has_nothing_resident(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    assert linux.resident_file_bytes(path) == 0


@pytest.mark.rule(14)
def test_eviction_fails_while_the_file_is_mapped(tmp_path: Path) -> None:
    """For this reason the worker that reads starts only after the worker that saved has ended (rule 14)."""
    path = tmp_path / "file"
    path.write_bytes(os.urandom(MB))
    linux.fsync_all(path)
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) as mapping:
        assert sum(mapping[::4096]) > 0
        linux.evict_file(path)
        assert linux.resident_file_bytes(path) > 0.9 * MB


@pytest.mark.rule(3)
def test_high_water_is_seen_after_a_reset_only() -> None:
    """Without the reset, an earlier peak hides a later one: allocating 100 MB would be measured as 0."""
    said = in_a_child(
        "from bench_runner.machine import linux\nimport numpy as np\n"
        "np.ones(300_000_000, np.uint8)\n"
        "before = linux.high_water_bytes(); np.ones(100_000_000, np.uint8); print(linux.high_water_bytes() - before)\n"
        "linux.reset_high_water()\n"
        "before = linux.high_water_bytes(); np.ones(100_000_000, np.uint8); print(linux.high_water_bytes() - before)\n"
    )
    hidden, seen = map(int, said.split())
    assert hidden == 0
    # The kernel's kB are 1,024 bytes, 2.4 % more than 1,000.
    assert seen == pytest.approx(100 * MB, rel=0.015)


def test_of_what_was_asked_for_looking_is_no_part(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(1_000))
    said = in_a_child(
        "import os; from bench_runner.machine import linux\n"
        f"descriptor = os.open({str(tmp_path / 'file')!r}, os.O_RDONLY)\n"
        "before = linux.io_bytes(); os.read(descriptor, 1_000); print(linux.io_bytes().asked_since(before))\n"
    )
    assert int(said) == 1_000


@pytest.mark.rule(13)
def test_mapped_file_pages_are_shared_not_private(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(50 * MB))
    before = linux.own_memory()
    mapped = np.memmap(path, dtype=np.uint8, mode="r")
    assert int(mapped[::4096].sum()) == 0
    after = linux.own_memory()
    assert after.resident_bytes - before.resident_bytes > 45 * MB
    assert after.private_bytes - before.private_bytes < 5 * MB
    assert any(path.name in mapping[2] for mapping in linux.file_mappings())


def test_memory_of_a_process_that_has_gone() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    reader = linux.MemoryReader(child.pid)
    level = reader.read()
    assert level is not None
    assert level.private_bytes > MB
    child.communicate(b"\n")
    assert reader.read() is None
    reader.close()


@pytest.mark.disk
@pytest.mark.rule(14)
def test_dirtied_bytes_are_counted(tmp_path: Path) -> None:
    """write_bytes counts pages dirtied in the cache, not bytes that reached the device."""
    said = in_a_child(
        "from bench_runner.machine import linux\nfrom pathlib import Path\n"
        "before = linux.io_bytes()[1]\n"
        f"Path({str(tmp_path / 'file')!r}).write_bytes(bytes(8_000_000))\n"
        "print(linux.io_bytes()[1] - before)\n"
    )
    assert int(said) == pytest.approx(8 * MB, rel=0.02)


@pytest.mark.rule(6)
def test_a_stored_copy_is_synced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Synced are every file, every folder (even one without files) and the parent folder, which has the new name (rule
    6)."""
    stored = tmp_path / "stored" / "table.lance"
    for folder in ("data/deep", "empty"):
        (stored / folder).mkdir(parents=True)
    for file in ("top", "data/deep/one"):
        (stored / file).write_text("x")
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    linux.fsync_all(stored)
    inside = ("top", "data/deep/one", ".", "data", "data/deep", "empty")
    assert sorted(synced) == sorted([str(tmp_path / "stored"), *(str(stored / name) for name in inside)])

    synced.clear()
    linux.fsync_all(stored / "top")
    assert sorted(synced) == sorted([str(stored), str(stored / "top")])


@pytest.mark.rule(3)
def test_freed_heap_goes_back_to_the_kernel() -> None:
    """Otherwise a later allocation reuses freed memory and is measured as 0 (rule 3)."""
    said = in_a_child(
        "from bench_runner.machine import linux\n"
        "before = linux.own_memory().private_bytes\n"
        # Each block is too small for a separate mapping. The last one stays allocated, so the heap cannot shrink from
        # its end.
        "kept = [bytearray(8_000) for _ in range(10_000)]; kept[:-1] = []\n"
        "print(linux.own_memory().private_bytes - before)\n"
        "linux.trim_heap()\n"
        "print(linux.own_memory().private_bytes - before)\n"
    )
    freed, trimmed = map(int, said.split())
    assert freed > 70 * MB, "this C library gives back by itself: the test shows nothing"
    assert trimmed < 5 * MB


def test_files_below_lists_files_only(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two").write_text("2")
    (tmp_path / "a").write_text("1")
    assert [path.name for path in linux.files_below(tmp_path)] == ["a", "two"]
    assert [path.name for path in linux.files_below(tmp_path / "a")] == ["a"]
    assert list(linux.files_below(tmp_path / "absent")) == []


def test_a_confined_process_writes_only_where_it_may(tmp_path: Path) -> None:
    allowed, other = tmp_path / "allowed", tmp_path / "other"
    allowed.mkdir()
    other.mkdir()
    said = in_a_child(
        "from bench_runner.machine import linux\nfrom pathlib import Path\n"
        f"print(linux.confine_writes([Path({str(allowed)!r})]))\n"
        f"Path({str(allowed)!r}, 'x').write_text('x')\n"
        f"Path({str(allowed)!r}, 'x').rename(Path({str(allowed)!r}, 'y'))\n"
        f"Path({str(allowed)!r}, 'y').unlink()\n"
        "try:\n"
        f"    Path({str(other)!r}, 'x').write_text('x'); print('written')\n"
        "except PermissionError:\n    print('refused')\n"
    )
    confined, outcome = said.split()
    assert outcome == ("refused" if confined == "True" else "written")


@pytest.mark.rule(5)
def test_die_with_parent_ends_a_child_whose_parent_is_gone() -> None:
    said = in_a_child(
        "import os, time\nfrom bench_runner.machine import linux\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    linux.die_with_parent(1 << 22)\n"
        "    os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert said.strip() == "1"
