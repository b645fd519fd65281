"""The suite `tabular`, which compares all formats in saving and reading whole tables."""

from bench_runner.suites.rules import EveryFormat
from bench_runner.suites.suite import QUICK_TABLE_ROWS, Quick, Suite

SUITE = Suite(
    name="tabular",
    question="Which format saves and reads a table fastest, smallest, and with the least memory?",
    operations=("save", "read"),
    operations_on_request=("project[columns=4]",),
    datasets=("eq", "int", "float", "bool", "str", "core"),
    on_request=("webface", "tpch-lineitem", "bi", "classic", "geo", "log", "ml", "table"),
    variants=EveryFormat(
        tracks=("plain", "default"),
        left_out={
            "duckdb-table, hdf5-pytables, sqlite-table": "tables of a database, which users rarely read whole: see the "
            "suite access; spelled in full they can be measured here too"
        },
    ),
    quick=Quick(
        rows=QUICK_TABLE_ROWS,
        datasets=("eq", "core"),
        reason="20,000 rows of a uniform and of a realistic table; without the four tables of mostly one type",
    ),
    reasons={
        "eq, int, float, bool, str": "the thesis's five presets (table 4.2): one kind of column dominates each",
        "core": "uniform random data favour some formats and penalise others, unlike real data",
        "webface": "10,000,000 rows take hours for the slow formats, so it is measured only on request",
        "track plain": "no codec, as the thesis measured",
        "track default": "what a call without options does, if that differs from plain",
    },
)
