"""Rows of every type survive the way through Flight unchanged, and changed ones are detected."""

import datetime
import decimal
import random

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from libraries.near_storage.errors import DamagedError
from libraries.near_storage.reading import working_types
from libraries.near_storage.serving import batches
from libraries.near_storage.serving.node_streams import empty_batch

ROWS = 300


def column(type_: pa.DataType, value: object) -> pa.Array:
    rng = random.Random(3)
    return pa.array([value(row) if rng.random() > 0.1 else None for row in range(ROWS)], type_)  # type: ignore[operator]


COLUMNS = {
    "int8": column(pa.int8(), lambda row: row % 100),
    "int64": pa.array(range(ROWS)),
    "bool": column(pa.bool_(), lambda row: row % 3 == 0),
    "float16": column(pa.float16(), lambda row: row / 2),
    "string": column(pa.string(), lambda row: "ä" * (row % 9)),
    "empty": pa.array([""] * ROWS),
    "large": column(pa.large_string(), lambda row: str(row)),
    "view": column(pa.string_view(), lambda row: "x" * (row % 30)),
    "fixed": column(pa.binary(4), lambda row: b"abcd"),
    "decimal": column(pa.decimal128(20, 2), lambda row: decimal.Decimal(row)),
    "duration": column(pa.duration("ms"), lambda row: datetime.timedelta(seconds=row)),
    "null": pa.nulls(ROWS),
    "all null": pa.nulls(ROWS, pa.string()),
    "list": column(pa.list_(pa.int32()), lambda row: [1, None, row][: row % 4]),
    "struct": column(pa.struct([("a", pa.int8()), ("b", pa.string())]), lambda row: {"a": 1, "b": None}),
    "map": column(pa.map_(pa.string(), pa.int64()), lambda row: [(str(row), row)]),
    "fixed list": column(pa.list_(pa.int8(), 2), lambda row: [1, 2]),
    "dictionary": column(pa.string(), lambda row: "abc"[row % 3]).dictionary_encode(),
    "list of dictionary": pa.ListArray.from_arrays(
        pa.array(range(ROWS + 1), pa.int32()), pa.array(["a", "b", "a"] * (ROWS // 3)).dictionary_encode()
    ),
}


class Echo(flight.FlightServerBase):
    def __init__(self) -> None:
        self.sent: list[tuple[pa.RecordBatch, bytes]] = []
        super().__init__("grpc://127.0.0.1:0")

    def do_get(self, context, ticket):
        return flight.GeneratorStream(self.sent[0][0].schema, iter(self.sent))

    def travel(self, batch: pa.RecordBatch, digest: int) -> tuple[pa.RecordBatch, int]:
        self.sent = [(batch, str(digest).encode())]
        with flight.connect(self.location) as client:
            (chunk,) = list(client.do_get(flight.Ticket(b"")))
        return chunk.data, int(chunk.app_metadata.to_pybytes())

    @property
    def location(self) -> str:
        return f"grpc://127.0.0.1:{self.port}"


@pytest.fixture(scope="module")
def echo():
    with Echo() as server:
        yield server


@pytest.mark.parametrize("name", COLUMNS)
def test_rows_come_back_as_they_were(echo, name):
    whole = pa.RecordBatch.from_arrays([COLUMNS[name]], names=[name])
    plain = batches.plain_schema(whole.schema)
    for start, rows in ((0, ROWS), (0, 0), (3, 10), (8, 64), (13, 200), (ROWS - 1, 1)):
        batch = whole.slice(start, rows)
        sent = batches.sealed(batches.to_plain(batch, working_types.working_schema(plain)), plain)
        assert sent.schema.equals(plain)
        came, digest = echo.travel(sent, batches.digest_of(sent))
        batches.check(came, digest)
        back = batches.from_plain(came, whole.schema)
        assert back.schema.equals(whole.schema)
        assert back.to_pylist() == batch.to_pylist()


def test_views_are_sent_with_their_own_bytes_alone():
    """Otherwise each would carry the memory that it was cut from."""
    texts = pa.array([f"{number:030}" for number in range(10_000)], pa.string_view())
    lists = pa.array([[number] * 9 for number in range(10_000)], pa.list_view(pa.int64()))
    whole = pa.record_batch({"text": texts, "list": lists})
    sent = batches.sealed(working_types.working(whole).slice(5_000, 10), whole.schema)
    assert sent.equals(whole.slice(5_000, 10))
    assert sent.serialize().size < 4_000 < whole.slice(5_000, 10).serialize().size


def test_rows_without_columns(echo):
    batch = pa.RecordBatch.from_arrays([COLUMNS["int8"]], names=["x"]).select([])
    came, digest = echo.travel(batches.settled(batch), batches.digest_of(batch))
    batches.check(came, digest)
    assert came.num_rows == ROWS


@pytest.mark.parametrize("name", [name for name in COLUMNS if name not in ("null", "empty", "list of dictionary")])
def test_every_changed_bit_is_found(name):
    batch = pa.RecordBatch.from_arrays([COLUMNS[name]], names=[name])
    batch = batches.settled(batches.to_plain(batch, batches.plain_schema(batch.schema)).slice(1, 20))
    digest = batches.digest_of(batch)
    message = batch.serialize().to_pybytes()
    (sent,) = pa.ipc.read_record_batch(pa.py_buffer(message), batch.schema).columns
    used = sum(buffer.size for buffer in sent.buffers() if buffer is not None)
    found = 0
    body = 8 + int.from_bytes(message[4:8], "little")
    for index in range(body, len(message)):
        changed = bytearray(message)
        changed[index] ^= 16
        try:
            broken = pa.ipc.read_record_batch(pa.py_buffer(bytes(changed)), batch.schema)
        except (pa.ArrowException, OSError):
            continue
        try:
            batches.check(broken, digest)
        except DamagedError:
            found += 1
        else:
            # Padding between buffers belongs to no value.
            assert broken.equals(batch)
    assert found >= used


def test_fewer_rows_are_found():
    batch = batches.settled(pa.RecordBatch.from_arrays([COLUMNS["int64"]], names=["x"]))
    with pytest.raises(DamagedError):
        batches.check(batch.slice(0, ROWS - 1), batches.digest_of(batch))


@pytest.mark.parametrize("name", COLUMNS)
def test_a_batch_without_rows_has_every_type(echo, name):
    """Its digest is that of what arrives, where offsets and values may be other buffers than before."""
    schema = batches.plain_schema(pa.schema([pa.field(name, COLUMNS[name].type)]))
    empty = empty_batch(schema)
    assert empty.schema.equals(schema)
    came, digest = echo.travel(empty, batches.digest_of(empty, (4, 3, 2, 1)))
    batches.check(came, digest, (4, 3, 2, 1))


@pytest.mark.parametrize("place", [(), (0, 1, 2), (0, 1, 2, 4), (1, 1, 2, 3), (0, 1, 2, 2**80)])
def test_rows_in_another_place_are_found(place):
    batch = batches.settled(pa.RecordBatch.from_arrays([COLUMNS["int64"]], names=["x"]))
    digest = batches.digest_of(batch, (0, 1, 2, 3))
    batches.check(batch, digest, (0, 1, 2, 3))
    with pytest.raises(DamagedError):
        batches.check(batch, digest, place)


@pytest.mark.parametrize("name", COLUMNS)
def test_masks_that_mask_nothing_are_left_out(name):
    some = COLUMNS[name]
    for column in (some, some if "view" in str(some.type) else some.drop_null()):
        batch = pa.RecordBatch.from_arrays([column], names=["x"]).slice(7, 100)
        found = batches.without_empty_masks(batch)
        found.validate(full=True)
        assert found.to_pylist() == batch.to_pylist()


def test_columns_of_plain_values_are_not_copied_and_others_are():
    numbers = pa.array(range(100))
    masked = pa.Array.from_buffers(pa.int64(), 100, [pa.py_buffer(b"\xff" * 13), numbers.buffers()[1]], 0)
    batch = pa.RecordBatch.from_arrays([masked, COLUMNS["string"][:100], COLUMNS["int8"][:100]], names=["a", "b", "c"])
    lean = batches.without_empty_masks(batch)
    assert lean.column(0).buffers()[0] is None
    sent = batches.settled(lean.slice(10, 50))
    assert sent.column(0).buffers()[1].address == numbers.buffers()[1].address
    for number in (1, 2):
        assert sent.column(number).buffers()[1].address != lean.column(number).buffers()[1].address
    assert sent.to_pylist() == batch.slice(10, 50).to_pylist()
