"""How words of the command line are parsed: times, levels, percentages, column types, reading options."""

from __future__ import annotations

from typing import Any

import click
import pytest

from format_bench.options import read_options
from format_bench.parameter_types import COLUMN_TYPE, DURATION, LEVELS, NAMES, OVER, PERCENT


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (DURATION, "90s", 90.0),
        (DURATION, "1.5m", 90.0),
        (DURATION, "2h", 7200.0),
        (NAMES, "zstd, gzip,zstd", ("zstd", "gzip")),
        (LEVELS, "1,3,9", (1, 3, 9)),
        (PERCENT, "12.5 %", 0.125),
        (OVER, "nulls=0,0.5", {"nulls": ("0", "0.5")}),
        (COLUMN_TYPE, "zip=text", ("zip", "text")),
        (COLUMN_TYPE, "a=b=text", ("a=b", "text")),
    ],
)
def test_words_become_values(kind: click.ParamType, text: str, value: object) -> None:
    assert kind.convert(text, None, None) == value


@pytest.mark.parametrize(("kind", "text"), [(DURATION, "0s"), (DURATION, "90"), (PERCENT, "0.1"), (COLUMN_TYPE, "zip")])
def test_other_words_are_refused_with_what_to_write(kind: click.ParamType, text: str) -> None:
    with pytest.raises(click.UsageError, match="Write"):
        kind.convert(text, None, None)


@pytest.mark.parametrize(("said", "delimiter"), [("tab", "\t"), ("\\t", "\t"), (";", ";"), (None, None)])
def test_how_a_table_is_read_is_passed_on(said: str | None, delimiter: str | None) -> None:
    given: dict[str, Any] = {
        "columns": (("zip", "text"),),
        "delimiter": said,
        "decimal": ",",
        "sheet": "2026",
        "encoding": "latin-1",
        "no_header": True,
        "day_first": True,
        "rows": 5,
    }
    options = read_options(given)
    assert given == {"rows": 5}
    assert (options.columns, options.delimiter, options.decimal) == ({"zip": "text"}, delimiter, ",")
    assert (options.sheet, options.encoding, options.header, options.day_first) == ("2026", "latin-1", False, True)
