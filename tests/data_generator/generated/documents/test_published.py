"""The generated documents have the columns, size and kinds of values of the published table, and questions have
answers.

The published figures are facts stored here: Alkowaileet and Carey, VLDB 2022, table 1.
"""

import functools
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest

from data_generator.catalogue import resolve
from data_generator.documents import is_documents, json_lines, key_of, lines_of
from data_generator.generated.documents.random_values import BLOCK

PUBLISHED = {
    "cell": (141, 7, None),
    "sensors": (3_800, 16, int),
    "tweets": (5_300, 933, str),
    "wos": (6_200, 296, str),
    "tweets-2016": (2_700, 275, str),
}
"""Name -> bytes of a document, columns, the kind of most columns; None if no kind has most."""
TOLERANCE = 0.15

Steps = tuple[str, ...]


@functools.cache
def made(name: str, count: int, **parameters: str) -> tuple[bytes, list[dict[str, Any]]]:
    dataset = resolve(name, parameters, rows=count)
    assert is_documents(dataset.schema)
    text = b"".join(json_lines(batch) for batch in dataset.batches())
    documents = msgspec.json.Decoder(dict[str, Any]).decode_lines(text)
    assert len(documents) == count
    keys = [document[key_of(dataset.schema)] for document in documents]
    assert len(set(keys)) == count
    assert len({type(key) for key in keys}) == 1
    return text, documents


def values(value: Any, steps: Steps = ()) -> Iterator[tuple[Steps, type]]:
    """Yield each value that is not null, with its place; an empty object or array counts as a value."""
    inside = value.items() if isinstance(value, dict) else (("[*]", item) for item in value)
    for step, below in inside:
        if isinstance(below, dict | list) and below:
            yield from values(below, (*steps, step))
        elif below is not None:
            yield (*steps, step), type(below)


def columns(documents: list[dict[str, Any]]) -> Counter[tuple[Steps, type]]:
    """Return the columns that extended Dremel infers, with their values: one for each kind at a place (section 3.2)."""
    found = Counter(each for document in documents for each in values(document))
    holds = {steps[:length] for steps, _ in found for length in range(len(steps))}
    return Counter({each: n for each, n in found.items() if each[1] not in (dict, list) or each[0] not in holds})


@pytest.mark.parametrize("name", PUBLISHED)
def test_columns_size_and_kind_are_the_published_ones(name: str) -> None:
    mean_bytes, count, kind = PUBLISHED[name]
    text, documents = made(name, 1_000)
    found = columns(documents)
    assert len(text) / len(documents) == pytest.approx(mean_bytes, rel=TOLERANCE)
    assert len(found) == pytest.approx(count, rel=TOLERANCE)
    kinds = Counter(kind for _, kind in found)
    if kind is None:
        assert set(kinds) == {int, str, float}
        assert max(kinds.values()) <= count / 2
    else:
        assert kinds.most_common(1)[0][0] is kind


@pytest.mark.parametrize("name", [*PUBLISHED, "bluesky-events"])
def test_the_first_documents_are_those_of_a_larger_set(name: str) -> None:
    few, more = (resolve(name, {}, rows=rows) for rows in (5, BLOCK + 7))
    first = [line for batch in few.batches() for line in lines_of(batch)]
    lines = [line for batch in more.batches() for line in lines_of(batch)]
    assert len(lines) == BLOCK + 7
    assert lines[:5] == first


def test_readings_walk_or_are_doubles_at_random() -> None:
    _, walked = made("sensors", 50)
    _, random = made("sensors", 50, readings="random")
    for document in walked:
        read = [reading["value"] for reading in document["readings"]]
        assert max(abs(after - before) for before, after in itertools.pairwise(read)) <= 3
        assert {type(value) for value in read} == {int}
    assert {type(reading["value"]) for document in random for reading in document["readings"]} == {float}
    sizes = [len(msgspec.json.encode(documents)) for documents in (walked, random)]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.05)


def test_authors_and_their_countries_are_objects_here_and_arrays_there() -> None:
    _, documents = made("wos", 1_000)
    names = [each["static_data"]["fullrecord_metadata"]["addresses"]["address_name"] for each in documents]
    assert Counter(map(type, names)).keys() == {dict, list}
    for name in names:
        addresses = name if isinstance(name, list) else [name]
        assert all(address["address_spec"]["country"] for address in addresses)


def test_times_of_tweets_to_be_updated_only_grow() -> None:
    _, documents = made("tweets-2016", 1_000)
    times = [document["timestamp_ms"] for document in documents]
    assert times == sorted(set(times))


def test_most_columns_of_tweets_have_few_values() -> None:
    _, documents = made("tweets", 1_000)
    found = columns(documents)
    assert sum(count < 0.2 * len(documents) for count in found.values()) > len(found) / 2


# --- JSONBench's five questions -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    text, documents = made("bluesky-events", 20_000)
    assert len(text) / len(documents) == pytest.approx(481, rel=TOLERANCE)
    return documents


def created(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["kind"] == "commit" and event["commit"]["operation"] == "create"]


def test_the_five_queries_have_answers_to_be_wrong_about(events: list[dict[str, Any]]) -> None:
    by_collection = Counter(event.get("commit", {}).get("collection") for event in events)
    assert len(by_collection) > 8
    assert None in by_collection
    people: Mapping[str, set[str]] = {name: set() for name in by_collection if name}
    for event in created(events):
        people[event["commit"]["collection"]].add(event["did"])
    # Some occur twice; otherwise counting people would be counting events.
    assert 100 < len(people["app.bsky.feed.like"]) < by_collection["app.bsky.feed.like"] * 0.95
    posts = [event for event in created(events) if event["commit"]["collection"] == "app.bsky.feed.post"]
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for post in posts:
        first.setdefault(post["did"], post["time_us"])
        last[post["did"]] = post["time_us"]
    assert len(first) > 1_000
    spans = sorted((last[did] - first[did] for did in first), reverse=True)
    assert spans[0] > spans[1] > spans[2] > 0
    assert {event["commit"]["operation"] for event in events if "commit" in event} == {"create", "update", "delete"}


def test_events_are_in_the_order_of_time_and_the_evening_is_busier_than_the_night() -> None:
    whole = resolve("bluesky-events", {}, rows=970_000)
    times = [event["time_us"] for event in made("bluesky-events", 3_000)[1]]
    assert times == sorted(times)
    from data_generator.generated.documents import bluesky

    hours = Counter(bluesky._time_us(number) // 3_600_000_000 % 24 for number in range(0, whole.rows, 100))
    assert len(hours) == 24
    assert hours[19] > 3 * hours[3]
