"""Determine the candidates of a suite: the variants that the suite defines, and the variants that the user names in
full. A variant is a format with its settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adapters.contract import Adapter
from adapters.errors import RefusedSetting
from adapters.spelling import parse, spell
from bench_runner.errors import Failure
from bench_runner.plan.patterns import alternatives, is_spelled, matches, names_in
from bench_runner.registries import REGISTRIES
from bench_runner.request import Request
from bench_runner.suites import CHOICE, CODECS, Asked, Choice, Suite
from bench_runner.variants import is_raw_io

SPELLED = "spelled"
"""The track (group of comparable variants) of variants that the user names in full and the suite does not define. This
track is never mixed with the tracks plain, default or equal (rule 10)."""


@dataclass(frozen=True)
class Candidate:
    """One variant with its track (group of comparable variants). If the adapter class refuses the settings, `refused`
    is the reason, and `adapter` has the default settings instead."""

    track: str
    adapter: Adapter
    variant: str
    codec: str | None
    refused: Failure | None = None


def candidates(suite: Suite, request: Request, threads: str) -> list[Candidate]:
    """Return the variants that the suite defines, followed by the variants that the user names in full. The variants
    are not yet filtered by the request. Raises RefusedSetting or UnknownFormat for an invalid name."""
    spelled = [*alternatives(request.formats), *([request.baseline] if request.baseline else [])]
    own = [_candidate(choice, threads) for choice in suite.variants.choices(_asked(suite, request))]
    more = [
        _candidate((_track_of_spelled(suite), *registry.engine(text)), threads)
        for registry in (REGISTRIES[suite.kind.name],)
        for text in dict.fromkeys(spelled)
        if is_spelled(text) and parse(text)[0] in registry.entries
        if not any(matches(text, candidate.variant) for candidate in own)
    ]
    for candidate in more:
        if candidate.refused is not None:
            raise RefusedSetting(
                f"`formats`: {candidate.variant} cannot be measured: {candidate.refused.reason}.",
                parameter="formats",
                given=candidate.variant,
            )
    return own + more


def wanted(variant: str, request: Request) -> bool:
    """Return whether a variant is measured. The request's baseline is always measured. So is raw I/O, because times are
    shown as multiples of the times of raw I/O."""
    return is_raw_io(variant) or variant == request.baseline or is_chosen(variant, request.formats, request.formats_not)


def is_chosen(variant: str, formats: Sequence[str], formats_not: Sequence[str]) -> bool:
    """Return whether the user's patterns include a variant."""
    if formats and not any(matches(text, variant) for text in alternatives(formats)):
        return False
    return not any(matches(text, variant) for text in alternatives(formats_not))


def names_left_out(suite: Suite) -> dict[str, str]:
    """Return each format that does not take part in a suite, with the reason."""
    return suite.variants.names_left_out(REGISTRIES[suite.kind.name])


def _track_of_spelled(suite: Suite) -> str:
    """Return the track of variants that the user names in full. This is SPELLED, except in suites for images or
    documents and in suites whose only track is CODECS or CHOICE. In these suites, it is the suite's first track."""
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


def _asked(suite: Suite, request: Request) -> Asked:
    """Return the input from which a suite determines its variants. The modules of formats that the request cannot match
    are not loaded."""
    registry = REGISTRIES[suite.kind.name]
    named = names_in([*request.formats, *([request.baseline] if request.baseline else [])]) if request.formats else None
    names = [name for name in registry if named is None or name in named or is_raw_io(name)]
    return Asked(registry=registry, names=names, request=request)
