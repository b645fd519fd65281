"""Rules that decide which variants take part in a suite. `bench_runner.plan.candidates` uses them.

A suite with a special case has a subclass in its own module.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.contract import Adapter, TabularFormat
from adapters.registry import Registry
from adapters.spelling import parse
from bench_runner.request import Request
from bench_runner.suites import codecs
from bench_runner.variants import is_raw_io

CODECS = "codecs"
"""The track that compares codecs: never mixed with plain, default or equal (rule 10)."""
CHOICE = "choice"
"""The track that compares everything: a choice for one's own data includes the codec."""
ACCESS = "access"
"""The track that compares formats by partial reads, each with the settings that decide their cost."""

Choice = tuple[str, type[Adapter], Mapping[str, str]]
"""Track, engine and settings, which may still be refused."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The input of a rule."""

    registry: Registry[Any]
    names: Sequence[str]
    """The formats that the request can match. The modules of others are not loaded."""
    request: Request


@dataclass(frozen=True, kw_only=True)
class Rule(ABC):
    """Which variants take part, and with which settings. Raw I/O always takes part."""

    tracks: tuple[str, ...]
    """Variants of different tracks are never ranked together."""
    spelled: tuple[str, ...] = ()
    """Variants that a suite names in full."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Formats that do not take part, 'a, b', with the reason."""

    @abstractmethod
    def choices(self, asked: Asked) -> Iterator[Choice]:
        """Yield all choices, in the order of the plan."""

    def names_left_out(self, registry: Registry[Any]) -> dict[str, str]:
        """Return each format that does not take part, with the reason."""
        return {name.strip(): reason for names, reason in self.left_out.items() for name in names.split(",")}

    def over_networks(self, settings: Collection[str]) -> bool:
        """Return whether a variant with these settings is measured over networks that the user does not name."""
        return True

    def concerns(self, settings: Collection[str], operation: str) -> bool:
        """Return whether these settings can affect the operation. If not, and the user does not spell them, a variant
        with them is neither measured nor ranked in it."""
        return True

    def too_few(self, settings: Mapping[str, str]) -> str | None:
        """Return why a variant with these settings shows nothing on fewer rows than the data set's default; None if it
        does. Not used if the user spells the settings."""
        return None


@dataclass(frozen=True, kw_only=True)
class EveryFormat(Rule):
    """Every format, with the settings of each track. With the plain call come the settings that its engine adds to it,
    and, for a call that loses values, its lossless sibling if there is one (rule 12)."""

    def choices(self, asked: Asked) -> Iterator[Choice]:
        """Yield track by track; raw I/O, which has no track, comes with the first."""
        left_out = self.names_left_out(asked.registry)
        for position, track in enumerate(asked.request.tracks or self.tracks):
            for name in asked.names:
                engine = asked.registry.engines(name)[0]
                if is_raw_io(name):
                    if position == 0:
                        yield track, engine, {}
                elif name not in left_out and _takes_part(engine, track):
                    settings = _track_settings(engine, track)
                    yield track, engine, settings
                    if track == "plain":
                        yield from ((track, engine, beside) for beside in engine.beside)
                    for sibling in dict.fromkeys(loss.lossless for loss in engine(settings).losses if loss.lossless):
                        yield track, *asked.registry.engine(sibling)


@dataclass(frozen=True, kw_only=True)
class WithCodecs(Rule):
    """Every format that has one of these codecs, with each of them and with none."""

    tracks: tuple[str, ...] = (CODECS,)
    codecs: tuple[str, ...]

    def choices(self, asked: Asked) -> Iterator[Choice]:
        """Yield codecs of each format. If the user names codecs, formats that are otherwise left out are included."""
        (track,) = self.tracks
        left_out = () if asked.request.codecs else self.names_left_out(asked.registry)
        wanted = asked.request.codecs or self.codecs
        yield from _raw_io(track, asked)
        for name in asked.names:
            if name not in left_out:
                engine = asked.registry.engines(name)[0]
                for settings in codecs.choices(engine, wanted, asked.request.levels or None):
                    yield track, engine, settings


@dataclass(frozen=True, kw_only=True)
class Spelled(Rule):
    """These variants, and every format that is neither among them nor left out, with its plain settings."""

    def choices(self, asked: Asked) -> Iterator[Choice]:
        """Yield raw I/O, the spelled variants, the other formats."""
        (track,) = self.tracks
        yield from _raw_io(track, asked)
        for text in self.spelled:
            if parse(text)[0] in asked.names:
                yield track, *asked.registry.engine(text)
        known = {parse(text)[0] for text in self.spelled} | set(self.names_left_out(asked.registry))
        for name in asked.names:
            if name not in known and not is_raw_io(name):
                yield from ((track, engine, engine.plain) for engine in self.joining(asked.registry.engines(name)))

    def joining(self, engines: Sequence[type[Adapter]]) -> Sequence[type[Adapter]]:
        """Return the engines with which a format takes part that is not spelled."""
        return engines[:1]


@dataclass(frozen=True, kw_only=True)
class Storages(Rule):
    """Image storages of these names, or all if the user chooses with --formats."""

    names: tuple[str, ...]

    def choices(self, asked: Asked) -> Iterator[Choice]:
        """Yield choices in the order of the registry."""
        (track,) = self.tracks
        for name in asked.names:
            if is_raw_io(name) or asked.request.formats or name in self.names:
                engine = asked.registry.engines(name)[0]
                for settings in dict.fromkeys(tuple(each.items()) for each in self.settings(engine)):
                    yield track, engine, dict(settings)

    def settings(self, engine: type[Adapter]) -> Iterable[Mapping[str, str]]:
        """Return the settings of a storage: its plain ones, and those that it adds to them."""
        return (engine.plain, *engine.beside)


def _raw_io(track: str, asked: Asked) -> Iterator[Choice]:
    for name in asked.names:
        if is_raw_io(name):
            yield track, asked.registry.engines(name)[0], {}


def _takes_part(engine: type[TabularFormat], track: str) -> bool:
    if track == "plain":
        return True
    if track == "default":
        return dict(engine.library_default) != dict(engine.plain)
    return bool(engine.equal)


def _track_settings(engine: type[TabularFormat], track: str) -> Mapping[str, str]:
    return {"plain": engine.plain, "default": engine.library_default, "equal": engine.equal}[track]
