"""Variants and operations as values: names with parameters, parsed once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache

RAW_IO = ("raw-io", "image-raw-io", "documents-raw-io")
"""The plain writes and reads of tables, of images and of documents."""
VIEWS = "arrays=views"


class _Spelled(str):
    """A name with parameters. It equals its text, which is used in records, keys and files. Invalid text is accepted,
    because a stored run may contain it."""

    @cached_property
    def _parts(self) -> tuple[str, Mapping[str, str]]:
        name, _, rest = self.partition("[")
        inside = rest.removesuffix("]")
        pairs = (text.partition("=") for text in inside.split(",")) if inside else ()
        return name, {key: value for key, _, value in pairs}


class Variant(_Spelled):
    """A format with its engine and settings: 'parquet[engine=pyarrow,codec=zstd]'."""

    @property
    def format_name(self) -> str:
        """'parquet' of 'parquet[engine=pyarrow]'."""
        return self._parts[0]

    @property
    def settings(self) -> Mapping[str, str]:
        """All settings including the engine, in order: {'engine': 'pyarrow', 'codec': 'zstd'}."""
        return self._parts[1]

    @property
    def engine(self) -> str | None:
        """None for a format with one engine."""
        return self.settings.get("engine")

    def without(self, setting: str) -> Variant:
        """Return the variant without this setting."""
        kept = ",".join(f"{key}={value}" for key, value in self.settings.items() if key != setting)
        return variant_of(f"{self.format_name}[{kept}]" if kept else self.format_name)

    @property
    def is_raw_io(self) -> bool:
        """Whether this is raw I/O, the plain write and read that every format is a multiple of."""
        return self.format_name in RAW_IO

    @property
    def is_apart(self) -> bool:
        """Whether its result is another kind of object than those of others, so that it is never ranked with them: a
        file mapping, arrays that are views of others' memory (both rule 7), integers and booleans with nulls as plain
        numpy (rule 8), or rows that a filter should have left out."""
        return any(text in self for text in ("mapped=true", VIEWS, "nulls=numpy", "technique="))


class OperationName(_Spelled):
    """An operation with its parameters, or a data set with its own: 'take[rows=10]', 'traits[nulls=0.5]'."""

    @property
    def name(self) -> str:
        """'take' of 'take[rows=10]'."""
        return self._parts[0]

    @property
    def parameters(self) -> Mapping[str, str]:
        """{'rows': '10'} of 'take[rows=10]', in order."""
        return self._parts[1]


@lru_cache(maxsize=4096)
def variant_of(text: str) -> Variant:
    """Cached constructor."""
    return Variant(text)


@lru_cache(maxsize=4096)
def operation_name_of(text: str) -> OperationName:
    """Cached constructor."""
    return OperationName(text)


def is_raw_io(variant: str) -> bool:
    """Return whether a spelled variant is raw I/O."""
    return variant_of(variant).is_raw_io
