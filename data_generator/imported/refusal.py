"""The error for user files that are refused, and printable names."""

from __future__ import annotations

REPAIR = "Repair it, or leave it out."

_LONGEST = 400


class Refused(Exception):
    """A file of the user is refused.

    `where` is the position in the file, or empty if the caller adds the position. The message is 'where: reason.' and
    the next step. Write the reason as a clause such as 'has no rows', and the step as a sentence.
    """

    def __init__(self, reason: str, step: str = REPAIR, where: str = "") -> None:
        """Store the arguments without control characters. The arguments may quote the file, which may have such
        characters."""
        self.reason, self.step, self.where = printable(reason), printable(step), printable(where)
        super().__init__(self.reason)


def printable(text: object) -> str:
    """Return the text in one line of limited length, without control characters, which could change the terminal."""
    line = str(text)
    if not line.isprintable():
        line = " ".join(line.split())
        line = line if line.isprintable() else ascii(line)[1:-1]
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
