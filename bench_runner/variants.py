"""Full names of variants and operations, e.g. 'parquet[engine=pyarrow]', as strings that give access to their
parameters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache

RAW_IO = ("raw-io", "image-raw-io", "documents-raw-io")
"""The variants that write and read tables, images and documents as plain bytes."""
VIEWS = "arrays=views"
_APART = {"mapped": "true", "arrays": "views", "nulls": "numpy"}
"""Settings with which reading returns another kind of object than other variants return."""


class _Spelled(str):
    """A string that consists of a name and parameters in brackets. The parameters are parsed once. Invalid text is
    accepted, because stored runs may contain such text."""

    @cached_property
    def _parts(self) -> tuple[str, Mapping[str, str]]:
        name, _, rest = self.partition("[")
        inside = rest.removesuffix("]")
        pairs = (text.partition("=") for text in inside.split(",")) if inside else ()
        return name, {key: value for key, _, value in pairs}


class Variant(_Spelled):
    """A format with its engine and settings, such as 'parquet[engine=pyarrow,codec=zstd]'."""

    @property
    def format_name(self) -> str:
        """The name of the format, such as 'parquet' of 'parquet[engine=pyarrow]'."""
        return self._parts[0]

    @property
    def settings(self) -> Mapping[str, str]:
        """All settings including the engine, in order, such as {'engine': 'pyarrow', 'codec': 'zstd'}."""
        return self._parts[1]

    @property
    def engine(self) -> str | None:
        """The engine, or None for a format with only one engine."""
        return self.settings.get("engine")

    def without(self, setting: str) -> Variant:
        """Return the variant without this setting."""
        kept = ",".join(f"{key}={value}" for key, value in self.settings.items() if key != setting)
        return variant_of(f"{self.format_name}[{kept}]" if kept else self.format_name)

    @property
    def is_raw_io(self) -> bool:
        """Whether this is raw I/O, the plain write and read with which every format is compared."""
        return self.format_name in RAW_IO

    @property
    def is_apart(self) -> bool:
        """Whether reading returns another kind of object than with other variants, so that the variant is not ranked.
        Examples are file mappings, arrays that are views of other memory (rule 7), and columns with nulls as plain
        numpy arrays (rule 8)."""
        return "technique" in self.settings or any(self.settings.get(key) == value for key, value in _APART.items())


class OperationName(_Spelled):
    """The full name of an operation or of a data set, with its parameters, such as 'take[rows=10]' or
    'traits[nulls=0.5]'."""

    @property
    def name(self) -> str:
        """The name without parameters, such as 'take' of 'take[rows=10]'."""
        return self._parts[0]

    @property
    def parameters(self) -> Mapping[str, str]:
        """The parameters in order, such as {'rows': '10'} of 'take[rows=10]'."""
        return self._parts[1]


@lru_cache(maxsize=4096)
def variant_of(text: str) -> Variant:
    """Return the Variant with this full name. Results are cached."""
    return Variant(text)


@lru_cache(maxsize=4096)
def operation_name_of(text: str) -> OperationName:
    """Return the OperationName with this text. Results are cached."""
    return OperationName(text)


def is_raw_io(variant: str) -> bool:
    """Return whether a variant, given by its full name, is raw I/O."""
    return variant_of(variant).is_raw_io
