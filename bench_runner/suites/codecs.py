"""Which settings of an engine a choice of codecs and levels stands for.

Every codec is measured beside the same engine without one, in the same rounds. A level that an engine does not take is
refused, never ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from adapters.contract import TabularFormat
from adapters.registry import Registry

ALL = "all"
DEFAULT_LEVELS = (1,)
"""Levels that are measured of a codec that takes one, as in the thesis."""
_UNCOMPRESSED = ("none", "auto")
"""What a setting `codec` says where none is asked for; 'auto' is a writer's own choice of encodings."""


def has_codecs(engine: type[TabularFormat]) -> bool:
    """Whether the engine takes any codec."""
    return "codec" in engine.settings


def offered(engine: type[TabularFormat]) -> tuple[str, ...]:
    """The engine's codecs, by its own names, without the one that stands for none of them."""
    allowed = engine.settings["codec"].allowed
    return tuple(str(value) for value in allowed if value not in _UNCOMPRESSED)


def known(registry: Registry) -> tuple[str, ...]:
    """Every name that a choice of codecs may hold, sorted."""
    engines = [registry.engines(name)[0] for name in registry]
    names = {name for engine in engines if has_codecs(engine) for name in (*offered(engine), *engine.codec_names)}
    return tuple(sorted(names))


def choices(
    engine: type[TabularFormat], codecs: Sequence[str], levels: Sequence[int] | None
) -> Iterator[Mapping[str, str]]:
    """The settings to measure: without a codec, then each chosen codec at each level.

    `codecs` holds names of the engine's or of others ('zstd' is 'blosc:zstd' in HDF5), or 'all'. With `levels` given,
    settings that the engine refuses are among them, so that the refusal is shown; without, each codec has level 1, or
    none where it takes none. Nothing for an engine that has none of the codecs.
    """
    if not has_codecs(engine):
        return
    wanted = {engine.codec_names.get(name, name) for name in codecs}
    chosen = [codec for codec in offered(engine) if ALL in codecs or codec in wanted]
    if not chosen:
        return
    yield without_codec(engine)
    for codec in chosen:
        taken = engine.levels.get(codec)
        if taken is None:
            yield {"codec": codec}
        for level in levels or (DEFAULT_LEVELS if taken is not None else ()):
            yield {"codec": codec, "level": str(level)}


def without_codec(engine: type[TabularFormat]) -> Mapping[str, str]:
    """The settings of the engine that every codec is set against."""
    allowed = [str(value) for value in engine.settings["codec"].allowed]
    default = str(engine.settings["codec"].default)
    return {"codec": default if default in _UNCOMPRESSED else next(v for v in allowed if v in _UNCOMPRESSED)}
