"""Map names to adapter classes, and import these classes on first use.

The project's own formats are entries of a registry. Third-party packages add formats through Python entry points. The
classes of third parties follow the same contract (interface and its rules), and the same tests can check them.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Generic, TypeVar

from adapters.contract import Adapter
from adapters.errors import AdapterError, NotInstalled, RefusedSetting, UnknownFormat
from adapters.spelling import parse


@dataclass(frozen=True)
class Entry:
    """One entry of a registry: where the adapter classes of a format are, and how their libraries are installed.

    `engines` is 'module:NAME', where NAME is a tuple of adapter classes with the default class first. `extra` is the
    pip extra that installs the libraries of these classes."""

    engines: str
    extra: str | None = None

    def install_command(self, engine: type[Adapter]) -> str:
        """Return the shell command that installs the libraries of an adapter class of this entry."""
        extra = engine.extra or self.extra
        if extra is None:
            return f"pip install {' '.join(engine.distributions)}"
        return f"pip install -e '.[{extra}]'"


@dataclass(frozen=True)
class Availability:
    """Which of the distributions and programs that an engine needs are installed on this machine.

    `versions` maps the names of the installed distributions and programs to their versions. `missing` has the names of
    the distributions and programs that are not installed, and `install` is the command that installs these."""

    versions: Mapping[str, str]
    missing: tuple[str, ...]
    install: str

    @property
    def installed(self) -> bool:
        """Whether every required distribution and program is installed."""
        return not self.missing


@cache
def _version(distribution: str) -> str:
    """Return the installed version of a distribution.

    The result is cached, because planning a run calls this function for every variant. If the distribution is missing,
    an error is raised and nothing is cached, because the distribution may be installed later."""
    return importlib.metadata.version(distribution)


def is_installed(distribution: str) -> bool:
    """Return whether a distribution is installed, by its metadata. The distribution is not imported."""
    try:
        _version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


AdapterT = TypeVar("AdapterT", bound=Adapter)


class Registry(Generic[AdapterT]):
    """All formats, image storages or document stores by name.

    `noun` is the word for an entry in errors: 'format', 'storage' or 'store', for example."""

    def __init__(self, entries: Mapping[str, Entry], entry_point_group: str, noun: str = "format") -> None:
        """Create a registry of the project's own `entries`. The first use adds the entries of third parties, which are
        the installed entry points of the group `entry_point_group`."""
        self.noun = noun
        self._own = dict(entries)
        self._group = entry_point_group

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        """All entries by name, including the entries of third parties. Raises AdapterError if two entries have the same
        name."""
        rows = dict(self._own)
        for point in importlib.metadata.entry_points(group=self._group):
            if point.name in rows:
                raise AdapterError(
                    f"{point.value} offers a {self.noun} {point.name!r}, but that name is taken; rename the {self.noun}"
                )
            rows[point.name] = Entry(point.value)
        return dict(sorted(rows.items()))

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def engines(self, name: str) -> tuple[type[AdapterT], ...]:
        """Return the adapter classes of a format, with the default class first. Raises UnknownFormat if no entry has
        this name."""
        if name not in self.entries:
            near = difflib.get_close_matches(name, self.entries, n=1)
            guess = f" (did you mean {near[0]!r}?)" if near else ""
            raise UnknownFormat(
                f"no {self.noun} is called {name!r}{guess}\n"
                f"  known: {', '.join(self.entries)}; 'format-bench list {self.noun}s' shows which are installed"
            )
        module, _, attribute = self.entries[name].engines.partition(":")
        engines: tuple[type[AdapterT], ...] = getattr(importlib.import_module(module), attribute)
        return engines

    def engine(self, spelled: str) -> tuple[type[AdapterT], dict[str, str]]:
        """Return the adapter class and the settings of a variant such as 'parquet[codec=zstd]'.

        The settings are the values in the variant's name, as text. Raises SpellingError if the name is not well formed,
        UnknownFormat if there is no such format, or RefusedSetting if the format does not have this engine.
        """
        name, settings = parse(spelled)
        engines = self.engines(name)
        wanted = settings.pop("engine", None)
        for engine in engines:
            if wanted is None or engine.engine == wanted:
                return engine, settings
        offered = ", ".join(engine.engine or "none" for engine in engines)
        raise RefusedSetting(f"{name}: engine={wanted} is not possible (allowed: {offered})")

    def availability(self, engine: type[AdapterT], values: Mapping[str, object] | None = None) -> Availability:
        """Return which of the distributions and programs that an engine needs are installed.

        `values` are the settings. If `values` is None, the engine's default settings are used."""
        if values is None:
            values = {key: setting.default for key, setting in engine.settings.items()}
        codec = engine.codec_distributions.get(str(values.get("codec")))
        spelled = (f"{key}={value}" for key, value in values.items())
        besides = [engine.besides_for[choice] for choice in spelled if choice in engine.besides_for]
        needed = [name for each in besides for name in each.distributions]
        programs = {program.name: program.version() for program in engine.programs}
        versions = {name: version for name, version in programs.items() if version is not None}
        missing: list[str] = []
        for distribution in (*engine.distributions, *([codec] if codec else []), *needed):
            try:
                versions[distribution] = _version(distribution)
            except importlib.metadata.PackageNotFoundError:
                missing.append(distribution)
        install = self.entries[engine.format].install_command(engine)
        if missing == [codec]:
            install = "pip install -e '.[codecs]'"
        elif missing and set(missing) <= set(needed):
            install = f"pip install -e '.[{','.join(each.extra for each in besides)}]'"
        absent = [program for program in engine.programs if program.name not in versions]
        commands = [*([install] if missing or not absent else []), *(program.install for program in absent)]
        return Availability(versions, (*missing, *(program.name for program in absent)), " && ".join(commands))

    def build(self, spelled: str, *, threads: int | None = None) -> AdapterT:
        """Return a new adapter for a variant such as 'parquet[codec=zstd]', without loading its libraries.

        Raises the same errors as the method `engine`, NotInstalled if a library is missing, or RefusedSetting if a
        setting or its value is not supported.
        """
        engine, settings = self.engine(spelled)
        adapter = engine(settings, threads=threads)
        availability = self.availability(engine, adapter.values)
        if not availability.installed:
            raise NotInstalled(
                f"{spelled} needs {', '.join(availability.missing)}, which is not installed here; "
                f"{availability.install}"
            )
        return adapter
