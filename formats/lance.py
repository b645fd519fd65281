"""Lance: a folder of data files, a manifest and a transaction, made for random access."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapters import lance_pages
from adapters.contract import (
    Calls,
    Can,
    Handle,
    Maturity,
    Native,
    Offers,
    Reach,
    Setting,
    Sharing,
    Stage,
    Stored,
    TabularFormat,
)
from adapters.errors import AdapterError, RefusedData, RefusedSetting
from adapters.losses import Cause, Loss, Relation
from adapters.predicate import Kind, Predicate
from formats.shared.conditions import minus_zero, sql_condition, sql_literal
from formats.shared.rows import checked

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


def _without_order(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type) or not column.type.ordered:
        return None
    return column.cast(pa.dictionary(column.type.index_type, column.type.value_type))


_CATEGORIES_WITHOUT_ORDER = Loss(
    "ordered categoricals lose their order",
    "the same values",
    Cause.FORMAT,
    Relation(_without_order),
    frozenset({"categorical-ordered"}),
)


class LancePylance(TabularFormat):
    """pylance, written straight from the table."""

    format = "lance"
    engine = "pylance"
    title = "Lance"
    distributions = ("pylance",)
    native = Native.ARROW
    suffix = ".lance"
    settings: ClassVar = {
        "codec": Setting(
            ("auto", "none", "lz4", "zstd"), "auto", "general compression of all columns; auto: the writer's own choice"
        ),
        "level": Setting(range(1, 23), None, "level of the codec; without it the codec's own default"),
        "version": Setting(("2.0", "2.1", "2.2"), "2.2", "version of the data files"),
        "structural": Setting(
            ("default", "miniblock", "fullzip"), "default", "how pages of values are laid out; from version 2.1 on"
        ),
        "library_cache": Setting(
            ("on", "off"),
            "on",
            "whether metadata and indices stay in memory while a data set is open, within Lance's limits",
        ),
    }
    levels: ClassVar = {"zstd": range(1, 23)}
    equal: ClassVar = {"codec": "zstd", "level": "1"}
    maturity = Maturity(
        Stage.YOUNG,
        "one implementation, in Rust, which other languages bind; versions of its files still follow each other",
    )
    capabilities = frozenset({Can.PROJECTION, Can.APPEND, Can.TYPES, Can.NESTED, Can.OTHER_LANGUAGES, Can.NO_PICKLE})
    offers = Offers(
        project=True,
        take=Reach.ROWS,
        scan=frozenset(Kind),
        append=True,
        sharing=Sharing.ONE,
        keeps_columns=True,
    )

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Lance has dictionaries, but its writer knows of no order in them."""
        return (_CATEGORIES_WITHOUT_ORDER,)

    @property
    def calls(self) -> Calls | None:
        """As a user writes them; a codec goes into the metadata of every field, which takes more than a line."""
        if self.values["codec"] != "auto" or self.values["structural"] != "default":
            return None
        version = "" if self.values["version"] == "2.2" else f', data_storage_version="{self.values["version"]}"'
        cache = "".join(f", {name}={value}" for name, value in self._caches().items())
        return Calls(
            ("import lance",),
            f"lance.write_dataset({{held}}, {{path}}{version})",
            f"lance.dataset({{path}}{cache}).to_table()",
        )

    def _checked(self, given: Mapping[str, str]) -> dict[str, str | int | None]:
        values = super()._checked(given)
        if values["version"] == "2.0" and values["structural"] != "default":
            raise RefusedSetting(f"lance: version=2.0 ignores structural={values['structural']} (from 2.1 on)")
        return values

    def load_library(self) -> None:
        """Import lance."""
        import lance
        import lance.file

        self._lance = lance

    def save(self, table: pa.Table, location: Path) -> None:
        """Write a data set of one version; Lance takes a codec from the metadata of each field."""
        version: Any = self.values["version"]
        try:
            self._lance.write_dataset(self._with_metadata(table), str(location), data_storage_version=version)
        except OSError as error:
            if "too wide for miniblock" not in str(error):
                raise
            raise RefusedData("structural=miniblock: two values do not fit into a chunk of 8,186 bytes") from error

    def _with_metadata(self, table: pa.Table) -> pa.Table:
        metadata = {}
        if self.values["codec"] != "auto":
            metadata[lance_pages.CODEC_KEY] = str(self.values["codec"]).encode()
        if self.values["level"] is not None:
            metadata[lance_pages.LEVEL_KEY] = str(self.values["level"]).encode()
        if self.values["structural"] != "default":
            metadata[lance_pages.STRUCTURAL_KEY] = str(self.values["structural"]).encode()
        if not metadata:
            return table
        import pyarrow as pa

        return table.cast(pa.schema([field.with_metadata(metadata) for field in table.schema]))

    def read(self, location: Path) -> pa.Table:
        """Read all columns of the last version."""
        return self._dataset(location).to_table()

    def _dataset(self, location: Path) -> Any:
        return self._lance.dataset(str(location), **self._caches())

    def _caches(self) -> dict[str, Any]:
        if self.values["library_cache"] == "on":
            return {}
        return {"index_cache_size_bytes": 0, "metadata_cache_size_bytes": 0}

    def open(self, location: Path) -> Handle:
        """Open the last version. A data set keeps no file open, so there is nothing to close."""
        dataset = self._dataset(location)
        rows = dataset.count_rows()

        def project(columns: Sequence[str]) -> pa.Table:
            # Lance takes names for expressions: what '*' adds goes, and a name that it takes otherwise is an error.
            return dataset.to_table(columns=list(columns)).select(columns)

        def take(numbers: np.ndarray, columns: Sequence[str]) -> pa.Table:
            asked = checked(numbers, rows).tolist()
            return dataset.take(asked, columns=list(columns)).select(columns)

        def scan(predicate: Predicate, columns: Sequence[str]) -> pa.Table:
            return dataset.to_table(columns=list(columns), filter=_condition(predicate)).select(columns)

        return Handle(project=project, take=take, scan=scan)

    def append(self, table: pa.Table, location: Path) -> None:
        """Write a fragment, and a version that has it too."""
        self._lance.write_dataset(self._with_metadata(table), str(location), mode="append")

    def stored(self, location: Path) -> Stored:
        """Codec and encodings of all pages, which must have the layout and the version that the settings say.

        Raises AdapterError where they have not.
        """
        dataset = self._lance.dataset(str(location))
        found = lance_pages.stored_of(location, dataset, self._lance.file.LanceFileReader)
        if found.details["file format"] != self.values["version"]:
            raise AdapterError(f"the files have version {found.details['file format']}, not {self.values['version']}")
        lance_pages.check_layout(found.encodings, str(self.values["structural"]))
        return found


def _condition(predicate: Predicate) -> str:
    """A filter of Lance's SQL, in which -0.0 is less than 0.0 and NaN is above all other numbers."""
    name = "`" + predicate.column.replace("`", "``") + "`"
    values = [value for value in predicate.present if value == value]
    if predicate.kind is Kind.RANGE and len(values) == 2:
        low, high = (minus_zero(value) for value in values)
        return f"{name} >= {sql_literal(low)} AND {name} < {sql_literal(high)}"
    if predicate.kind in (Kind.EQUAL, Kind.IN) and any(value == 0 and isinstance(value, float) for value in values):
        return " OR ".join(f"({name} >= {sql_literal(minus_zero(v))} AND {name} <= {sql_literal(v)})" for v in values)
    return sql_condition(predicate, name)


ENGINES = (LancePylance,)
