"""Generated events like those of Bluesky's event stream, on which the five queries of JSONBench run.

Field names and structure are as in Bluesky's stream: did, time_us, kind, and commit. A commit has an operation, a
collection, and a record whose fields depend on the collection. The field `subject` is an object in records of likes and
reposts, and a text in records of follows. Events are sorted by time, and there are more events in the evening than at
night. JSONBench's events have no key, so a field `id` is added. Its value is twice the number of the event. The text of
posts consists of random words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from data_generator.dataset import Dataset
from data_generator.generated.documents.random_values import KEY_STEP, Draws, chosen, code_of, dataset, iso_time

VERSION = 2

_BEGIN_US = 1_732_147_200_000_000
"""2024-11-21 00:00 UTC."""
_MEAN_STEP_US = 90_000
"""Mean time between two events. A million events take about a day, so that every hour of the day has events."""
_HOURS = 24
_BUSY = np.array([4, 3, 2, 2, 2, 3, 4, 5, 6, 7, 8, 8, 9, 9, 9, 9, 9, 10, 11, 12, 12, 11, 9, 6])
"""Relative number of events in each hour of the day."""
_USERS = 400_000
_LANGUAGES = ("en", "ja", "pt", "de", "es", "ko", "fr", "nl")

_KINDS = ((98.7, "commit"), (0.9, "identity"), (0.4, "account"))
_OPERATIONS = ((95.4, "create"), (4.3, "delete"), (0.3, "update"))
_COLLECTIONS = (
    (46.0, "app.bsky.feed.like"),
    (31.5, "app.bsky.graph.follow"),
    (11.5, "app.bsky.feed.post"),
    (7.5, "app.bsky.feed.repost"),
    (2.0, "app.bsky.graph.block"),
    (0.7, "app.bsky.graph.listitem"),
    (0.4, "app.bsky.actor.profile"),
    (0.2, "app.bsky.feed.threadgate"),
    (0.1, "app.bsky.graph.list"),
    (0.1, "app.bsky.feed.generator"),
)
"""(Percentage of the events, name of the collection)."""

_COMMIT = (
    '{"id":%d,"did":"did:plc:%s","time_us":%d,"kind":"commit","commit":{"rev":"3l%s","operation":"%s",'
    '"collection":"%s","rkey":"3l%s"%s}}'
)
_IDENTITY = (
    '{"id":%d,"did":"did:plc:%s","time_us":%d,"kind":"identity","identity":{"did":"did:plc:%s",'
    '"handle":"%s.bsky.social","seq":%d,"time":"%s"}}'
)
_ACCOUNT = (
    '{"id":%d,"did":"did:plc:%s","time_us":%d,"kind":"account","account":{"active":%s,"did":"did:plc:%s","seq":%d,'
    '"time":"%s"}}'
)


def build(name: str, rows: int, parameters: Mapping[str, str]) -> Dataset:
    """Return `rows` events from 2024-11-21 on, about eleven per second."""
    return dataset(name, rows, "id", VERSION, _events)


def _table(shares: tuple[tuple[float, str], ...]) -> tuple[str, ...]:
    """Return a tuple of a thousand names, in which each name occurs in proportion to its share.

    A random index then chooses a name with the probability of its share.
    """
    return tuple(name for percent, name in shares for _ in range(round(percent * 10)))


_KIND_TABLE, _OPERATION_TABLE, _COLLECTION_TABLE = map(_table, (_KINDS, _OPERATIONS, _COLLECTIONS))


def _events(draws: Draws, first: int) -> Iterator[str]:
    bits = draws.bits
    users = draws.unit_floats("user")
    people = (users * users * users * _USERS).astype(np.int64).tolist()
    within = draws.unit_floats("time").tolist()
    for place, person in enumerate(people):
        number = first + place
        key = KEY_STEP * number
        time_us = _time_us(number + within[place])
        did = code_of(person)
        kind = _KIND_TABLE[bits() * 1000 >> 32]
        if kind == "commit":
            operation = _OPERATION_TABLE[bits() * 1000 >> 32]
            collection = _COLLECTION_TABLE[bits() * 1000 >> 32]
            stamp = draws.code(10)
            content = "" if operation == "delete" else _content(draws, collection, time_us)
            yield _COMMIT % (key, did, time_us, stamp, operation, collection, stamp, content)
        elif kind == "identity":
            handle = f"{draws.words(1)}{person}"
            yield _IDENTITY % (key, did, time_us, did, handle, 20_000_000 + number, iso_time(time_us))
        else:
            active = "true" if bits() & 3 else "false"
            yield _ACCOUNT % (key, did, time_us, active, did, 20_000_000 + number, iso_time(time_us))


def _hours_us() -> tuple[tuple[float, float], ...]:
    """Return, for each hour of a day, (share of the day's events before the hour, share of the day's events in the
    hour)."""
    shares = _BUSY / _BUSY.sum()
    before = np.cumsum(shares) - shares
    return tuple(zip(before.tolist(), shares.tolist(), strict=True))


_DAY_US = _HOURS * 3_600_000_000
_DAY_EVENTS = _DAY_US // _MEAN_STEP_US
_SHARES = _hours_us()


def _time_us(number: float) -> int:
    """Return the time of event `number`, in microseconds since 1970. A fraction gives a time between two events."""
    day, event = divmod(number, _DAY_EVENTS)
    share = event / _DAY_EVENTS
    hour = next(hour for hour in range(_HOURS - 1, -1, -1) if _SHARES[hour][0] <= share)
    before, width = _SHARES[hour]
    return _BEGIN_US + int(day) * _DAY_US + int((hour + (share - before) / width) * 3_600_000_000)


def _content(draws: Draws, collection: str, time_us: int) -> str:
    """Return the record of a commit and the digest field after the record, as JSON text."""
    bits = draws.bits
    created = iso_time(time_us - 1_000 * (bits() >> 22))
    record = _record(draws, collection, created)
    return f',"record":{{"$type":"{collection}",{record}}},"cid":"bafyrei{draws.code(52)}"'


def _record(draws: Draws, collection: str, created: str) -> str:
    bits = draws.bits
    name = collection.rpartition(".")[2]
    if name in ("like", "repost"):
        return f'"createdAt":"{created}","subject":{_reference(draws)}'
    if name in ("follow", "block"):
        return f'"createdAt":"{created}","subject":"did:plc:{code_of(bits() % _USERS)}"'
    if name == "post":
        return _post(draws, created)
    if name == "listitem":
        member, found = code_of(bits() % _USERS), _address(draws, "graph.list")
        return f'"createdAt":"{created}","list":"{found}","subject":"did:plc:{member}"'
    if name == "threadgate":
        return f'"createdAt":"{created}","post":"{_address(draws, "feed.post")}","allow":[]'
    return f'"createdAt":"{created}","displayName":"{draws.words(2)}","description":"{draws.words(12)}"'


def _post(draws: Draws, created: str) -> str:
    drawn = draws.bits()
    language = chosen(draws.bits(), _LANGUAGES)
    languages = f'"{language}"' if drawn & 31 else f'"{language}","{chosen(draws.bits(), _LANGUAGES[1:])}"'
    parts = [f'"createdAt":"{created}","langs":[{languages}],"text":"{draws.words(4 + (drawn >> 8) % 34)}"']
    if drawn >> 31:
        parent, root = _reference(draws), _reference(draws)
        parts.append(f'"reply":{{"parent":{parent},"root":{root}}}')
    if drawn >> 24 & 7 == 0:
        parts.append(
            f'"embed":{{"$type":"app.bsky.embed.images","images":[{{"alt":"{draws.words(6)}","image":'
            f'{{"$type":"blob","ref":{{"$link":"bafkrei{draws.code(52)}"}},"mimeType":"image/jpeg",'
            f'"size":{20_000 + (drawn >> 12)}}}}}]}}'
        )
    return ",".join(parts)


def _reference(draws: Draws) -> str:
    return f'{{"cid":"bafyrei{draws.code(52)}","uri":"{_address(draws, "feed.post")}"}}'


def _address(draws: Draws, what: str) -> str:
    return f"at://did:plc:{code_of(draws.bits() % _USERS)}/app.bsky.{what}/3l{draws.code(10)}"
