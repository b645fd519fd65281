"""Load the list of planted faults. This folder has a TOML file for each area of the project, with entries like this:

    [[fault]]
    name = "csv: the first row is read as a header in spite of --no-header"
    file = "data_generator/imported/tables/csv_layout.py"
    old = "has_header = options.header"
    new = "has_header = True"
    tests = ["tests/data_generator/imported/tables/test_csv_reader.py"]

`old` has to occur exactly once in the file. `tests` lists the tests that should find the fault: files, or pytest's node
IDs.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fault, introduced by a change in one place of one file."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def planted(self, text: str) -> str:
        """Return the text with the fault. Raise ValueError unless `old` occurs in it exactly once."""
        if (count := text.count(self.old)) != 1:
            raise ValueError(
                f"{self.name}: `old` occurs {count} times in {self.file} instead of once. Update the entry."
            )
        return text.replace(self.old, self.new)


class _Area(msgspec.Struct, forbid_unknown_fields=True):
    fault: list[Fault]


def faults() -> list[Fault]:
    """Return the faults of all areas."""
    areas = sorted(Path(__file__).parent.glob("*.toml"))
    return [fault for area in areas for fault in msgspec.toml.decode(area.read_bytes(), type=_Area).fault]
