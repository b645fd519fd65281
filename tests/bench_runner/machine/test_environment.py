"""Facts about the machine, read from made-up /proc and /sys trees and from the real machine."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from adapters.contract import Adapter, Program
from bench_runner import registries
from bench_runner.machine import environment, folders

MOUNTS = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda1 rw,discard
30 27 0:27 / /data rw,relatime - xfs /dev/nvme0n1p2 rw
31 27 0:28 / /data/with\\040blank rw,relatime - nfs4 filer:/export rw,addr=10.0.0.7,clientaddr=10.0.0.9
32 27 0:29 / /twice rw - ext4 /dev/vda1 rw
33 27 0:30 / /twice rw - tmpfs tmpfs rw,size=1k
34 27 0:31 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
35 27 0:32 / /sys/fs/v1/memory rw - cgroup cgroup rw,memory
36 27 0:33 / /sys/fs/v1/cpu rw - cgroup cgroup rw,cpu,cpuacct
"""


@pytest.fixture
def system(tmp_path):
    """An empty root folder for made-up /proc and /sys trees."""
    root = tmp_path / "root"
    put(root, "proc/self/mountinfo", MOUNTS)
    return root


def put(root: Path, path: str, text: str) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


# --- machine ---------------------------------------------------------------------------------------------


def test_facts_of_this_machine_are_json_and_agree_with_other_sources():
    facts = environment.machine_facts()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["name"] == platform.node()
    assert facts["cores"] == os.cpu_count()
    assert facts["memory_bytes"] == psutil.virtual_memory().total
    assert facts["kernel"] == f"Linux {os.uname().release}"
    assert facts["python"].endswith(platform.python_version())
    assert 0 < facts["timer_resolution_ns"] < 1_000_000


def test_the_given_name_replaces_the_hosts():
    assert environment.machine_facts("box")["name"] == "box"


def test_no_source_leaves_the_key_out(tmp_path):
    facts = environment.machine_facts("box", system=tmp_path)
    assert None not in facts.values()
    for key in (
        "governor",
        "turbo",
        "virtualisation",
        "container",
        "clock_source",
        "aslr",
        "numa_nodes",
        "transparent_huge_pages",
        "memory_limit_bytes",
        "cpu_limit_cores",
        "affinity",
    ):
        assert key not in facts
    assert facts["memory_bytes"] > 0


