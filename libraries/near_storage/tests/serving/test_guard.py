"""What a caller sees of an error: our own text without paths, or a number."""

import errno
import logging

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from libraries.near_storage import errors
from libraries.near_storage.serving.guard import check_free, from_call, from_flight, guarded_stream, pathless, to_flight
from libraries.near_storage.tests.serving.cluster import has_ipv6

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
OURS = [kind for kind in KINDS if kind is not errors.SilentError]


@pytest.mark.parametrize("kind", OURS)
def test_errors_of_ours_keep_their_kind_and_text(kind):
    back = from_flight(to_flight(kind("no table 'x'")))
    assert (type(back), str(back)) == (kind, "no table 'x'")


def test_the_silence_of_a_third_one_is_not_taken_for_the_servers_own():
    silent = from_call("grpc://127.0.0.1:1", flight.FlightUnavailableError("no connection"))
    assert (type(silent), str(silent)) == (errors.SilentError, "grpc://127.0.0.1:1 does not answer (no connection)")
    told = to_flight(silent)
    for back in (from_flight(told), from_call("grpc://127.0.0.1:2", told)):
        assert (type(back), str(back)) == (errors.UnavailableError, str(silent))
    own = errors.UnavailableError("sends other columns")
    assert from_call("grpc://127.0.0.1:2", own) is own


def test_other_errors_become_a_number(caplog):
    with caplog.at_level(logging.ERROR):
        told = to_flight(ValueError("/srv/secret/file is broken"))
    assert "secret" not in str(told)
    number = str(told).split()[2]
    assert number in caplog.text
    assert "/srv/secret/file" in caplog.text
    assert type(from_flight(told)) is errors.NearStorageError


def test_out_of_memory_is_told_as_busy():
    assert isinstance(from_flight(to_flight(MemoryError())), errors.BusyError)
    assert isinstance(from_flight(to_flight(pa.ArrowMemoryError("x"))), errors.BusyError)
    assert type(from_flight(to_flight(OSError(errno.EIO, "x", "/a/b")))) is errors.NearStorageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no file /srv/data/a.parquet, look", "no file [path], look"),
        ("'/etc/passwd'", "'[path]'"),
        ("../../etc/passwd", "../../etc/passwd"),
        ("a table of 5/7 rows, and/or 1 GB/s", "a table of 5/7 rows, and/or 1 GB/s"),
        ("grpc://127.0.0.1:80 is not there", "grpc://127.0.0.1:80 is not there"),
        ("lost:/srv/data/x", "lost:[path]"),
        ("///srv/x", "[path]"),
        ("~/store is full", "[path] is full"),
        ("C:\\data\\x is full", "[path] is full"),
        ("x" * 5_000, "x" * 2_000 + " ..."),
    ],
)
def test_no_path_is_told(text, expected):
    assert pathless(text) == expected


def test_a_stream_is_guarded_and_closed():
    closed = []

    def broken():
        try:
            yield 1
            raise KeyError("/a/b")
        finally:
            closed.append(1)

    stream = guarded_stream(broken())
    assert next(stream) == 1
    with pytest.raises(flight.FlightServerError, match=r"error [0-9a-f]{8} "):
        next(stream)
    assert closed == [1]
    stream = guarded_stream(broken())
    next(stream)
    stream.close()
    assert closed == [1, 1]


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (flight.FlightUnavailableError("x"), errors.UnavailableError),
        (flight.FlightTimedOutError("x"), errors.UnavailableError),
        (flight.FlightCancelledError("x"), errors.UnavailableError),
        (flight.FlightUnauthenticatedError("x"), errors.UnauthenticatedError),
        (flight.FlightInternalError("x"), errors.UnavailableError),
        (flight.FlightServerError("x", b"not json"), errors.UnavailableError),
        (flight.FlightServerError("x", b'{"kind":"SystemExit","message":"m"}'), errors.UnavailableError),
        (pa.ArrowInvalid("x"), errors.UnavailableError),
        (OSError("x"), errors.UnavailableError),
        (errors.StaleError("x"), errors.StaleError),
    ],
)
def test_what_flight_raises_at_a_caller(raised, kind):
    assert type(from_flight(raised)) is kind


def test_a_bug_at_the_caller_stays_what_it_is():
    with pytest.raises(ZeroDivisionError):
        from_flight(ZeroDivisionError())


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "[::1]", "localhost"])
def test_an_address_that_is_free_is_found_free_however_it_is_spelled(host):
    if ":" in host and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    check_free(host, 0)


def test_an_address_that_is_none_of_this_machine_is_refused_with_the_option():
    with pytest.raises(errors.RequestError, match="--host"):
        check_free("192.0.2.1", 0)
