"""The engine settings for a choice of codecs and levels.

Every codec is compared with the same engine without a codec, in the same rounds. A level that an engine does not
support is refused, never ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from adapters.contract import TabularFormat
from adapters.registry import Registry

ALL = "all"
DEFAULT_LEVELS = (1,)
"""Levels that are measured by default, for codecs that have levels. The thesis that this project continues uses the
same level."""
_UNCOMPRESSED = ("none", "auto")
"""Values of the setting `codec` that mean no codec. 'auto' lets the writer choose its encodings."""


def has_codecs(engine: type[TabularFormat]) -> bool:
    """Return whether the engine has any codec."""
    return "codec" in engine.settings


def offered(engine: type[TabularFormat]) -> tuple[str, ...]:
    """Return the engine's codecs by the engine's own names, excluding the value for no codec."""
    allowed = engine.settings["codec"].choices
    return tuple(str(value) for value in allowed if value not in _UNCOMPRESSED)


def known(registry: Registry) -> tuple[str, ...]:
    """Return a sorted tuple of the codec names that a user may choose."""
    engines = [registry.engines(name)[0] for name in registry]
    names = {name for engine in engines if has_codecs(engine) for name in (*offered(engine), *engine.codec_names)}
    return tuple(sorted(names))


def choices(
    engine: type[TabularFormat], codecs: Sequence[str], levels: Sequence[int] | None
) -> Iterator[Mapping[str, str]]:
    """Yield the settings to measure: first without a codec, then each chosen codec at each level.

    `codecs` contains names that the engine uses, general names (such as 'zstd' for HDF5's 'blosc:zstd'), or 'all'. If
    `levels` is given, each codec is measured at these levels. A level that the engine does not support is yielded too,
    so that a report can show the refusal. If `levels` is not given, each codec that has levels is measured at level 1.
    A codec that has no levels is measured without a level in any case. Nothing is yielded for an engine that supports
    none of the codecs.
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
    """Return the engine's settings without a codec, for comparison with every codec."""
    allowed = [str(value) for value in engine.settings["codec"].choices]
    default = str(engine.settings["codec"].default)
    return {"codec": default if default in _UNCOMPRESSED else next(v for v in allowed if v in _UNCOMPRESSED)}
