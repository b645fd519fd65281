"""Find the records of a JSON file and the line numbers of the records.

A file has one object per line, one array of objects, or consecutive objects over several lines. Files with one object
per line are not parsed here. The other two layouts are parsed once, in a bounded buffer, to find where records end.
"""

from __future__ import annotations

import codecs
import enum
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from data_generator.imported.byte_stream import BLOCK_BYTES, ByteStream, Line, first_bytes
from data_generator.imported.refusal import Refused
from data_generator.imported.tables.json_lines import shapes
from data_generator.imported.tables.table_reading import TableFile
from data_generator.imported.tables.text_types.inference import refuse_encoding

MOST_BYTES = BLOCK_BYTES
"""Maximum bytes of a record in files with other layouts than one record per line."""

_WHITE = " \t\r\n"
# Keep numbers as text, because their values do not matter here and Python would refuse very long integers.
_decode = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode


class Layout(enum.Enum):
    """The way in which records are arranged in a file. The values are shown to users."""

    LINES = "one object per line"
    ARRAY = "one array of objects"
    OBJECTS = "objects over several lines"


@dataclass(frozen=True)
class Records:
    """The records of one file."""

    source: TableFile
    layout: Layout
    encoding: str
    beginning: str

    def parts(self) -> Iterator[list[Line]]:
        """Yield the records from the first on, block by block.

        Raises Refused for a record that is longer than a block. If the file has another layout than one record per
        line, Refused is also raised for invalid JSON.
        """
        return self._lines() if self.layout is Layout.LINES else self._parsed()

    def check_document(self) -> None:
        """Raise Refused if the only record of the file is a whole table or a service's response, and not a row."""
        is_lines = any(ending in self.source.path.lower() for ending in (".jsonl", ".ndjson"))
        shapes.refuse_document(self.beginning, self.source.path, is_lines=is_lines)

    def _lines(self) -> Iterator[list[Line]]:
        content = self.source.content()
        try:
            for lines in content.lines():
                yield lines
                self.source.progress.at(f"{self.source.path}, line {content.newlines + 1:,}")
        except Refused:
            if content.newlines == 0:
                self.check_document()
            raise

    def _parsed(self) -> Iterator[list[Line]]:
        """Yield the records of a file that is an array of objects, or consecutive objects. The records are found by
        parsing."""
        scan = _Scan(self, self.source.content())
        while not scan.is_over:
            found = scan.records()
            self.source.progress.at(f"{self.source.path}, line {scan.line:,}")
            yield found


class _Expected(enum.Enum):
    """What the next token must be in the text of an array, e.g. a record after a comma."""

    OPENING = enum.auto()
    FIRST = enum.auto()
    RECORD = enum.auto()
    SEPARATOR = enum.auto()
    NOTHING = enum.auto()


