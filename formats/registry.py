"""The list of all formats for tables: the name of a format, the module of its adapters, and the pip extra that installs
the libraries of these adapters.

The list is sorted by name. Benchmark suites, listings, documentation and shell completion are derived from the list.
"""

from adapters.contract import TabularFormat
from adapters.registry import Entry, Registry

FORMATS: Registry[TabularFormat] = Registry(
    {
        "avro": Entry("formats.avro:ENGINES", "avro"),
        "csv": Entry("formats.csv:ENGINES"),
        "duckdb-table": Entry("formats.duckdb:ENGINES", "engines"),
        "excel": Entry("formats.excel:ENGINES", "excel"),
        "f3": Entry("formats.f3:ENGINES", "f3"),
        "feather": Entry("formats.feather:ENGINES"),
        "hdf5-fixed": Entry("formats.hdf5:FIXED", "hdf5"),
        "hdf5-pytables": Entry("formats.pytables:ENGINES", "hdf5"),
        "hdf5-table": Entry("formats.hdf5:TABLE", "hdf5"),
        "json": Entry("formats.json:ENGINES"),
        "lance": Entry("formats.lance:ENGINES", "lance"),
        "orc": Entry("formats.orc:ENGINES"),
        "parquet": Entry("formats.parquet.engines:ENGINES"),
        "pickle": Entry("formats.pickle:ENGINES"),
        "raw-io": Entry("formats.raw_io:ENGINES"),
        "sqlite-table": Entry("formats.sqlite:ENGINES"),
        "vortex": Entry("formats.vortex:ENGINES", "vortex"),
        "xml": Entry("formats.xml:ENGINES", "xml"),
    },
    entry_point_group="format_bench.formats",
)
