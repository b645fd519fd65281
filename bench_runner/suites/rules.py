"""Rules that decide which variants take part in a suite. `bench_runner.plan.candidates` applies them.

A suite with a special case defines a subclass in its own module.
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
"""The track that compares codecs. It is never mixed with the tracks plain, default or equal (rule 10)."""
CHOICE = "choice"
"""The track that compares everything, because a choice of a format for one's own data includes the codec."""
ACCESS = "access"
"""The track that compares formats by partial reads, with the settings that decide the cost of these reads."""

Choice = tuple[str, type[Adapter], Mapping[str, str]]
"""Track, engine and settings of a variant. The engine may still refuse the settings."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The input of a rule."""

    registry: Registry[Any]
    names: Sequence[str]
    """The formats that the request can match. The modules of other formats are not loaded."""
    request: Request


@dataclass(frozen=True, kw_only=True)
class Rule(ABC):
    """Decides which variants take part, and with which settings. Raw I/O always takes part."""

    tracks: tuple[str, ...]
    """The tracks of the rule's variants. Variants of different tracks are never ranked together."""
    spelled: tuple[str, ...] = ()
    """Variants that a suite names in full."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Formats that do not take part, with the reason. A key is one name, or several as in 'a, b'."""

    @abstractmethod
    def choices(self, asked: Asked) -> Iterator[Choice]:
        """Yield all choices, in the order of the plan."""

    def names_left_out(self, registry: Registry[Any]) -> dict[str, str]:
        """Return each format that does not take part, with the reason."""
        return {name.strip(): reason for names, reason in self.left_out.items() for name in names.split(",")}

    def over_networks(self, settings: Collection[str]) -> bool:
        """Return whether a variant with these settings is also measured over networks that the user did not name."""
        return True

    def concerns(self, settings: Collection[str], operation: str) -> bool:
        """Return whether these settings can affect the operation. If they cannot, a variant with these settings is
        neither measured nor ranked in the operation, unless the user spells the settings."""
        return True

    def too_few(self, settings: Mapping[str, str]) -> str | None:
        """Return why a variant with these settings shows nothing on fewer rows than the data set's default, or None if
        it is meaningful. Ignored if the user spells the settings."""
        return None


@dataclass(frozen=True, kw_only=True)
class EveryFormat(Rule):
    """Every format, with the settings of each track. The plain track also has the additional settings that an engine
    declares. If the plain call loses values, it also has the lossless call of the format, if there is one (rule 12)."""

    def choices(self, asked: Asked) -> Iterator[Choice]:
        """Yield the choices track by track. Raw I/O has no track and comes with the first track."""
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
    """Every format that has at least one of these codecs, with each of the codecs it has and without a codec."""

    tracks: tuple[str, ...] = (CODECS,)
    codecs: tuple[str, ...]

    def choices(self, asked: Asked) -> Iterator[Choice]:
        """Yield the codecs of each format. If the user names codecs, formats that are otherwise left out are
        included."""
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
    """The spelled variants, and the plain settings of every other format that is not left out."""

    def choices(self, asked: Asked) -> Iterator[Choice]:
        """Yield raw I/O, the spelled variants, then the other formats."""
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
        """Return the engines of a format that is not spelled that take part."""
        return engines[:1]


@dataclass(frozen=True, kw_only=True)
class Storages(Rule):
    """The image storages with these names, or all image storages if the user chooses with --formats."""

    names: tuple[str, ...]

    def choices(self, asked: Asked) -> Iterator[Choice]:
        """Yield the choices in the order of the registry."""
        (track,) = self.tracks
        for name in asked.names:
            if is_raw_io(name) or asked.request.formats or name in self.names:
                engine = asked.registry.engines(name)[0]
                for settings in dict.fromkeys(tuple(each.items()) for each in self.settings(engine)):
                    yield track, engine, dict(settings)

    def settings(self, engine: type[Adapter]) -> Iterable[Mapping[str, str]]:
        """Return the settings of a storage: its plain settings, and the additional settings that it declares."""
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
