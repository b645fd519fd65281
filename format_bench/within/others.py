"""Settings of Feather, ORC and Lance that are measured for `recommend --within`. They have few settings, so all of them
and their combinations with the best codecs take part in the race."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adapters.spelling import spell
from format_bench.within.proposal import Proposal
from formats.registry import FORMATS

_LEVELS: Sequence[Mapping[str, str]] = tuple({"codec": "zstd", "level": level} for level in ("1", "3", "9"))
CHANGES: Mapping[str, Sequence[Mapping[str, str]]] = {
    "feather": (
        *({"codec": codec} for codec in ("none", "lz4")),
        *_LEVELS,
        *({"batch_rows": rows} for rows in ("16384", "1048576")),
        *({**level, "batch_rows": "1048576"} for level in _LEVELS[:2]),
    ),
    "orc": (
        *({"codec": codec} for codec in ("snappy", "zlib", "lz4", "zstd")),
        *({"stripe_bytes": size} for size in ("8388608", "268435456")),
        *({"codec": codec, "stripe_bytes": "8388608"} for codec in ("snappy", "lz4", "zstd")),
    ),
    "lance": (
        *({"codec": codec} for codec in ("none", "lz4")),
        *_LEVELS,
        *({"version": version} for version in ("2.0", "2.1")),
        *({"structural": layout} for layout in ("miniblock", "fullzip")),
        *({**level, "structural": "miniblock"} for level in _LEVELS[:2]),
    ),
}
"""Format -> the settings that differ from the library's default."""


def proposals(name: str) -> list[Proposal]:
    """Return the default of a format, followed by its changes. Raises NotInstalled if its library is missing."""
    default = FORMATS.build(spell(name, FORMATS.engines(name)[0].library_default)).variant
    found = {default: Proposal(default, "", 0)}
    for change in CHANGES[name]:
        variant = FORMATS.build(spell(name, change)).variant
        text = ", ".join(f"{setting}={value}" for setting, value in change.items())
        found.setdefault(variant, Proposal(variant, text, len(change.keys() - {"level"})))
    return list(found.values())
