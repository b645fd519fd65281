"""Settings of Feather, ORC and Lance that are measured for `recommend --within`.

These formats have few settings. Therefore every variant in CHANGES is measured, without trying them in memory first.
"""

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
"""Name of a format -> the variants to measure, each as the settings that differ from the library's default."""


def proposals(name: str) -> list[Proposal]:
    """Return the default variant of a format, followed by its variants in CHANGES. Raises NotInstalled if the format's
    library is missing."""
    default = FORMATS.build(spell(name, FORMATS.engines(name)[0].library_default)).variant
    found = {default: Proposal(default, "", 0)}
    for change in CHANGES[name]:
        variant = FORMATS.build(spell(name, change)).variant
        text = ", ".join(f"{setting}={value}" for setting, value in change.items())
        found.setdefault(variant, Proposal(variant, text, len(change.keys() - {"level"})))
    return list(found.values())
