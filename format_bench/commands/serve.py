"""`format-bench serve catalog|node`: run a service of near storage until it is stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from format_bench.commands.near_storage_access import (
    PORT,
    SECRET_FILE,
    TOKEN_FILE,
    made_once,
    near_storage_errors,
    private_text,
    trusted_roots,
)
from format_bench.errors import RequestError
from format_bench.options import grouped

_PATH = click.Path(path_type=Path)
LISTENING = grouped(
    click.option(
        "--host", default="127.0.0.1", show_default=True, help="Address to listen on; other than loopback needs TLS."
    ),
    click.option("--tls-certificate", metavar="FILE", type=_PATH, help="Certificate of this service, PEM."),
    click.option("--tls-key", metavar="FILE", type=_PATH, help="Private key of the certificate, PEM."),
    click.option("--tls-roots", metavar="FILE", type=_PATH, help="Root certificates to trust, PEM."),
)


@click.group()
def serve() -> None:
    """Start services that filter Parquet files near the storage.

    Start a catalog, then its nodes; clients use `store`. See libraries/near_storage/docs/near-storage.md.
    """


@serve.command()
@click.argument("folder", type=_PATH)
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="Port to listen on; 0 for any free one.",
)
@click.option(
    "--replicas",
    metavar="N",
    type=click.IntRange(1, 16),
    default=2,
    show_default=True,
    help="Number of nodes that hold each partition.",
)
@LISTENING
def catalog(folder: Path, port: int, replicas: int, **listening: Any) -> None:
    """Serve the catalog in FOLDER, which is created if missing.

    The first start writes two files there that only you may read: 'secret' for the nodes and 'token' for the clients.
    """
    with near_storage_errors():
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
@click.option("--catalog", required=True, metavar="URI", help="Address of the catalog, e.g. grpc://127.0.0.1:8815.")
@click.option(
    "--secret-file", required=True, metavar="FILE", type=_PATH, help="The file 'secret' from the catalog's folder."
)
@click.option("--name", metavar="NAME", help="Permanent name of the node. [default: the folder's name]")
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port to listen on; 0 for any free one.",
)
@click.option("--advertise", metavar="URI", help="Address by which others reach this node, if it is a different one.")
@LISTENING
def node(
    folder: Path, catalog: str, secret_file: Path, name: str | None, port: int, advertise: str | None, **listening: Any
) -> None:
    """Serve FOLDER, which is created if missing, as a storage node."""
    with near_storage_errors():
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
        raise RequestError(parameter="folder", given=str(folder), allowed="a folder or a new path")


def _tls(listening: dict[str, Any]) -> tuple[Any, bytes | None]:
    """Return the service's certificate with its key, and the root certificates to trust. Raises RequestError if only
    one of certificate and key was named, or if the root certificates cannot be read."""
    from libraries.near_storage.serving import security

    certificate, key, roots = (listening[name] for name in ("tls_certificate", "tls_key", "tls_roots"))
    if (certificate is None) != (key is None):
        missing = "tls_key" if key is None else "tls_certificate"
        raise RequestError(
            f"`{missing}` is missing: `tls_certificate` and `tls_key` are needed together.",
            "Name both or neither.",
            parameter=missing,
        )
    return None if certificate is None else security.read_tls(certificate, key), trusted_roots(roots)
