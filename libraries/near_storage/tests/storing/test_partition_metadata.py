"""Descriptions match their files, survive encoding, and are refused if one of their bits changed."""

import random

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash

from libraries.near_storage.errors import DamagedError, FooterError, NearStorageError
from libraries.near_storage.storing.partition_metadata import (
    PartitionInfo,
    blake2b,
    decode_schema,
    describe_apart,
    same_fields,
)
from libraries.near_storage.tests.storing.files import describe_here, description, digest_of, parquet


def test_a_description_says_what_pyarrow_says(tmp_path):
    data = parquet(3)
    (tmp_path / "a").write_bytes(data)
    info = describe_apart(tmp_path / "a", digest_of(data))
    metadata = pq.read_metadata(tmp_path / "a")
    assert (info.digest, info.stored_bytes, info.rows) == (digest_of(data), len(data), metadata.num_rows)
    assert info.schema.equals(pq.read_schema(tmp_path / "a"))
    assert info.footer_bytes == metadata.serialized_size + 8
    assert info.footer_digest == digest_of(data[-info.footer_bytes :])
    assert info.chunk_digests.shape == (2, 2)
    for group in range(2):
        for column in range(2):
            chunk = metadata.row_group(group).column(column)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            stored = data[start : start + chunk.total_compressed_size]
            assert info.chunk_digests[group, column] == xxhash.xxh3_64_intdigest(stored)


def test_the_metadata_of_a_schema_does_not_travel(tmp_path):
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata({"pandas": "{}"}), tmp_path / "a")
    assert describe_here(tmp_path / "a", "0" * 64).schema.metadata is None


@pytest.mark.parametrize("data", [b"", b"PAR1", b"x" * 100, parquet(1)[:-1], parquet(1)[:-8] + b"\xff\xff\xff\x7fPAR1"])
def test_no_parquet_file(tmp_path, data):
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(FooterError):
        describe_here(tmp_path / "a", "0" * 64)


def test_encoding_keeps_all_of_it():
    info = description(parquet(3))
    again = PartitionInfo.decode(info.encode())
    assert again.same_content(info)
    assert again.encode() == info.encode()
    assert again.compact.save() == info.compact.save()
    assert again.nbytes == info.nbytes > 0
    assert again.leaves_digest == info.leaves_digest


def test_a_file_without_rows_and_one_without_row_groups(tmp_path):
    schema = pa.schema([("a", pa.int64())])
    pq.write_table(schema.empty_table(), tmp_path / "rows")
    with pq.ParquetWriter(tmp_path / "groups", schema):
        pass
    for name in ("rows", "groups"):
        info = describe_here(tmp_path / name, "0" * 64)
        assert info.rows == 0
        assert PartitionInfo.decode(info.encode()).same_content(info)


def test_every_flipped_bit_is_found():
    encoded = description(parquet(3)).encode()
    for at in range(len(encoded)):
        damaged = bytearray(encoded)
        damaged[at] ^= 1 << at % 8
        with pytest.raises(DamagedError):
            PartitionInfo.decode(bytes(damaged))


@pytest.mark.parametrize("length", [0, 1, 31, 32, 33, 200])
def test_a_torn_description_is_found(length):
    with pytest.raises(DamagedError):
        PartitionInfo.decode(description(parquet(3)).encode()[:length])


def test_what_was_never_a_description_is_damage_and_nothing_else():
    """The digest is right, the rest is not: 2,000 mutations, seed 7."""
    chance = random.Random(7)
    rest = description(parquet(3)).encode()[32:]
    for _ in range(2_000):
        mutated = bytearray(rest)
        for _ in range(chance.randint(1, 4)):
            mutated[chance.randrange(min(len(mutated), 400))] = chance.randrange(256)
        try:
            PartitionInfo.decode(blake2b(mutated).digest() + mutated)
        except NearStorageError:
            continue


def test_digests_of_another_shape_are_damage():
    info = description(parquet(3))
    turned = PartitionInfo(**{**vars(info), "chunk_digests": info.chunk_digests.reshape(4, 1)})
    with pytest.raises(DamagedError, match="contradictory"):
        PartitionInfo.decode(turned.encode())


def test_another_format_is_told():
    fields = msgspec.msgpack.decode(description(parquet(3)).encode()[32:])
    fields[0] = 9
    rest = msgspec.msgpack.encode(fields)
    with pytest.raises(DamagedError, match="format 9"):
        PartitionInfo.decode(blake2b(rest).digest() + rest)


def test_two_nodes_agree_on_content_alone():
    info, other = description(parquet(3)), description(parquet(4))
    assert not info.same_content(other)
    for field, value in (
        ("rows", 1),
        ("footer_digest", "0" * 64),
        ("chunk_digests", info.chunk_digests + np.uint64(1)),
        ("schema", pa.schema([("a", pa.int8())])),
    ):
        assert not info.same_content(PartitionInfo(**{**vars(info), field: value}))


def test_fields_are_compared_without_metadata():
    one = pa.schema([pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "1"})])
    assert same_fields(one, pa.schema([("a", pa.int64())], metadata={"x": "y"}))
    for other in ([("b", pa.int64())], [("a", pa.int32())], [pa.field("a", pa.int64(), nullable=False)], []):
        assert not same_fields(one, pa.schema(other))


def test_a_damaged_schema_is_told():
    with pytest.raises(DamagedError, match="schema"):
        decode_schema(b"no schema")
