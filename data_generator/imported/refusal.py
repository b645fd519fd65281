"""Why a user's file is not taken; and how names from outside are shown."""

from __future__ import annotations

REPAIR = "repair it, or leave it out"

_LONGEST = 400


class Refused(Exception):
    """An input that is not taken: `where` it is (empty where the one who catches it knows), the reason, the next
    step. Each is shown in one line."""

    def __init__(self, reason: str, step: str = REPAIR, where: str = "") -> None:
        """All three are made printable, because they may quote the file."""
        self.reason, self.step, self.where = printable(reason), printable(step), printable(where)
        super().__init__(self.reason)


def printable(text: object) -> str:
    """The text in one line and of bearable length, without what a terminal would take for a command."""
    line = str(text)
    if not line.isprintable():
        line = " ".join(line.split())
        line = line if line.isprintable() else ascii(line)[1:-1]
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
