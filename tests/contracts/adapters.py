"""The tests that all contracts share: what an adapter declares about itself, and which files it leaves open."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest

from adapters.contract import UNDECLARED, Maturity
from adapters.errors import RefusedSetting
from adapters.registry import Registry
from bench_runner.machine.linux import file_mappings

ROOT = Path(__file__).parents[2]
Test = TypeVar("Test", bound=Callable[..., None])


def only_for(condition: Callable[[Any], bool]) -> Callable[[Test], Test]:
    """Return a decorator that keeps a test only for adapters that meet the condition."""

    def marked(test: Test) -> Test:
        vars(test)["conditions"] = (*vars(test).get("conditions", ()), condition)
        return test

    return marked


def _applies(test: object, adapter: Any) -> bool:
    return all(condition(adapter) for condition in getattr(test, "conditions", ()))


class AdapterContract:
    """Base of all contracts. A subclass sets `variant`, the spelling of the adapter, and `registry`, which lists it."""

    variant: ClassVar[str]
    registry: ClassVar[Registry]

    def __init_subclass__(cls, **options: Any) -> None:
        """Remove the tests whose conditions this variant does not meet."""
        super().__init_subclass__(**options)
        if "variant" not in vars(cls):
            return
        adapter = cls.built()
        for name in dir(cls):
            if not _applies(getattr(cls, name), adapter):
                setattr(cls, name, None)

    @classmethod
    def built(cls) -> Any:
        """Return the adapter. Its library is not loaded."""
        return cls.registry.build(cls.variant)

    @pytest.fixture
    def adapter(self) -> Any:
        adapter = self.built()
        adapter.load_library()
        return adapter

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        folder = tmp_path / "place"
        folder.mkdir()
        return folder

    def test_unknown_settings_and_values_are_refused(self, adapter: Any) -> None:
        with pytest.raises(RefusedSetting, match="no setting is called 'colour'"):
            type(adapter)({"colour": "blue"})
        for key in adapter.settings:
            with pytest.raises(RefusedSetting, match=key):
                type(adapter)({key: "never"})

    def test_building_from_its_own_spelling_gives_the_same_variant(self, adapter: Any) -> None:
        again = self.registry.build(adapter.variant)
        assert (type(again), again.values, again.variant) == (type(adapter), adapter.values, adapter.variant)

    def test_maturity_is_declared_with_a_reason_of_one_line(self, adapter: Any) -> None:
        assert isinstance(adapter.maturity, Maturity)
        assert adapter.maturity is not UNDECLARED, "declare `maturity`: a stage, and a reason of one line"
        reason = adapter.maturity.reason
        assert reason == reason.strip().rstrip(".")
        assert len(reason.splitlines()) == 1

    def test_every_track_can_be_built(self, adapter: Any) -> None:
        for settings in (adapter.plain, adapter.library_default, adapter.equal):
            type(adapter)(settings)


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python code in a new interpreter with the project and the tests on its path."""
    path = os.pathsep.join([str(ROOT), *(entry for entry in sys.path if entry)])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment)


def left_open(folder: Path) -> list[str]:
    """Return the files below `folder` that are still open after up to a second."""
    return _lasting(lambda: list(open_below(folder)))


def left_mapped(folder: Path) -> list[str]:
    """Return the files below `folder` that are still mapped into memory after up to a second."""
    return _lasting(lambda: [path for _, _, path in file_mappings() if path.startswith(str(folder))])


def _lasting(look: Callable[[], list[str]]) -> list[str]:
    """Return what `look` still finds after up to a second. The threads of a library may close files a few ms late."""
    deadline = time.monotonic() + 1.0
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def open_below(folder: Path) -> Iterator[str]:
    """Yield the files below `folder` that are open now. When a save returns, no file may be open."""
    for entry in Path("/proc/self/fd").iterdir():
        try:
            path = os.readlink(entry)
        except FileNotFoundError:
            continue  # skip the handle of this listing itself
        if path.startswith(str(folder)):
            yield path
