"""Tokens, secrets, and what may be served without encryption."""

import os

import pyarrow.flight as flight
import pytest

from libraries.near_storage.errors import RequestError
from libraries.near_storage.serving import security
from libraries.near_storage.serving.rpc import check_location
from libraries.near_storage.serving.security import BearerFactory, Tls


def role(header: object, roles: dict[str, str]) -> str:
    headers = {} if header is None else {"authorization": header}
    return BearerFactory(roles).start_call(flight.CallInfo(flight.FlightMethod.DO_GET), headers).role


def test_a_token_is_known_by_its_hash():
    token, other = security.new_token(), security.new_token()
    roles = {security.hash_token(token): "client", security.hash_token(other): "cluster"}
    assert role([f"Bearer {token}"], roles) == "client"
    assert role([f"bearer {other}"], roles) == "cluster"
    assert role(None, roles) == "nobody"


@pytest.mark.parametrize(
    "header",
    [["Bearer x"], ["Bearer "], [""], ["Basic {token}"], ["{token}"], ["Bearer {token}x"], ["Bearer {token}"] * 2],
)
def test_a_wrong_token_is_refused(header):
    token = security.new_token()
    shown = [each.replace("{token}", token) for each in header]
    with pytest.raises(flight.FlightUnauthenticatedError):
        role(shown, {security.hash_token(token): "client"})


def test_a_short_token_or_secret_is_refused():
    with pytest.raises(RequestError, match="at least 32"):
        security.hash_token("short")
    with pytest.raises(RequestError, match="at least 32"):
        security.check_secret(b"short")


def test_the_secret_does_not_travel():
    secret = security.new_secret()
    token = security.cluster_token(secret)
    assert token == security.cluster_token(secret) != security.cluster_token(security.new_secret())
    assert secret.decode() not in token


def test_a_secret_that_others_may_read_is_refused(tmp_path):
    file = tmp_path / "secret"
    file.write_bytes(security.new_secret() + b"\n")
    os.chmod(file, 0o644)
    with pytest.raises(RequestError, match="chmod 600"):
        security.read_secret(file)
    os.chmod(file, 0o600)
    assert security.read_secret(file) == file.read_bytes().strip()
    with pytest.raises(RequestError, match="cannot read"):
        security.read_secret(tmp_path / "none")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.9.1"])
def test_loopback_is_served_in_the_clear(host):
    security.check_address(host, None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "192.0.2.7"])
def test_nothing_else_is_served_in_the_clear(host):
    with pytest.raises(RequestError, match="without TLS"):
        security.check_address(host, None)
    security.check_address(host, Tls(b"", b""))


@pytest.mark.parametrize("location", ["grpc://127.0.0.1:80", "grpc://localhost:80", "grpc+tls://192.0.2.7:80"])
def test_addresses_that_are_called(location):
    check_location(location)


NO_ADDRESSES = """
grpc://192.0.2.7:80 grpc+tcp://0.0.0.0:80 http://127.0.0.1:80 grpc+unix:///a/b x grpc://x grpc://x:9x grpc://[::1:80
grpc://x:99999 grpc+tls://<host>:8816 grpc://127.0.0.1:1/<x> grpc://127.0.0.1:1/a|b grpc://127.0.0.1:1/ü grpc://::1:8
"""


@pytest.mark.parametrize("location", [*NO_ADDRESSES.split(), ""])
def test_addresses_that_are_not_called(location):
    with pytest.raises(RequestError):
        check_location(location)
