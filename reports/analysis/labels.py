"""The shortest labels that tell variants apart."""

from __future__ import annotations

from collections.abc import Iterable

from bench_runner.variants import Variant
from reports.analysis.near_storage.access_paths import is_way, way_label


def short_labels(variants: Iterable[Variant]) -> dict[Variant, str]:
    """The shortest names that tell these variants apart: the format, with a codec where there is one, and
    otherwise only those settings in which variants of one format differ; the engine by its name alone. Where ways of
    reading differ, a codec that all share is not told. Near storage's ways are called by their own names where nothing
    else is there."""
    variants = tuple(variants)
    ways = [variant for variant in variants if is_way(variant)]
    if ways and all(is_way(variant) or variant.is_raw_io for variant in variants):
        return {variant: way_label(variant) if variant in ways else variant.format_name for variant in variants}
    groups: dict[str, list[Variant]] = {}
    for variant in variants:
        groups.setdefault(variant.format_name, []).append(variant)
    labels = {}
    for group in groups.values():
        shared = set.intersection(*(set(variant.settings.items()) for variant in group))
        for variant in group:
            settings = variant.settings.items()
            reads = any(key == "reader" and (key, value) not in shared for key, value in settings)
            told = [
                value if key == "engine" else f"{key}={value}"
                for key, value in settings
                if (key, value) not in shared or (key == "codec" and value != "none" and not reads)
            ]
            name = variant.format_name
            labels[variant] = f"{name}[{','.join(told)}]" if told else name
    return labels