def test_governors_of_all_cores(system):
    put(system, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n")
    put(system, "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n")
    assert environment.governor(system=system) == "performance"
    put(system, "sys/devices/system/cpu/cpu11/cpufreq/scaling_governor", "powersave\n")
    assert environment.governor(system=system) == "performance, powersave"


@pytest.mark.parametrize(
    ("path", "text", "on"),
    [
        ("intel_pstate/no_turbo", "0", True),
        ("intel_pstate/no_turbo", "1", False),
        ("cpufreq/boost", "1", True),
        ("cpufreq/boost", "0", False),
    ],
)
def test_turbo_is_spelled_in_opposite_ways(system, path, text, on):
    put(system, f"sys/devices/system/cpu/{path}", f"{text}\n")
    assert environment.turbo(system=system) is on


@pytest.mark.parametrize(
    ("flags", "vendor", "product", "expected"),
    [
        ("fpu vme hypervisor", "QEMU", "Standard PC", "kvm"),
        ("fpu vme hypervisor", None, None, "virtual machine"),
        ("fpu vme hypervisor", "Microsoft Corporation", "Virtual Machine", "microsoft"),
        ("fpu vme", "Microsoft Corporation", "Surface Laptop", "none"),
        ("fpu vme", "Amazon EC2", "m5.metal", "none"),
        (None, "QEMU", "QEMU Virtual Machine", "kvm"),
        (None, "Amazon EC2", "m6g.metal", None),
        (None, None, None, None),
    ],
)
def test_virtual_machine(system, flags, vendor, product, expected):
    if flags:
        put(system, "proc/cpuinfo", f"processor\t: 0\nflags\t\t: {flags}\n")
    if vendor:
        put(system, "sys/class/dmi/id/sys_vendor", vendor)
        put(system, "sys/class/dmi/id/product_name", product)
    assert environment.virtualisation(system=system) == expected


def test_container(system):
    assert environment.container(system=system) is None
    put(system, "proc/1/cgroup", "12:memory:/kubepods/burstable/pod7\n")
    assert environment.container(system=system) == "kubepods"
    put(system, ".dockerenv", "")
    assert environment.container(system=system) == "docker"


def test_memory_limit_is_the_lowest_of_the_groups_above(system):
    put(system, "proc/self/cgroup", "0::/outer/inner\n")
    put(system, "sys/fs/cgroup/outer/inner/memory.max", "max\n")
    assert environment.memory_limit_bytes(system=system) is None
    put(system, "sys/fs/cgroup/outer/memory.max", "300000000\n")
    put(system, "sys/fs/cgroup/memory.max", "400000000\n")
    assert environment.memory_limit_bytes(system=system) == 300_000_000


def test_what_a_limit_leaves_counts_what_the_group_uses_but_for_page_cache(system):
    put(system, "proc/self/cgroup", "0::/outer/inner\n")
    assert environment.memory_left_bytes(system=system) is None
    put(system, "sys/fs/cgroup/outer/memory.max", "300000000\n")
    put(system, "sys/fs/cgroup/outer/memory.current", "200000000\n")
    put(system, "sys/fs/cgroup/outer/memory.stat", "anon 100000000\nactive_file 30000000\ninactive_file 20000000\n")
    put(system, "sys/fs/cgroup/memory.max", "400000000\n")
    put(system, "sys/fs/cgroup/memory.current", "210000000\n")
    assert environment.memory_left_bytes(system=system) == 150_000_000


def test_what_a_limit_of_version_1_leaves(system):
    put(system, "proc/self/cgroup", "5:memory:/job\n")
    put(system, "sys/fs/v1/memory/job/memory.limit_in_bytes", "500000000\n")
    put(system, "sys/fs/v1/memory/job/memory.usage_in_bytes", "450000000\n")
    put(system, "sys/fs/v1/memory/job/memory.stat", "total_active_file 0\ntotal_inactive_file 50000000\n")
    assert environment.memory_left_bytes(system=system) == 100_000_000


def test_limits_of_version_1(system):
    put(system, "proc/self/cgroup", "5:memory:/job\n4:cpu,cpuacct:/job\n")
    put(system, "sys/fs/v1/memory/job/memory.limit_in_bytes", "500000000\n")
    put(system, "sys/fs/v1/memory/memory.limit_in_bytes", f"{2**63 - 4096}\n")
    put(system, "sys/fs/v1/cpu/job/cpu.cfs_quota_us", "150000\n")
    put(system, "sys/fs/v1/cpu/job/cpu.cfs_period_us", "100000\n")
    put(system, "sys/fs/v1/cpu/cpu.cfs_quota_us", "-1\n")
    put(system, "sys/fs/v1/cpu/cpu.cfs_period_us", "100000\n")
    assert environment.memory_limit_bytes(system=system) == 500_000_000
    assert environment.cpu_limit_cores(system=system) == 1.5


def test_cpu_quota_of_version_2(system):
    put(system, "proc/self/cgroup", "0::/job\n")
    put(system, "sys/fs/cgroup/cpu.max", "max 100000\n")
    assert environment.cpu_limit_cores(system=system) is None
    put(system, "sys/fs/cgroup/job/cpu.max", "50000 100000\n")
    assert environment.cpu_limit_cores(system=system) == 0.5
    put(system, "sys/fs/cgroup/cpu.max", "200000 100000\n")
    assert environment.cpu_limit_cores(system=system) == 0.5, "the lowest of nested groups"


# --- names -----------------------------------------------------------------------------------------------


def test_the_hosts_name_goes_everywhere():
    run = {
        "command": ["run", "--work-dir", "/mnt/pluto/x", "--data=/home/PLUTO.csv"],
        "device": "/dev/mapper/pluto--vg-root",
        "work_dirs": {"/mnt/pluto": ({"path": "pluto.example.org:/x"}, 7, None, True)},
    }
    assert environment.replace_host(run, "box", host="pluto.example.org") == {
        "command": ["run", "--work-dir", "/mnt/box/x", "--data=/home/box.csv"],
        "device": "/dev/mapper/box--vg-root",
        "work_dirs": {"/mnt/box": [{"path": "box:/x"}, 7, None, True]},
    }


def test_a_host_called_like_a_field_does_not_rename_it():
    assert environment.replace_host({"seed": "of seed"}, "box", host="seed") == {"seed": "of box"}


def test_only_whole_words_are_the_hosts_name():
    clocks = ["kvm-clock", "vm.swappiness", "nvm"]
    assert environment.replace_host(clocks, "box", host="vm") == ["kvm-clock", "box.swappiness", "nvm"]


def test_hyphens_that_device_mapper_doubles():
    assert environment.replace_host("/dev/mapper/my--host-root", "box", host="my-host") == "/dev/mapper/box-root"


@pytest.mark.parametrize("name", ["lab-vm", "vm-lab", "vm", "VM", "a.vm.b", "lab--vm"])
def test_a_name_that_holds_the_hosts_is_not_doubled(name: str):
    shape = {"machine": name, "command": ["run", "--machine", name, "--out", f"/mnt/{name}/x"], "path": "/mnt/vm"}
    once = environment.replace_host(shape, name, host="vm")
    assert once == {**shape, "path": f"/mnt/{name}"}
    assert environment.replace_host(once, name, host="vm") == once


def test_without_a_name_nothing_is_replaced():
    shape = {"path": "/pluto", "rounds": (1, 2)}
    assert environment.replace_host(shape, None, host="pluto") is shape


# --- libraries and code ----------------------------------------------------------------------------------


def test_versions_of_what_is_installed():
    versions = environment.library_versions()
    assert versions["python"] == platform.python_version()
    assert {"numpy", "pandas", "pyarrow", "scipy", "pylance", "fastavro"} <= set(versions)
    assert all(versions.values())


def test_versions_of_what_some_engines_need():
    class OfServer(Adapter):
        distributions = ("a-server",)
        programs = (Program("server", lambda: pytest.fail("the server is asked for its version"), "apt install it"),)

    csv, _ = registries.engine_of("csv[engine=pandas]")
    avro, _ = registries.engine_of("avro[engine=fastavro]")
    assert environment.library_names([OfServer]) - environment.library_names(()) == {"a-server", "server"}
    few, more = environment.library_versions([csv]), environment.library_versions(iter([csv, avro]))
    assert ("fastavro" in few, "fastavro" in more) == (False, True)
    assert few.items() <= more.items() <= environment.library_versions().items()


def test_only_modules_of_formats_are_imported_for_the_versions():
    code = (
        "import sys; from bench_runner.machine.environment import library_versions; library_versions();"
        "heavy = {'lance', 'vortex', 'tables', 'fastavro', 'h5py', 'openpyxl'} & set(sys.modules);"
        "sys.exit(' '.join(heavy) or 0)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr


@pytest.fixture
def checkout(tmp_path):
    """A repository with one commit."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "file").write_text("1")
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    for words in (["init", "-q"], ["add", "file"], [*identity, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    return folder


def test_repository_clean_and_dirty(checkout):
    state = environment.repository_state(checkout)
    assert len(state["commit"]) == 40
    assert state["dirty"] is False
    (checkout / "file").write_text("2")
    changed = environment.repository_state(checkout)
    assert changed == {**state, "dirty": True, "changes": changed["changes"]}


def test_a_new_file_makes_it_dirty(checkout):
    (checkout / "new.py").write_text("")
    assert environment.repository_state(checkout)["dirty"] is True


def test_new_folders_at_the_top_hold_results_not_code(checkout):
    before = environment.repository_state(checkout)
    (checkout / "my results").mkdir()
    (checkout / "my results" / "run.json").write_text("{}")
    (checkout / "mine").mkdir()
    (checkout / "mine" / "run.json").write_text("{}")
    for setting in ("all", "no", "normal"):
        subprocess.run(["git", "-C", str(checkout), "config", "status.showUntrackedFiles", setting], check=True)
        assert environment.repository_state(checkout) == before


def test_a_new_file_next_to_the_code_makes_it_dirty(checkout):
    (checkout / "room").mkdir()
    (checkout / "room" / "code.py").write_text("")
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    for words in (["add", "room"], [*identity, "commit", "-q", "-m", "second"]):
        subprocess.run(["git", "-C", str(checkout), *words], check=True)
    (checkout / "room" / "new.py").write_text("")
    for setting in ("all", "no", "normal"):
        subprocess.run(["git", "-C", str(checkout), "config", "status.showUntrackedFiles", setting], check=True)
        assert environment.repository_state(checkout)["dirty"] is True


def test_a_folder_inside_somebody_elses_repository_has_no_state(checkout):
    inner = checkout / "unpacked"
    inner.mkdir()
    assert environment.repository_state(inner) == {}


def test_no_git_no_state(checkout, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert environment.repository_state(checkout) == {}


# --- folders ---------------------------------------------------------------------------------------------


def test_file_system_agrees_with_findmnt_where_there_is_one(tmp_path):
    facts = folders.folder_facts(tmp_path)
    assert json.loads(json.dumps(facts)) == facts
    assert facts["free_bytes"] > 0
    assert facts["block_bytes"] >= 512
    try:
        found = subprocess.run(["findmnt", "-no", "FSTYPE,TARGET", "-T", str(tmp_path)], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("no findmnt here")
    # findmnt prints a line for each mount at this point. Only the last mount is visible.
    filesystem, target = found.stdout.splitlines()[-1].split()
    assert (facts["filesystem"].partition(" on ")[0], facts["mount_point"]) == (filesystem, target)


@pytest.mark.parametrize(
    ("folder", "filesystem", "point"),
    [
        ("/home/me", "ext4", "/"),
        ("/data", "xfs", "/data"),
        ("/data/deep/down", "xfs", "/data"),
        ("/database", "ext4", "/"),
        ("/data/with blank/x", "nfs4", "/data/with blank"),
        ("/twice/x", "tmpfs", "/twice"),
    ],
)
def test_the_longest_prefix_and_the_last_mount_win(system, folder, filesystem, point):
    mount = folders._mount_of(Path(folder), list(folders.all_mounts(system)))
    assert (mount.filesystem, mount.point) == (filesystem, point)


def test_addresses_of_network_mounts_are_not_stored(system):
    mount = folders._mount_of(Path("/data/with blank"), list(folders.all_mounts(system)))
    assert folders._mount_options(mount) == "rw,relatime"


def test_an_overlay_has_the_file_system_of_its_upper_folder(tmp_path, system):
    def overlay(point: str, upper: Path | str):
        text = f"40 27 0:40 / {point} rw - overlay overlay rw,lowerdir=/a,upperdir={upper},workdir=/w"
        return folders._filesystem(folders.Mount.of(text), system)

    assert overlay("/merged", tmp_path) == "overlay on ext4"
    assert overlay("/merged", tmp_path / "gone") == "overlay"
    # In the root of a container, the upper folder is a path of the host, even if the same path exists in the container.
    assert overlay("/", tmp_path) == "overlay"


def test_a_partition_takes_the_facts_of_its_disk(system):
    disk = "sys/devices/pci0/nvme0n1"
    put(system, f"{disk}/queue/rotational", "0\n")
    put(system, f"{disk}/queue/read_ahead_kb", "128\n")
    put(system, f"{disk}/device/model", "ACME 980 PRO\n")
    put(system, f"{disk}/nvme0n1p2/partition", "2\n")
    (system / "sys/class/block").mkdir(parents=True)
    (system / "sys/class/block/nvme0n1p2").symlink_to(system / disk / "nvme0n1p2")
    facts = folders._device_facts("/dev/nvme0n1p2", system)
    assert facts == {"rotational": False, "nvme": True, "read_ahead_kb": 128, "device_model": "ACME 980 PRO"}


@pytest.mark.parametrize(("task", "journal"), [("<none>", False), ("412", True)])
def test_the_journal_of_ext4_is_recorded(system, task, journal):
    put(system, "sys/fs/ext4/vda/journal_task", f"{task}\n")
    assert folders._device_facts("/dev/vda", system) == {"journal": journal}


def test_an_unknown_device_adds_nothing(system):
    assert folders._device_facts("/dev/sdz9", system) == {}
    assert folders._device_facts("tmpfs", system) == {}


@pytest.mark.parametrize("filesystem", ["ext4", "xfs", "btrfs", "overlay on ext4"])
def test_cold_can_be_had(filesystem):
    assert folders.supports_cold(filesystem) is None


@pytest.mark.parametrize(
    ("filesystem", "reason"),
    [
        ("tmpfs", "is in memory"),
        ("ramfs", "is in memory"),
        ("zfs", "ARC"),
        ("nfs", "server's cache"),
        ("nfs4", "server's cache"),
        ("cifs", "server's cache"),
        ("9p", "server's cache"),
        ("fuse.sshfs", "a program"),
        ("fuseblk", "a program"),
        ("overlay", "mounted volume"),
        ("overlay on tmpfs", "is in memory"),
        ("newfs", "not among"),
        (None, "unknown"),
    ],
)
@pytest.mark.rule(14)
def test_cold_is_refused_with_a_reason(filesystem, reason):
    assert reason in folders.supports_cold(filesystem)


# --- the moment ------------------------------------------------------------------------------------------


def test_load_is_the_kernels(system):
    put(system, "proc/loadavg", "0.05 0.13 0.09 3/87 4699\n")
    assert environment.load(system=system)["runnable"] == 3
    assert environment.load()["one_minute"] == pytest.approx(os.getloadavg()[0], abs=0.5)


SPIN = """
import time
print("on", flush=True)
end = time.monotonic() + 20
while time.monotonic() < end:
    pass
"""


@pytest.fixture
def named(tmp_path):
    """Make an interpreter whose processes have a different name."""

    def make(name: str) -> str:
        link = tmp_path / name
        link.symlink_to(os.path.realpath(sys.executable))
        return str(link)

    return make


def test_a_busy_process_is_listed_by_name_only(named):
    """A grandchild whose parent has ended is no longer a descendant of this process, so it counts as a foreign
    process."""
    code = (
        "import subprocess as s, sys;"
        f"print(s.Popen([{named('stranger')!r}, '-c', {SPIN!r}, 'secret'], stdout=s.DEVNULL, stderr=s.DEVNULL).pid)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    stranger = psutil.Process(int(answer.stdout))
    try:
        # If other processes keep all cores busy, this process may not get enough CPU time to be listed.
        for _ in range(20):
            busy = environment.disturbances(0.6)
            cores = {row["name"]: row["cores"] for row in busy}
            if "stranger" in cores:
                break
    finally:
        stranger.kill()
    assert 0.1 < cores["stranger"] < 1.5
    assert "secret" not in json.dumps(busy)


def test_our_own_children_are_no_strangers(named):
    child = subprocess.Popen([named("offspring"), "-c", SPIN], stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        assert "offspring" not in {row["name"] for row in environment.disturbances(0.4)}
    finally:
        child.kill()
        child.communicate()


def test_where_a_control_group_leaves_nothing_a_worker_may_take_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "memory_left_bytes", lambda: 0)
    assert environment.usable_memory_bytes() == 0
    monkeypatch.setattr(environment, "memory_left_bytes", lambda: None)
    assert environment.usable_memory_bytes() > 0