class _Scan:
    """Finds records in the content of a file. At most two blocks of the content are in memory."""

    def __init__(self, records: Records, content: ByteStream) -> None:
        self._records, self._content = records, content
        self._text, self._at, self.line = "", 0, 1
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._is_array = records.layout is Layout.ARRAY
        self._expected = _Expected.OPENING if self._is_array else _Expected.RECORD
        self._is_first = True
        self._is_read = False
        self.is_over = False

    def records(self) -> list[Line]:
        """Return the records that end in the next block. Raises Refused for invalid JSON and for a record that is too
        long."""
        self._read()
        found: list[Line] = []
        while self._skip_white():
            if self._is_array and self._is_separator(self._text[self._at]):
                self._move(self._at + 1)
                continue
            try:
                record, end = _decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if self._is_read or len(self._text) - self._at > MOST_BYTES:
                    self._refuse(error)
                return found
            if not isinstance(record, dict):
                self._say("is JSON, but not an object", 'Write one object per line, e.g. {"a": 1}')
            found.append(Line(self.line, self._text[self._at : end].encode("utf-8", "surrogatepass")))
            self._move(end)
            self._is_first = False
            self._expected = _Expected.SEPARATOR if self._is_array else _Expected.RECORD
        if self._is_read and self._is_array and self._expected is not _Expected.NOTHING:
            self._say("ends before ']' closes its array", "The file seems to be cut off. Write it again.")
        self.is_over = self._is_read
        return found

    def _read(self) -> None:
        part = self._content.read(BLOCK_BYTES)
        self._is_read = not part
        rest = self._text[self._at :]
        try:
            self._text = rest + self._decoder.decode(part, final=not part)
        except UnicodeDecodeError as error:
            line = self.line + rest.count("\n") + error.object[: error.start].count(b"\n")
            refuse_encoding(f"{self._records.source.path}, line {line:,}", error.object[error.start], error.object)
        self._at = 0

    def _is_separator(self, character: str) -> bool:
        """Return whether the character belongs to the array (a bracket or comma) and not to a record.

        Raises Refused for a character that is not allowed at this position.
        """
        expected = self._expected
        if expected is _Expected.NOTHING:
            self._say("has content after its array", "Write one object per line, and nothing else.")
        if expected is _Expected.OPENING:
            self._expected = _Expected.FIRST
            return True
        if expected in (_Expected.FIRST, _Expected.SEPARATOR) and character == "]":
            self._expected = _Expected.NOTHING
            return True
        if expected is _Expected.SEPARATOR:
            if character != ",":
                self._say("is not JSON: a comma is missing after an object", "Repair it.")
            self._expected = _Expected.RECORD
            return True
        return False

    def _skip_white(self) -> bool:
        """Skip white space and return whether something follows."""
        ahead = self._at
        while ahead < len(self._text) and self._text[ahead] in _WHITE:
            ahead += 1
        self._move(ahead)
        return ahead < len(self._text)

    def _move(self, to: int) -> None:
        self.line += self._text.count("\n", self._at, to)
        self._at = to

    def _refuse(self, error: Exception) -> NoReturn:
        if self._is_first and not self._is_array:
            self._records.check_document()
        if isinstance(error, RecursionError):
            self._say("begins an object that is nested too deeply", "Leave it out.")
        if len(self._text) - self._at > MOST_BYTES:
            self._say(f"begins an object of more than {MOST_BYTES >> 20} MB", "Leave it out.")
        said, place = getattr(error, "msg", str(error)), getattr(error, "pos", self._at)
        if place >= len(self._text.rstrip()):
            self._say(f"begins an object that never ends: {said}", "The file seems to be cut off. Write it again.")
        self._move(place)
        self._say(f"is not JSON: {said}", "Repair it, or leave it out.")

    def _say(self, reason: str, step: str) -> NoReturn:
        raise Refused(reason, step, f"{self._records.source.path}, line {self.line:,}") from None


def found(source: TableFile) -> Records:
    """Return the records of the file. The beginning of the file determines its layout.

    Raises Refused for an array whose items are not objects.
    """
    content = source.content()
    beginning = first_bytes(content).decode("utf-8", "replace")
    if beginning.lstrip(_WHITE).startswith("["):
        if _has_arrays(beginning):
            shapes.refuse_arrays(source.path)
        shapes.refuse_array(beginning, source.path)
        return Records(source, Layout.ARRAY, content.encoding, beginning)
    layout = Layout.OBJECTS if is_over_lines(beginning) else Layout.LINES
    return Records(source, layout, content.encoding, beginning)


def _has_arrays(beginning: str) -> bool:
    """Return whether each of the first two lines that are not blank is or begins an array."""
    lines = [line for line in beginning.splitlines() if line.strip()]
    return len(lines) > 1 and lines[1].lstrip().startswith("[") and _ends(lines[0])


def is_over_lines(beginning: str) -> bool:
    """Return whether the first object of a file continues after its first line. `beginning` is the beginning of the
    file."""
    text = beginning.lstrip(_WHITE)
    line, newline, _ = text.partition("\n")
    if not newline or not text.startswith("{") or _ends(line):
        return False
    try:
        _, end = _decode(text, 0)
    except (ValueError, RecursionError) as error:
        # The beginning (1 MiB) may be shorter than an object. An error is certain only if the first line ends in it.
        is_cut = len(beginning.encode("utf-8", "replace")) >= 1 << 20
        return is_cut and getattr(error, "pos", 0) > len(line)
    return end > len(line)


def _ends(line: str) -> bool:
    """Return whether a value that begins in this line ends in it."""
    try:
        _decode(line.lstrip(_WHITE), 0)
    except (ValueError, RecursionError):
        return False
    return True
