"""The log: torn ends are ignored, damage inside is refused, and hostile bytes raise an error."""

import random

import pytest

from libraries.document_store.errors import CorruptError
from libraries.document_store.tests.store.model import Disk
from libraries.document_store.tree.log import HEADER_BYTES, log_path, read_logs
from libraries.document_store.tree.logs import Logs
from libraries.document_store.tree.memtable import Batch

FRAME_BYTES = 32


class Written:
    """Logs on a simulated disk."""

    def __init__(self, synced=True):
        self.disk = Disk()
        self.folder = self.disk.root
        self._number = 0
        self.logs = Logs(self.disk, self.folder, [], self.next_number, synced=synced)

    def next_number(self):
        self._number += 1
        return self._number

    def content(self, number):
        return self.disk.file(log_path(self.folder, number)).content

    def payloads(self, first=1):
        return [payload for log in read_logs(self.disk, self.folder, first) for payload in log.payloads]


def of_three():
    written = Written()
    for payload in (b"one", b"two" * 100, b"three"):
        written.logs.append(payload)
    return written


@pytest.fixture
def three():
    return of_three()


def break_logs(count, seed):
    """Change two logs `count` times: each gives the first payloads or an error. Return how many gave fewer."""
    three, chance, broken = of_three(), random.Random(seed), 0
    three.logs.begin()
    three.logs.append(b"four")
    before = {number: bytes(three.content(number)) for number in (1, 2)}
    for _ in range(count):
        content = three.content(chance.choice([1, 2]))
        for _ in range(chance.randint(1, 4)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        if chance.random() < 0.3:
            del content[chance.randrange(len(content)) :]
        try:
            payloads = three.payloads()
        except CorruptError:
            payloads = []
        assert payloads == [b"one", b"two" * 100, b"three", b"four"][: len(payloads)]
        broken += len(payloads) < 4
        for number, kept in before.items():
            three.content(number)[:] = kept
    return broken


def test_frames_come_back_in_order(three):
    assert three.payloads() == [b"one", b"two" * 100, b"three"]


@pytest.mark.parametrize("cut_bytes", [1, 4, 5, 20, 36])
def test_a_torn_end_is_ignored(three, cut_bytes):
    del three.content(1)[-cut_bytes:]
    assert three.payloads() == [b"one", b"two" * 100]


def test_a_last_frame_that_changed_is_taken_for_torn(three):
    three.content(1)[-1] ^= 1
    assert three.payloads() == [b"one", b"two" * 100]


@pytest.mark.parametrize("at", [*range(HEADER_BYTES, HEADER_BYTES + FRAME_BYTES + 3), HEADER_BYTES + 200])
def test_any_byte_that_changed_before_the_last_frame_is_refused(three, at):
    three.content(1)[at] ^= 1
    with pytest.raises(CorruptError, match=r"frame [01], at byte"):
        three.payloads()


@pytest.mark.parametrize("at", range(0, HEADER_BYTES, 5))
def test_a_header_that_changed_is_refused(three, at):
    three.content(1)[at] ^= 1
    with pytest.raises(CorruptError, match=r"log 1"):
        three.payloads()


def test_a_user_who_stores_a_log_cannot_make_a_torn_end_look_like_damage(three):
    """The bytes of a frame inside a torn frame do not belong to this log."""
    foreign = bytes(three.content(1))
    written = Written()
    written.logs.append(b"first")
    written.logs.append(foreign)
    del written.content(1)[-1]
    assert written.payloads() == [b"first"]


def test_an_unsynced_log_ends_at_its_first_gap():
    written = Written(synced=False)
    for payload in (b"one", b"two", b"three"):
        written.logs.append(payload)
    written.content(1)[HEADER_BYTES + 2 * FRAME_BYTES + 4] ^= 1
    assert written.payloads() == [b"one"]


def test_after_a_failed_call_the_next_log_says_what_counts(three):
    three.disk.fail(1, 5)
    with pytest.raises(OSError, match="Input/output"):
        three.logs.append(b"never")
    three.disk.heal()
    assert b"never" in three.content(1)
    three.logs.append(b"four")
    assert three.payloads() == [b"one", b"two" * 100, b"three", b"four"]
    # The second log states that the first one is durable, so its last frame cannot be torn any more.
    three.content(1)[three.content(1).index(b"three")] ^= 1
    with pytest.raises(CorruptError, match="frame 2"):
        three.payloads()


def test_a_log_that_is_missing_is_told(three):
    three.logs.begin()
    three.logs.append(b"four")
    three.disk.unlink(log_path(three.folder, 1))
    with pytest.raises(CorruptError, match="log 1 is missing"):
        three.payloads()
    assert three.payloads(first=2) == [b"four"]


def test_mutated_logs_end_in_payloads_or_an_error():
    assert 500 < break_logs(1000, seed=1) <= 1000


def test_mutated_batches_end_in_a_batch_or_an_error():
    chance = random.Random(2)
    data = Batch(["a", "b"], [b"row", None], {"x": [b"1"]}, {"x": [b"2", b"3"]}).to_bytes()
    assert Batch.from_bytes(data).rows == [b"row", None]
    for _ in range(2000):
        changed = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        try:
            batch = Batch.from_bytes(bytes(changed[: chance.randint(1, len(changed))]))
        except CorruptError:
            continue
        assert len(batch.keys) == len(batch.rows)
