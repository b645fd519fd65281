"""Answer SQL about a JSON Lines file, or about a document store in a folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench_runner.run.work_folder import work_folders
from data_generator.errors import DataError
from data_generator.imported import byte_stream
from data_generator.imported.byte_stream import ByteStream, Line
from data_generator.imported.documents import document_input
from data_generator.imported.refusal import REPAIR, Refused, printable
from data_generator.imported.user_files import UserInput
from format_bench.errors import RequestError

if TYPE_CHECKING:
    import pyarrow as pa

    from libraries.document_store.errors import DocumentError
    from libraries.document_store.sql.answering import Explanation
    from libraries.document_store.store import DocumentStore

LINE = "_line"
"""Field with the number of a document's line in the file. It identifies a document if the caller names no key."""
INSTALL = "pip install 'format-bench[documents]'"

OnLines = Callable[[int], None]
"""A function that is called with the number of lines read so far."""


def ask(
    data: Path | str, sql: str, *, key: str | None = None, explain: bool = False, on_lines: OnLines | None = None
) -> pa.Table | Explanation:
    """Return the answer to `SELECT ... FROM docs` as an Arrow table.

    `data` is a JSON Lines file, plain or compressed, or the folder of a document store. A file is read into a temporary
    store, which is removed at the end. Each line is a document, and `_line` is its number; with `key`, a later line
    replaces an earlier one with the same key. With `explain`, return how the query would be answered.

    Raises RequestError for invalid arguments and SQL, and DataError for a file or folder that cannot be read.
    """
    if key is not None:
        _check_key(key)
    with _errors(data):
        from libraries.document_queries.sql.parsing import parse

        # A mistake in the SQL is reported before a large file is read.
        parse(sql)
        with _opened(Path(data), key, on_lines) as store:
            return store.sql(sql, explain=True) if explain else store.sql(sql)


def _check_key(key: str) -> None:
    step = "Name a field of the documents, such as id."
    if not isinstance(key, str) or not key:
        given = "an empty text" if key == "" else type(key).__name__
        raise RequestError(f"`key` must be the name of a field (got {given}).", step, parameter="key")
    try:
        key.encode()
    except UnicodeEncodeError:
        raise RequestError(f"`key={printable(ascii(key))}` is not valid UTF-8.", step, parameter="key") from None


@contextmanager
def _errors(data: Path | str) -> Iterator[None]:
    """Turn errors of the store into errors for users."""
    try:
        from libraries.document_queries.errors import QueryError
        from libraries.document_store.errors import DocumentStoreError, FullError

        try:
            yield
        except QueryError as error:
            raise RequestError(
                f"`sql`: {_sentence(error)}",
                "Example: SELECT kind, count(*) AS n FROM docs GROUP BY kind ORDER BY n DESC",
                parameter="sql",
            ) from None
        except FullError as error:
            raise DataError(
                _sentence(error),
                f"Free some space, or name a folder on another disk: TMPDIR=FOLDER (now {tempfile.gettempdir()}).",
            ) from None
        except DocumentStoreError as error:
            raise DataError(f"{printable(data)}: {_sentence(error)}", "") from None
    except ModuleNotFoundError as error:
        if error.name not in ("cramjam", "duckdb", "sqlglot", "zstandard"):
            raise
        raise RequestError(f"A query needs {error.name}, which is not installed.", INSTALL) from None


def _sentence(words: object) -> str:
    text = printable(words)
    return text if text.endswith(".") else f"{text}."


@contextmanager
def _opened(data: Path, key: str | None, on_lines: OnLines | None) -> Iterator[DocumentStore]:
    if data.is_dir():
        if key is not None:
            raise RequestError(
                f"`key` cannot be used with the folder {printable(data)}: a document store already has a key.",
                "Omit `key`.",
                parameter="key",
            )
        with _stored(data) as store:
            yield store
        return
    from libraries.document_store.store import DocumentStore

    found = document_input.find(data)
    temporary = tempfile.gettempdir()
    with work_folders("ask", Path(temporary), (temporary,)) as folders:
        store = DocumentStore.open(
            folders[temporary] / "docs", key=LINE if key is None else key, sync="none", merges="late"
        )
        try:
            _load(store, found, key, on_lines or _ignore)
            yield store
        except Refused as refused:
            raise DataError(f"{refused.where or printable(data)}: {_sentence(refused.reason)}", refused.step) from None
        finally:
            store.close(wait=False)


def _ignore(lines: int) -> None:
    """Show no progress."""


def _stored(folder: Path) -> DocumentStore:
    from libraries.document_store.store import DocumentStore
    from libraries.document_store.tree.manifest import read_manifest
    from libraries.durable.calls import OSCalls

    manifest = read_manifest(OSCalls(), folder)
    if manifest is None:
        raise DataError(f"{printable(folder)} is a folder without a document store.", document_input.TAKEN)
    return DocumentStore.open(folder, key=manifest.key)


def _load(store: DocumentStore, found: UserInput, key: str | None, on_lines: OnLines) -> None:
    """Store all lines of a file. Raises Refused with the number of the first invalid line."""
    (file,) = found.files
    with open(file.path, "rb") as opened:
        byte_stream.check_packing(file.path, os.pread(opened.fileno(), 16, 0))
        for lines in ByteStream(opened.fileno(), file.path, file.size_bytes).lines():
            if lines:
                _upsert(store, lines, key, file.path)
                on_lines(lines[-1].number)


def _upsert(store: DocumentStore, lines: list[Line], key: str | None, path: str) -> None:
    from libraries.document_store.errors import DocumentError

    try:
        store.upsert(b"\n".join(line.content if key is not None else _numbered(line, path) for line in lines))
    except DocumentError as error:
        if error.document is None:
            raise
        line = lines[error.document]
        raise _refused(line, key, error, f"{path}, line {line.number:,}") from None


def _refused(line: Line, key: str | None, error: DocumentError, where: str) -> Refused:
    from libraries.document_store.errors import DocumentError
    from libraries.document_store.json_text import rows_of

    if key is None:
        try:
            rows_of(line.content)
        except DocumentError as original:
            # The positions in this message are those in the user's line, without the number.
            error = original
        else:
            return Refused(
                f"has a field {LINE!r}, but line numbers are stored in a field of this name",
                "Use `key` to name a field that identifies a document; then no line numbers are stored.",
                where,
            )
    named = f"{error.path}: " if error.path else ""
    return Refused(f"{named}{error.words}", REPAIR, where)


def _numbered(line: Line, path: str) -> bytes:
    """Return the document with the number of its line as first field."""
    content = line.content.strip()
    if not content.startswith(b"{"):
        step = (
            "Convert an array: jq -c '.[]' FILE > NEW"
            if content.startswith(b"[")
            else "Write one object per line: {..}"
        )
        raise Refused("is not a JSON object", step, f"{path}, line {line.number:,}")
    rest = content[1:].lstrip()
    return b'{"%s":%d%s%s' % (LINE.encode(), line.number, b"" if rest.startswith(b"}") else b",", rest)
