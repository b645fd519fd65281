"""How names of variants are spelled, taken apart: 'orc[engine=pyarrow,codec=lz4]'.

It knows nothing of what they mean.
"""

from __future__ import annotations

from bench_runner.results.statistics import format_name


def settings_of(variant: str) -> list[str]:
    """Its settings as they are spelled: ['engine=pyarrow', 'codec=lz4']."""
    inside = variant.partition("[")[2].removesuffix("]")
    return inside.split(",") if inside else []


def variant_parts(variant: str) -> tuple[str, dict[str, str]]:
    """The format of a spelled variant, and its settings: ('orc', {'engine': 'pyarrow', 'codec': 'lz4'})."""
    pairs = (text.partition("=") for text in settings_of(variant))
    return format_name(variant), {key: value for key, _, value in pairs}
