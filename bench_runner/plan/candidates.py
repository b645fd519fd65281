"""Which variants take part in a suite: those of its tracks, its codecs, or those that it spells; and the user's own.

Settings may still be refused here: a candidate then says why. This module knows no data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from adapters.contract import Adapter, TabularFormat
from adapters.errors import RefusedSetting
from adapters.spelling import parse, spell
from bench_runner.data_kinds import DOCUMENTS, IMAGES
from bench_runner.errors import Failure
from bench_runner.plan import codecs
from bench_runner.plan.patterns import alternatives, is_spelled, matches, names_in
from bench_runner.plan.request import Request
from bench_runner.registries import REGISTRIES
from bench_runner.suites import CHOICE, CODECS, Suite
from bench_runner.variants import is_raw_io
from document_stores.registry import DOCUMENT_STORES
from formats.registry import FORMATS
from image_storages.registry import STORAGES

SPELLED = "spelled"
"""The track of what a user spells and the suite does not list: never mixed with plain, default or equal (rule 10)."""

Choice = tuple[str, type[Adapter], Mapping[str, str]]
"""Track, engine and settings, which may still be refused."""


@dataclass(frozen=True)
class Candidate:
    """One variant with its track. With `refused` settings the adapter is the engine's default one."""

    track: str
    adapter: Adapter
    variant: str
    codec: str | None
    refused: Failure | None = None


def candidates(suite: Suite, request: Request, threads: str) -> list[Candidate]:
    """All that takes part in a suite before the user's choice, and what the user spells besides.

    Raises RefusedSetting and UnknownFormat for a spelling of the user's that cannot be.
    """
    spelled = [*alternatives(request.formats), *([request.baseline] if request.baseline else [])]
    own = [_candidate(choice, threads) for choice in _choices(suite, request, _Names(suite, request))]
    more = [
        _candidate((_track_of_spelled(suite), *registry.engine(text)), threads)
        for registry in (REGISTRIES[suite.kind.name],)
        for text in dict.fromkeys(spelled)
        if is_spelled(text) and parse(text)[0] in registry.entries
        if not any(matches(text, candidate.variant) for candidate in own)
    ]
    for candidate in more:
        if candidate.refused is not None:
            raise RefusedSetting(f"--formats {candidate.variant}: {candidate.refused.reason}")
    return own + more


def wanted(variant: str, request: Request) -> bool:
    """Raw I/O stays whatever is chosen, because every figure is shown as a multiple of it; so does the baseline."""
    return is_raw_io(variant) or variant == request.baseline or is_chosen(variant, request.formats, request.formats_not)


def is_chosen(variant: str, formats: Sequence[str], formats_not: Sequence[str]) -> bool:
    """Whether these patterns of the user's leave a variant in."""
    if formats and not any(matches(text, variant) for text in alternatives(formats)):
        return False
    return not any(matches(text, variant) for text in alternatives(formats_not))


def names_left_out(suite: Suite) -> dict[str, str]:
    """Each format that does not take part in a suite, with why: those that the suite names, and those of too few calls
    for it, which a suite that sets calls beside each other need not name."""
    named = {name.strip(): reason for names, reason in suite.left_out.items() for name in names.split(",")}
    if suite.fewest_engines == 1:
        return named
    spelled = {parse(text)[0] for text in suite.variants}
    others = (name for name in FORMATS if name not in spelled and not is_raw_io(name))
    few = (name for name in others if len(FORMATS.engines(name)) < suite.fewest_engines)
    return {**dict.fromkeys(few, f"have fewer than {suite.fewest_engines} calls"), **named}


def _track_of_spelled(suite: Suite) -> str:
    """Where everything is set against everything, what a user spells is too."""
    if not suite.kind.has_columns or suite.tracks in ((CODECS,), (CHOICE,)):
        return suite.tracks[0]
    return SPELLED


def _candidate(choice: Choice, threads: str) -> Candidate:
    track, engine, settings = choice
    try:
        adapter = engine(settings, threads=1 if threads == "1" else None)
    except RefusedSetting as refused:
        variant = spell(engine.format, {"engine": engine.engine, **settings} if engine.engine else settings)
        return Candidate(track, engine(), variant, settings.get("codec"), Failure(kind="refused", reason=str(refused)))
    codec = str(adapter.values["codec"]) if "codec" in adapter.values else None
    return Candidate(track, adapter, adapter.variant, codec)


