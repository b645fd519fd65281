"""The list of planted faults: a TOML file for each area, beside this module.

    [[fault]]
    name = "csv: the first row is taken for a header although --no-header is given"
    file = "data_generator/imported/tables/csv_layout.py"
    old = "has_header = options.header"
    new = "has_header = True"
    tests = ["tests/data_generator/imported/tables/test_csv_reader.py"]

`old` stands in the file once. `tests` are those that should notice: files, or tests as pytest names them.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One change of one place that makes a wrong program."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def planted(self, text: str) -> str:
        """The text of the file with the fault. Raises ValueError where `old` does not stand in it exactly once."""
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self.name}: `old` stands {count} times in {self.file}, and has to stand there once")
        return text.replace(self.old, self.new)


class _Area(msgspec.Struct, forbid_unknown_fields=True):
    fault: list[Fault]


def faults() -> list[Fault]:
    """All faults, area by area."""
    areas = sorted(Path(__file__).parent.glob("*.toml"))
    return [fault for area in areas for fault in msgspec.toml.decode(area.read_bytes(), type=_Area).fault]
