"""What every adapter must hold, of tables and of images alike: what it says of itself, and what it leaves open.

Inherited by the two contracts; it knows neither tables nor images.
"""

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
    """The test is there for adapters alone that meet the condition."""

    def marked(test: Test) -> Test:
        vars(test)["conditions"] = (*vars(test).get("conditions", ()), condition)
        return test

    return marked


def _applies(test: object, adapter: Any) -> bool:
    return all(condition(adapter) for condition in getattr(test, "conditions", ()))


class AdapterContract:
    """`variant` is the format's own; `registry` is where it is listed."""

    variant: ClassVar[str]
    registry: ClassVar[Registry]

    def __init_subclass__(cls, **options: Any) -> None:
        """Takes the tests away that are not for this variant."""
        super().__init_subclass__(**options)
        if "variant" not in vars(cls):
            return
        adapter = cls.built()
        for name in dir(cls):
            if not _applies(getattr(cls, name), adapter):
                setattr(cls, name, None)

    @classmethod
    def built(cls) -> Any:
        """The adapter, of which no library is loaded."""
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

    def test_refuses_what_it_cannot_honour(self, adapter: Any) -> None:
        with pytest.raises(RefusedSetting, match="no setting is called 'colour'"):
            type(adapter)({"colour": "blue"})
        for key in adapter.settings:
            with pytest.raises(RefusedSetting, match=key):
                type(adapter)({key: "never"})

    def test_its_spelling_names_it_again(self, adapter: Any) -> None:
        again = self.registry.build(adapter.variant)
        assert (type(again), again.values, again.variant) == (type(adapter), adapter.values, adapter.variant)

    def test_it_says_how_far_it_can_be_relied_on(self, adapter: Any) -> None:
        assert isinstance(adapter.maturity, Maturity)
        assert adapter.maturity is not UNDECLARED, "declare `maturity`: its stage, and the reason in a line"
        reason = adapter.maturity.reason
        assert reason == reason.strip().rstrip(".")
        assert len(reason.splitlines()) == 1

    def test_the_tracks_can_be_built(self, adapter: Any) -> None:
        for settings in (adapter.plain, adapter.library_default, adapter.equal):
            type(adapter)(settings)


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a piece of Python in an interpreter of its own, with the project and the tests on its path."""
    path = os.pathsep.join([str(ROOT), *(entry for entry in sys.path if entry)])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment)


def left_open(folder: Path) -> list[str]:
    """The files below `folder` that stay open."""
    return _lasting(lambda: list(open_below(folder)))


def left_mapped(folder: Path) -> list[str]:
    """The files below `folder` that stay mapped."""
    return _lasting(lambda: [path for _, _, path in file_mappings() if path.startswith(str(folder))])


def _lasting(look: Callable[[], list[str]]) -> list[str]:
    """What is still there after a moment: a reading thread of the library may let go a few ms after the call."""
    deadline = time.monotonic() + 1.0
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def open_below(folder: Path) -> Iterator[str]:
    """The files below `folder` that are open now. A save has to have closed all of them when it returns."""
    for entry in Path("/proc/self/fd").iterdir():
        try:
            path = os.readlink(entry)
        except FileNotFoundError:
            continue  # the handle of this very listing
        if path.startswith(str(folder)):
            yield path
