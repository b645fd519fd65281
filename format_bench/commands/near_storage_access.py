"""Read tokens and secrets, and report errors, for the commands `serve` and `store`.

Tokens and secrets never appear on the command line. They come from the environment, or from a file that no other user
may read. This module does not open connections.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from format_bench.errors import RequestError
from format_bench.terminal import FAILED, WRONG_REQUEST, errors_told

CATALOG, TOKEN = "FORMAT_BENCH_CATALOG", "FORMAT_BENCH_TOKEN"
"""Environment variables: the catalog's address, and the client's token."""
PORT = 8815
"""Default port of the catalog."""
SECRET_FILE, TOKEN_FILE = "secret", "token"
"""Files in a catalog's folder: the secret that its nodes present, and the token that its clients present."""


@contextmanager
def near_storage_errors() -> Iterator[None]:
    """Turn errors of near storage, and missing libraries, into a message and an exit code: 2 for a request that cannot
    be met, 1 for a failure."""
    from libraries.near_storage import errors

    wrong = (errors.RequestError, errors.FooterError, errors.NotFoundError, errors.UnauthenticatedError)
    with errors_told():
        try:
            yield
        except ImportError as error:
            raise RequestError(
                f"Near storage needs {_lacking(error)}, which is not installed.",
                "Run: pip install -e '.[near-storage]'",
            ) from None
        except errors.NearStorageError as error:
            click.echo(f"error: {_silent(error) if isinstance(error, errors.SilentError) else error}", err=True)
            raise click.exceptions.Exit(WRONG_REQUEST if isinstance(error, wrong) else FAILED) from None


def _lacking(error: ImportError) -> str:
    """Return the name of the missing library. If pyarrow lacks its part Flight, the error has only a sentence and no
    name."""
    return "pyarrow with Flight" if "flight" in str(error) else error.name or str(error)


def _silent(error: Exception) -> str:
    """Return the message for a catalog that does not answer. The first line of `error` is the catalog's address."""
    first = str(error).splitlines()[0]
    return f"the catalog at {first}\n  Start it by 'serve catalog FOLDER', or name another by --catalog."


def trusted_roots(file: Path | None) -> bytes | None:
    """Return the root certificates in the file, or None if `file` is None. Raises RequestError if the file cannot be
    read."""
    try:
        return None if file is None else file.read_bytes()
    except OSError as error:
        raise RequestError(
            f"`tls_roots`: {file} cannot be read ({error.strerror}).",
            "Name a PEM file.",
            parameter="tls_roots",
            given=str(file),
        ) from None


def client_token(file: Path | None) -> str:
    """Return the token from the file, or from the environment if `file` is None. Raises RequestError if none is set."""
    if file is not None:
        return private_text(file, "token_file")
    token = os.environ.get(TOKEN, "").strip()
    if not token:
        raise RequestError(
            f"No token was given. Name the token's file by `token_file`, or set the environment variable {TOKEN}.",
            "The first 'serve catalog FOLDER' writes the token to the file FOLDER/token.",
            parameter="token_file",
        )
    return token


def private_text(file: Path, parameter: str) -> str:
    """Return the text of a private file. Raises RequestError if other users may read it, or if reading fails."""
    try:
        if os.stat(file).st_mode & 0o077:
            raise RequestError(
                f"`{parameter}`: other users can read {file}, which must be private.",
                f"Run: chmod 600 {file}",
                parameter=parameter,
                given=str(file),
            )
        return file.read_text().strip()
    except OSError as error:
        raise RequestError(
            f"`{parameter}`: {file} cannot be read ({error.strerror}).",
            "Name a file that you may read.",
            parameter=parameter,
            given=str(file),
        ) from None
    except UnicodeDecodeError:
        raise RequestError(parameter=parameter, given=str(file), allowed="the name of a text file") from None


def made_once(file: Path, text: str) -> bool:
    """Write a file that only this user may read, unless the file exists. Return whether the file was written."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists():
        return False
    with tempfile.NamedTemporaryFile("w", dir=file.parent, prefix=f".{file.name}-") as made:
        made.write(text + "\n")
        made.flush()
        os.fsync(made.fileno())
        try:
            # The file gets its name only when it is complete, so a killed process leaves no empty file of this name.
            os.link(made.name, file)
        except FileExistsError:
            return False
    return True
