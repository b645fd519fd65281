"""The registries of formats for tables, of storages for images and of stores for documents. No name is in two
registries, so the name of a variant identifies its registry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from adapters.contract import Adapter
from adapters.registry import Registry
from adapters.spelling import parse
from bench_runner.data_kinds import DOCUMENTS, IMAGES, TABLES
from document_stores.registry import DOCUMENT_STORES
from formats.registry import FORMATS
from image_storages.registry import STORAGES

REGISTRIES: dict[str, Registry[Any]] = {TABLES.name: FORMATS, IMAGES.name: STORAGES, DOCUMENTS.name: DOCUMENT_STORES}
"""The registry of each kind of data. The keys are names of kinds of data."""


def registry_of(spelled: str) -> Registry[Any]:
    """Return the registry that has the format of a variant, given the variant's full name. For an unknown format,
    return the registry of table formats, whose methods then raise UnknownFormat."""
    name, _ = parse(spelled)
    return next((registry for registry in REGISTRIES.values() if name in registry.entries), FORMATS)


def engine_of(spelled: str) -> tuple[type[Adapter], dict[str, str]]:
    """Return the adapter class and the settings of a variant, given its full name. Raises the errors of
    Registry.engine."""
    return registry_of(spelled).engine(spelled)


def engines_of(variants: Iterable[str]) -> tuple[type[Adapter], ...]:
    """Return the adapter classes of variants, given their full names, without repetition. Raises the errors of
    Registry.engine."""
    return tuple(dict.fromkeys(engine_of(variant)[0] for variant in variants))


def build(spelled: str, *, threads: int | None = None) -> Any:
    """Return a new adapter for a variant, given its full name, without loading its libraries. Raises the errors of
    Registry.build."""
    return registry_of(spelled).build(spelled, threads=threads)


def build_loaded(spelled: str) -> Any:
    """Return an adapter that is ready to save and read, for use in programs. Raises the errors of Registry.build."""
    adapter = build(spelled)
    adapter.load_library()
    return adapter


def all_engines() -> Iterator[tuple[Registry[Any], type[Adapter]]]:
    """Yield every engine of every format, storage and store, with the registry that lists it."""
    for registry in REGISTRIES.values():
        for name in registry:
            yield from ((registry, engine) for engine in registry.engines(name))
