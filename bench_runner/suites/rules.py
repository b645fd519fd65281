"""Rules that decide which variants take part in a suite. `bench_runner.plan.candidates` applies the rules.

A suite with special behaviour defines a subclass in its own module.
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
"""The track (group of comparable variants) that compares codecs. Variants of this track are never ranked together with
variants of another track (rule 10)."""
CHOICE = "choice"
"""The track in which all variants are ranked together. A user who chooses a format for a table also chooses a codec."""
ACCESS = "access"
"""The track that compares formats by partial reads, with settings that affect the cost of these reads."""

Choice = tuple[str, type[Adapter], Mapping[str, str]]
"""Track (group of comparable variants), engine class and settings of a variant. The engine may later refuse the
settings."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The input of a rule: the registry of formats, the formats to consider, and the user's request."""

    registry: Registry[Any]
    names: Sequence[str]
    """Names of the formats that the request can match. The modules of other formats are not loaded."""
    request: Request


@dataclass(frozen=True, kw_only=True)
class Rule(ABC):
    """Decides which formats take part in a suite, and with which settings. Raw I/O, with which all formats are
    compared, always takes part."""

    tracks: tuple[str, ...]
    """The tracks of the rule's variants. Variants of different tracks are never ranked together."""
    spelled: tuple[str, ...] = ()
    """Full names of variants that take part, such as 'parquet[engine=pyarrow,codec=none]'."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Formats that do not take part, with the reason. A key is a name, or several names separated by commas."""

    @abstractmethod
    def choices(self, asked: Asked) -> Iterator[Choice]:
        """Yield track, engine and settings of each variant, in the order in which they are planned."""

    def names_left_out(self, registry: Registry[Any]) -> dict[str, str]:
        """Return the names of the formats that do not take part, with the reasons."""
        return {name.strip(): reason for names, reason in self.left_out.items() for name in names.split(",")}

    def over_networks(self, settings: Collection[str]) -> bool:
        """Return whether a variant with these settings is also measured over the suite's networks. If the user names
        networks, the variant is measured over the named networks in any case."""
        return True

    def concerns(self, settings: Collection[str], operation: str) -> bool:
        """Return whether these settings can affect the operation. If they cannot, a variant with these settings is not
        measured in the operation, unless the user names the settings."""
        return True

    def too_few(self, settings: Mapping[str, str]) -> str | None:
        """Return why it is useless to measure a variant with these settings on fewer rows than the data set has by
        default. Return None if the number of rows does not matter. Ignored if the user names the settings."""
        return None


@dataclass(frozen=True, kw_only=True)
class EveryFormat(Rule):
    """Chooses every format, with the settings that its engine declares for each track.

    In the track `plain`, the additional settings that an engine declares take part too. If a variant changes values and
    declares a lossless variant to use instead, this lossless variant takes part too (rule 12).
    """

    def choices(self, asked: Asked) -> Iterator[Choice]:
        """Yield the choices track by track. Raw I/O belongs to no track and comes with the first track."""
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
    """Chooses every format that supports at least one of `codecs`: once for each of these codecs that it supports, and
    once without a codec."""

    tracks: tuple[str, ...] = (CODECS,)
    codecs: tuple[str, ...]

    def choices(self, asked: Asked) -> Iterator[Choice]:
        """Yield the variants of each format. If the user names codecs, formats in `left_out` take part too."""
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
    """Chooses the variants in `spelled`. Also chooses, with plain settings, every format that is neither in `spelled`
    nor in `left_out`."""

    def choices(self, asked: Asked) -> Iterator[Choice]:
        """Yield raw I/O, then the variants that `self.spelled` names, then the other formats."""
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
        """Return the engines that take part for a format that is not in `spelled`. Here this is only the format's first
        engine."""
        return engines[:1]


@dataclass(frozen=True, kw_only=True)
class Storages(Rule):
    """Chooses the image storages in `names` or, if the user gives --formats, the storages that match it."""

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
