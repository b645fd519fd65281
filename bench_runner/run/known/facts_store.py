"""Store facts that do not change between runs, so that they are measured only once.

Facts are the error of the memory probe, the time of importing each library, and the values that each variant changes. A
fact is valid as long as the machine, Python, the versions of the libraries that it depends on, and the source code for
measuring it are the same.
Each fact is a small file in the user's cache folder, with the day of its measurement.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import msgspec

import data_generator.cache as data_cache
from adapters.contract import Adapter
from bench_runner.clock import utc_now
from bench_runner.machine.environment import library_names
from bench_runner.results.information import FactInfo, RunInfo

PROJECT_ROOT = Path(__file__).resolve().parents[3]

SOURCES = (
    *("adapters", "formats", "image_storages", "document_stores", "libraries"),
    *("bench_runner/machine", "bench_runner/operations", "bench_runner/worker"),
    *("bench_runner/run/forkserver.py", "bench_runner/run/launcher.py", "bench_runner/run/probe_check.py"),
    "data_generator/generated/kinds.py",
)
"""Files and folders of this project on which facts depend: the adapters, and the code that measures facts."""
SUFFIXES = frozenset({".c", ".h", ".py", ".so", ".wasm"})
NOT_SOURCES = frozenset({"benchmarks", "tests"})
"""Names of subfolders whose files do not affect facts."""
MACHINE = (
    *("name", "cpu", "cores", "affinity", "cpu_limit_cores", "memory_bytes"),
    *("kernel", "virtualisation", "container"),
)
"""Properties of the machine. A stored fact is valid only if all of these properties are the same as when the fact was
measured."""
MOST_BYTES = 4 * 10**6
"""A file with a fact is ignored if it is larger than this. Usually such a file has a few kilobytes."""

_NO_MORE: Mapping[str, str] = MappingProxyType({})

Value = TypeVar("Value")


class Kept(msgspec.Struct, Generic[Value], frozen=True, forbid_unknown_fields=True):
    """One fact as stored in the cache."""

    key: dict[str, Any]
    measured: str
    """The day of the measurement."""
    value: Value


class KeptFacts:
    """The stored facts that are valid for one machine, one set of library versions and one state of the source code."""

    def __init__(self, folder: Path, key: Mapping[str, Any], *, fresh: bool = False) -> None:
        """`folder` is created when the first fact is stored. `key` describes the machine, the libraries and the source
        code for which the facts are valid. With `fresh`, facts of earlier runs are ignored and replaced."""
        self._folder, self._key, self._fresh = folder, dict(key), fresh
        self._own: set[Path] = set()

    @property
    def digest(self) -> str:
        """Digest of the key, as it appears in records."""
        return _digest(self._key)

    def get(
        self, what: Sequence[str], value: type[Value], libraries: Mapping[str, str] = _NO_MORE
    ) -> Kept[Value] | None:
        """Return the fact with the name `what` and a value of type `value`. `libraries` has the versions on which this
        fact depends, in addition to those of the key. Return None if the fact is not stored, cannot be read, or is not
        valid for this key and these versions."""
        key, path = self._place(what, libraries)
        if self._fresh and path not in self._own:
            return None
        try:
            if path.stat().st_size > MOST_BYTES:
                return None
            found: Kept[Value] = msgspec.json.decode(path.read_bytes(), type=Kept[value], strict=True)  # type: ignore[valid-type]
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        return found if found.key == key else None

    def put(self, what: Sequence[str], value: Any, libraries: Mapping[str, str] = _NO_MORE) -> None:
        """Store a fact that was measured just now. `libraries` is as for `get`. Raises OSError if the folder is not
        writable."""
        key, path = self._place(what, libraries)
        self._folder.mkdir(parents=True, exist_ok=True)
        data_cache.remove_abandoned(self._folder)
        with data_cache.moved_into_place(path) as file:
            file.write(msgspec.json.encode(Kept(key, today(), value)))
        self._own.add(path)

    def _place(self, what: Sequence[str], libraries: Mapping[str, str]) -> tuple[dict[str, Any], Path]:
        key = {**self._key, "what": list(what)}
        if libraries:
            key["libraries"] = dict(sorted({**key.get("libraries", {}), **libraries}.items()))
        return key, self._folder / f"{what[0]}-{_digest(key)}.json"


def kept_facts(info: RunInfo, *, fresh: bool) -> KeptFacts:
    """Return the stored facts for the machine of a run and the libraries that the harness uses. The libraries that only
    some formats need belong to single facts, so that runs of other formats find the same facts."""
    machine = msgspec.to_builtins(info.machine)
    key = {
        "machine": {name: machine[name] for name in MACHINE if name in machine},
        "libraries": versions_of(info, library_names(())),
        "sources": source_digest(),
    }
    return KeptFacts(data_cache.default_folder() / "facts", key, fresh=fresh)


def versions_of(info: RunInfo, names: Collection[str]) -> dict[str, str]:
    """Return the versions of those libraries that the run has recorded, sorted."""
    return {name: version for name, version in sorted(info.libraries.items()) if name in names}


@cache
def source_digest(root: Path = PROJECT_ROOT, sources: Iterable[str] = SOURCES) -> str:
    """Return the digest of the names and contents of the files that facts depend on."""
    digest = hashlib.sha256()
    for source in sources:
        place = root / source
        files = sorted(place.rglob("*")) if place.is_dir() else [place]
        for path in files:
            name = path.relative_to(root)
            if path.suffix in SUFFIXES and NOT_SOURCES.isdisjoint(name.parts):
                digest.update(f"{name}\0{path.stat().st_size}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def today() -> str:
    """Return today's date."""
    return utc_now().date().isoformat()


def may_be_kept(engine: type[Adapter]) -> bool:
    """Return whether facts about an engine (the adapter for a library) may be stored. This requires that the adapter is
    part of this project, because the code of other adapters may change without a new version number, and stored facts
    would then be out of date."""
    return engine.__module__.partition(".")[0] in SOURCES


def noted(info: RunInfo, name: str, day: str, key: str, *, new: bool) -> None:
    """Record in the run's information on which day a fact was measured. `new` is True if this run measured the fact."""
    known = info.facts.get(name, FactInfo(measured=day))
    info.facts[name] = FactInfo(
        measured=min(known.measured, day), key=key, kept=known.kept + (not new), new=known.new + new
    )


def _digest(shape: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()[:16]
