"""The memory limit of a server, from its control groups."""

from pathlib import Path

from libraries.near_storage.serving.memory_limit import MOST_BYTES, default_memory_bytes
from libraries.near_storage.serving.resident import Resident, resident_bytes


def put(system: Path, name: str, text: str) -> None:
    (system / name).parent.mkdir(parents=True, exist_ok=True)
    (system / name).write_text(text)


def test_groups_around_its_own_count(tmp_path: Path):
    put(tmp_path, "proc/self/cgroup", "0::/outer/inner\n")
    put(tmp_path, "sys/fs/cgroup/outer/inner/memory.max", "max\n")
    put(tmp_path, "sys/fs/cgroup/outer/memory.max", "300000000\n")
    assert default_memory_bytes(tmp_path) == 75_000_000


def test_groups_of_the_first_kind(tmp_path: Path):
    put(tmp_path, "proc/self/cgroup", "9:cpu:/x\n4:memory,hugetlb:/job\n0::/\n")
    put(tmp_path, "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "400000000\n")
    put(tmp_path, "sys/fs/cgroup/memory/memory.limit_in_bytes", f"{2**63 - 4096}\n")
    assert default_memory_bytes(tmp_path) == 100_000_000


def test_without_a_limit_it_is_500_mb_or_a_share_of_the_machine(tmp_path: Path):
    assert 0 < default_memory_bytes(tmp_path) <= MOST_BYTES
    put(tmp_path, "proc/self/cgroup", "nonsense\n\n0\n")
    assert default_memory_bytes(tmp_path) == default_memory_bytes(tmp_path / "nothing")


def test_what_was_freed_is_given_back(monkeypatch):
    from libraries.near_storage.serving import resident

    calls = []
    monkeypatch.setattr(resident, "_TRIM", calls.append)
    monkeypatch.setattr(resident, "EVERY_S", 0.0)
    found = Resident(1_000)
    monkeypatch.setattr(resident, "resident_bytes", lambda: found._at_rest_bytes + 399)
    found.tidy()
    assert calls == []
    monkeypatch.setattr(resident, "resident_bytes", lambda: found._at_rest_bytes + 401)
    found.tidy()
    assert calls == [0]
    assert resident_bytes() > 10**6
