"""A stream of changes: only of earlier documents, about as many as requested, and the same every time."""

import msgspec
import pytest

from data_generator.document_updates import Call, calls

LINES = [b'{"id":%d,"text":"%d"}\n' % (number, number) for number in range(5_000)]


def keys(call: Call) -> list[int]:
    return [msgspec.json.decode(line)["id"] for line in call.upserts.splitlines()]


def test_without_updates_it_is_the_documents() -> None:
    made = list(calls(LINES, "id", 0.0, call_bytes=2_000))
    assert b"".join(call.upserts for call in made) == b"".join(LINES)
    assert len(made) > 10
    assert not any(call.deletes for call in made)


def test_half_as_many_updates_as_documents_half_of_them_deletes() -> None:
    made = list(calls(LINES, "id", 0.5, call_bytes=2_000))
    seen: set[int] = set()
    upserts = deletes = 0
    for call in made:
        put = keys(call)
        new = [key for key in put if key not in seen]
        assert set(call.deletes) <= seen
        assert len(set(put)) == len(put)
        assert not set(put) & set(call.deletes)
        upserts += len(put) - len(new)
        deletes += len(call.deletes)
        seen.update(new)
    assert seen == set(range(5_000))
    assert upserts + deletes == pytest.approx(2_500, rel=0.1)
    assert deletes == pytest.approx(upserts, rel=0.15)
    assert made == list(calls(LINES, "id", 0.5, call_bytes=2_000))


def test_an_upsert_changes_what_the_document_holds() -> None:
    made = list(calls(LINES, "id", 0.5, call_bytes=2_000))
    changed = msgspec.json.decode(made[-1].upserts.splitlines()[-1])
    assert changed["text"] != str(changed["id"])


def test_a_share_beyond_all_is_refused() -> None:
    with pytest.raises(ValueError, match="0 to 1"):
        next(calls(LINES, "id", 1.5))
