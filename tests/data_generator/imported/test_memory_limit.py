"""Memory of the machine or of the tightest control group, with an invented /proc and /sys."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from data_generator.imported import import_worker, memory_limit

MIB = 1 << 20
V2 = "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate"
V1 = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"
CPU = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu"
HYBRID = "33 31 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"
INSIDE = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory"

CASES = {
    "no groups": ("", [], {}, None),
    "version 2": ("0::/job", [V2], {"job/memory.max": "100"}, 100),
    "version 2, unlimited": ("0::/job", [V2], {"job/memory.max": "max"}, None),
    "version 2, the group above is tighter": (
        "0::/pod/job",
        [V2],
        {"pod/job/memory.max": "300", "pod/memory.max": "200", "memory.max": "400"},
        200,
    ),
    "version 2, a container's own namespace": ("0::/", [V2], {"memory.max": "150"}, 150),
    "version 2, other groups do not count": ("0::/job", [V2], {"job2/memory.max": "100"}, None),
    "version 1": (
        "5:cpu:/x\n4:memory:/a/b",
        [CPU, V1],
        {"memory/a/b/memory.limit_in_bytes": "120", "memory/a/memory.limit_in_bytes": "9223372036854771712"},
        120,
    ),
    "version 1, a container that sees the group's name of outside": (
        "4:cpuset,memory:/docker/abc/job",
        [INSIDE],
        {"memory/job/memory.limit_in_bytes": "90", "memory/memory.limit_in_bytes": "80"},
        80,
    ),
    "both versions": (
        "4:memory:/a\n0::/b",
        [V1, HYBRID],
        {"memory/a/memory.limit_in_bytes": "120", "unified/b/memory.max": "max"},
        120,
    ),
}


@pytest.mark.parametrize(("groups", "mounts", "files", "limit_mib"), CASES.values(), ids=CASES)
def test_the_tightest_limit_counts(
    groups: str, mounts: list[str], files: dict[str, str], limit_mib: int | None, tmp_path: Path
) -> None:
    content = {"proc/self/cgroup": groups, "proc/self/mountinfo": "".join(f"{mount}\n" for mount in mounts)}
    for name, text in files.items():
        number = str(int(text) * MIB) if text.isdigit() and len(text) < 9 else text
        content[f"sys/fs/cgroup/{name}"] = number + "\n"
    for name, text in content.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    machine = memory_limit.usable_bytes(tmp_path / "nothing")
    assert machine > 1 << 30
    assert memory_limit.usable_bytes(tmp_path) == (machine if limit_mib is None else limit_mib * MIB)


def test_an_import_takes_half_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limit, "usable_bytes", lambda: 100 * MIB)
    code = "import sys, struct; sys.stdout.buffer.write(struct.pack('<cQ', b'n', 9) + b'%9s' % sys.argv[2].encode())"
    for memory_bytes, limit in ((1 << 30, 50 * MIB), (10 * MIB, 10 * MIB)):
        with import_worker.started(
            (sys.executable, "-c", code), {}, tmp_path, memory_bytes=memory_bytes, stall_s=60
        ) as answers:
            assert int(answers.frame(b"n")[1]) == limit
