"""Find the shortest labels that distinguish variants."""

from __future__ import annotations

from collections.abc import Iterable

from bench_runner.variants import Variant
from reports.analysis.near_storage.access_paths import is_way, way_label


def short_labels(variants: Iterable[Variant]) -> dict[Variant, str]:
    """Return the shortest labels that distinguish these variants.

    A label has the format's name, the codec if there is one, and the settings in which variants of the format differ.
    The engine appears as 'pyarrow', not as 'engine=pyarrow'. If variants of a format differ in their reader, a codec
    that they share is left out. If all variants are near-storage access paths, the labels are the names of these paths.
    """
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