class _Names:
    """The formats that a request can match. The modules of others are not loaded."""

    def __init__(self, suite: Suite, request: Request) -> None:
        self._registry = REGISTRIES[suite.kind.name]
        baseline = [request.baseline] if request.baseline else []
        self._wanted = names_in([*request.formats, *baseline]) if request.formats else None

    def __contains__(self, name: str) -> bool:
        return self._wanted is None or name in self._wanted or is_raw_io(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._registry if name in self)


def _choices(suite: Suite, request: Request, names: _Names) -> Iterator[Choice]:
    if suite.kind.name in CHOICES:
        yield from CHOICES[suite.kind.name](suite, request, names)
    elif suite.variants:
        yield from _spelled(suite, names)
    elif suite.codecs:
        yield from _with_codecs(suite, request, names)
    else:
        yield from _engines(suite, request.tracks or suite.tracks, names)


def _with_codecs(suite: Suite, request: Request, names: _Names) -> Iterator[Choice]:
    (track,) = suite.tracks
    left_out = () if request.codecs else names_left_out(suite)
    yield track, FORMATS.engines("raw-io")[0], {}
    for name in names:
        if name not in left_out:
            engine = FORMATS.engines(name)[0]
            for settings in codecs.choices(engine, request.codecs or suite.codecs, request.levels or None):
                yield track, engine, settings


def _spelled(suite: Suite, names: _Names) -> Iterator[Choice]:
    """The variants that a suite spells in full, raw I/O, and every format that it neither spells nor leaves out."""
    (track,) = suite.tracks
    for text in ("raw-io", *suite.variants):
        if parse(text)[0] in names:
            yield track, *FORMATS.engine(text)
    known = {parse(text)[0] for text in suite.variants} | set(names_left_out(suite))
    for name in names:
        engines = FORMATS.engines(name)
        if name in known or is_raw_io(name):
            continue
        for engine in engines if suite.fewest_engines > 1 else engines[:1]:
            yield track, engine, engine.plain


def _engines(suite: Suite, tracks: Iterable[str], names: _Names) -> Iterator[Choice]:
    """Each track's engines with their settings; raw I/O, which has no track, comes with the first.

    Beside a plain call stand the settings that its engine names for that, and beside a call that loses its lossless
    sibling, where one exists (rule 12).
    """
    left_out = names_left_out(suite)
    for position, track in enumerate(tracks):
        for name in names:
            engine = FORMATS.engines(name)[0]
            if is_raw_io(name):
                if position == 0:
                    yield track, engine, {}
            elif name not in left_out and _takes_part(engine, track):
                settings = _track_settings(engine, track)
                yield track, engine, settings
                if track == "plain":
                    yield from ((track, engine, beside) for beside in engine.beside)
                for sibling in dict.fromkeys(loss.lossless for loss in engine(settings).losses if loss.lossless):
                    yield track, *FORMATS.engine(sibling)


def _storages(suite: Suite, request: Request, names: _Names) -> Iterator[Choice]:
    """The storages of the suite, or all of them for --formats to choose from; raw I/O always."""
    (track,) = suite.tracks
    for name in names:
        if not (is_raw_io(name) or request.formats or name in suite.formats):
            continue
        engine = STORAGES.engines(name)[0]
        beside = engine.beside if suite.beside else ()
        for settings in dict.fromkeys(tuple(each.items()) for each in (engine.plain, *beside)):
            yield track, engine, dict(settings)


def _document_stores(suite: Suite, request: Request, names: _Names) -> Iterator[Choice]:
    """Raw I/O, the variants that a suite spells in full, and every store that it neither spells nor leaves out."""
    (track,) = suite.tracks
    known = {parse(text)[0] for text in suite.variants} | set(names_left_out(suite))
    others = [name for name in names if is_raw_io(name)]
    others += [name for name in names if not is_raw_io(name) and name not in known]
    for name in others:
        engine = DOCUMENT_STORES.engines(name)[0]
        yield track, engine, engine.plain
    for text in suite.variants:
        if parse(text)[0] in names:
            yield track, *DOCUMENT_STORES.engine(text)


CHOICES: dict[str, Callable[[Suite, Request, _Names], Iterator[Choice]]] = {
    IMAGES.name: _storages,
    DOCUMENTS.name: _document_stores,
}
"""The variants of a suite, for kinds of data whose suites have no tracks or codecs."""


def _takes_part(engine: type[TabularFormat], track: str) -> bool:
    if track == "plain":
        return True
    if track == "default":
        return dict(engine.library_default) != dict(engine.plain)
    return bool(engine.equal)


def _track_settings(engine: type[TabularFormat], track: str) -> Mapping[str, str]:
    return {"plain": engine.plain, "default": engine.library_default, "equal": engine.equal}[track]
