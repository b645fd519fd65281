"""Configure all tests, including those of the libraries: the folder of temporary files, and `--quick`.

Temporary files are in memory if a tmpfs has enough space, because most tests spend more time on syncs than on
computing. Tests of a disk and its page cache are marked `disk` and write to a disk. `--quick` skips the tests in
`tests/slower.txt`.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from bench_runner.machine.folders import folder_facts, supports_cold
from tests.slower import slower

ROOT = Path(__file__).parent
MEMORY = Path("/dev/shm")
LEAST_FREE_BYTES = 4 << 30
PLACES = (str(ROOT / "tests/plugins/at_rest"), str(ROOT))
"""Folders on the PYTHONPATH of processes that tests start. With the second one, they import this checkout."""


def pytest_configure(config: pytest.Config) -> None:
    """Set environment variables. This happens before pytest reads the variable of the temporary folder."""
    is_tmpfs = MEMORY.is_dir() and folder_facts(MEMORY).get("filesystem") == "tmpfs"
    if is_tmpfs and shutil.disk_usage(MEMORY).free >= LEAST_FREE_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    # All processes of the tests share a temporary cache, because the user's cache holds facts that later runs reuse.
    # With xdist, only the first process makes it.
    if "PYTEST_XDIST_WORKER" not in os.environ:
        cache = tempfile.mkdtemp(prefix="format-bench-cache-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))
        os.environ["FORMAT_BENCH_CACHE"] = cache
        config.add_cleanup(lambda: shutil.rmtree(cache, ignore_errors=True))
    # Let Python write bytecode. Otherwise pytest compiles all tests in every run, and each of about a thousand
    # processes compiles the modules that it imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    others = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place and place not in PLACES]
    os.environ["PYTHONPATH"] = os.pathsep.join([*PLACES, *others])


USUAL_THRESHOLDS = gc.get_threshold()


@pytest.fixture
def usual_collection() -> Iterator[None]:
    """Let Python collect garbage as often as by default."""
    before = gc.get_threshold()
    gc.set_threshold(*USUAL_THRESHOLDS)
    yield
    gc.set_threshold(*before)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Disable garbage collection while pytest collects tests. It finds nothing and takes a third of the time. During
    the tests it is less frequent than by default, where it takes a twentieth of the time; see `usual_collection`."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
    return result


@pytest.fixture(scope="session")
def disk() -> Iterator[Path]:
    """Yield a folder on a disk whose page cache can be emptied. Without one, skip the test, or fail it if CI=true."""
    for folder in (Path(tempfile.gettempdir()), ROOT):
        if supports_cold(folder_facts(folder).get("filesystem")) is None:
            with tempfile.TemporaryDirectory(prefix=".format-bench-tests-", dir=folder) as place:
                yield Path(place)
            return
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("no disk with a page cache that can be emptied")


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Yield pytest's temporary folder; for tests marked `disk`, yield a temporary folder on a disk."""
    if request.node.get_closest_marker("disk") is None:
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(dir=request.getfixturevalue("disk")))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def runs_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat the machine as idle in this process. Processes that tests start do the same (tests/plugins/at_rest)."""
    from bench_runner.run import probe_check
    from bench_runner.worker import settle
    from tests.plugins.at_rest import sitecustomize

    for name in ("CONTROL_BYTES", "SLOW_FACTOR"):
        monkeypatch.setattr(settle, name, getattr(settle, name))
    monkeypatch.setattr(settle.Settler, "_write_back", settle.Settler._write_back)
    sitecustomize._controls_are_small()
    few = tuple((how, size_bytes) for how, size_bytes in probe_check.LONG if size_bytes <= 10**7)
    monkeypatch.setattr(probe_check, "LONG", few)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--quick`."""
    parser.addoption("--quick", action="store_true", help="leave out the tests that tests/slower.txt names")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore files that `--quick` skips completely, because importing one takes as long as many tests."""
    if config.getoption("quick") and collection_path.relative_to(ROOT).as_posix() in slower():
        return True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--quick`, deselect the tests that tests/slower.txt lists individually."""
    if not config.getoption("quick"):
        return
    left_out = [item for item in items if item.nodeid.split("[")[0] in slower()]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        names = set(map(id, left_out))
        items[:] = [item for item in items if id(item) not in names]
