"""Which names are allowed."""

import pytest

from libraries.near_storage.errors import RequestError
from libraries.near_storage.storing.names import check_digest, check_node, check_table, check_uri


def test_names_that_are_taken():
    assert check_digest("0123456789abcdef" * 4) == "0123456789abcdef" * 4
    for name in ("a", "lineitem", "Sales_2024-01.eu", "1", "_x", "n" * 128):
        assert check_table(name) == check_node(name) == name
    for uri in ("grpc://127.0.0.1:8815", "grpc+tls://node.example:1", "grpc+tcp://[::1]:9"):
        assert check_uri(uri) == uri


@pytest.mark.parametrize(
    "name",
    ["", "..", ".hidden", "-x", "a/b", "../a", "a\\b", "a b", "a\0", "a\n", "ä", "n" * 129, "'; DROP TABLE nodes; --"],
)
def test_names_of_tables_and_nodes_that_are_refused(name):
    for check in (check_table, check_node):
        with pytest.raises(RequestError, match="not allowed"):
            check(name)


@pytest.mark.parametrize(
    "digest",
    ["", "a" * 63, "a" * 65, "A" * 64, "g" * 64, "a" * 64 + "\n", "../" + "a" * 61, "٣" * 64, b"a" * 64, None, 1],
)
def test_digests_that_are_refused(digest):
    with pytest.raises(RequestError, match="64 digits"):
        check_digest(digest)


@pytest.mark.parametrize(
    "uri",
    [
        *("", "http://a:1", "grpc://", "grpc://a b", "grpc://a", "grpc://" + "a" * 501, "file:///etc/passwd"),
        *("grpc+tls://<host>:8816", "grpc://a:1/<x>", "grpc://a:1/", "grpc://me@a:1", "grpc://a:1?x", "grpc://ü:1"),
    ],
)
def test_addresses_that_are_refused(uri):
    with pytest.raises(RequestError, match="grpc://HOST:PORT"):
        check_uri(uri)


def test_a_long_name_is_not_repeated_in_full():
    with pytest.raises(RequestError) as caught:
        check_table("x" * 1_000_000)
    assert len(str(caught.value)) < 300
