"""`format-bench serve catalog|node`: the services of near storage, until they are told to end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from format_bench.commands.near_storage_access import (
    PORT,
    SECRET_FILE,
    TOKEN_FILE,
    made_once,
    near_storage_told,
    private_text,
)
from format_bench.errors import RequestError
from format_bench.options import grouped

_PATH = click.Path(path_type=Path)
LISTENING = grouped(
    click.option(
        "--host", default="127.0.0.1", show_default=True, help="Where to listen; others than loopback need TLS."
    ),
    click.option("--tls-certificate", metavar="FILE", type=_PATH, help="PEM: the certificate to show."),
    click.option("--tls-key", metavar="FILE", type=_PATH, help="PEM: its key."),
    click.option(
        "--tls-roots", metavar="FILE", type=_PATH, help="PEM: certificates by which other services are trusted."
    ),
)


@click.group()
def serve() -> None:
    """Serve Parquet near the storage: a catalog, and nodes (libraries/near_storage/docs/near-storage.md)."""


@serve.command()
@click.argument("folder", type=_PATH)
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: any that is free.")
@click.option("--replicas", type=click.IntRange(1, 16), default=2, show_default=True, help="Nodes that hold each part.")
@LISTENING
def catalog(folder: Path, port: int, replicas: int, **listening: Any) -> None:
    """Serve the catalog in FOLDER, which is made if it is not there.

    The first time it writes two files there that only you may read: 'secret', which its nodes have to show, and
    'token', which its clients have to.
    """
    with near_storage_told():
        from libraries.near_storage.serving import guard, security, server_process

        tls, roots = _tls(listening)
        security.check_address(listening["host"], tls)
        _check_folder(folder)
        guard.check_free(listening["host"], port)
        for name, text in ((SECRET_FILE, security.new_secret().decode()), (TOKEN_FILE, security.new_token())):
            if made_once(folder / name, text):
                click.echo(f"made {folder / name}", err=True)
        server_process.serve_catalog(
            folder,
            security.read_secret(folder / SECRET_FILE),
            [security.hash_token(private_text(folder / TOKEN_FILE, "token"))],
            listening["host"],
            port,
            replicas,
            tls,
            roots,
            ready=lambda uri: click.echo(f"catalog at {uri}"),
        )


@serve.command()
@click.argument("folder", type=_PATH)
@click.option("--catalog", required=True, metavar="URI", help="Address of the catalog: grpc://127.0.0.1:8815.")
@click.option("--secret-file", required=True, metavar="FILE", type=_PATH, help="The file 'secret' of the catalog.")
@click.option("--name", metavar="NAME", help="The node's name for ever (default: the folder's).")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0: any that is free.")
@click.option("--advertise", metavar="URI", help="The address that others reach it by, where that is another.")
@LISTENING
def node(
    folder: Path, catalog: str, secret_file: Path, name: str | None, port: int, advertise: str | None, **listening: Any
) -> None:
    """Serve what lies in FOLDER, which is made if it is not there, as a storage node of a catalog."""
    with near_storage_told():
        from libraries.near_storage.serving import guard, security, server_process

        tls, roots = _tls(listening)
        security.check_address(listening["host"], tls)
        _check_folder(folder)
        guard.check_free(listening["host"], port)
        named = name or folder.resolve().name
        server_process.serve_node(
            folder,
            security.read_secret(secret_file),
            named,
            catalog,
            listening["host"],
            port,
            advertise,
            tls,
            roots,
            ready=lambda uri: click.echo(f"node {named} at {uri}"),
        )


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise RequestError(parameter="folder", given=str(folder), allowed="a folder, which is created if it is missing")


def _tls(listening: dict[str, Any]) -> tuple[Any, bytes | None]:
    """What is shown, and what is trusted. Raises RequestError."""
    from libraries.near_storage.serving import security

    certificate, key, roots = (listening[name] for name in ("tls_certificate", "tls_key", "tls_roots"))
    if (certificate is None) != (key is None):
        raise RequestError(
            "`tls_certificate` and `tls_key` are needed together.",
            "Name both or neither.",
            parameter="tls_key" if key is None else "tls_certificate",
        )
    tls = None if certificate is None else security.read_tls(certificate, key)
    try:
        return tls, None if roots is None else roots.read_bytes()
    except OSError as error:
        raise RequestError(
            f"`tls_roots`: {roots} cannot be read ({error.strerror}).",
            "Name a PEM file.",
            parameter="tls_roots",
            given=str(roots),
        ) from None
