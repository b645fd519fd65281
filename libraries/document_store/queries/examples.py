"""The queries of the paper's table 2, and JSONBench's five, as plans over the fields of the generated sets of
documents.

Plans are data: whoever measures takes them from here by name. This module must not know how documents are made or
stored.
"""

from __future__ import annotations

from dataclasses import dataclass

from libraries.document_queries.plan import Plan, field
from libraries.document_queries.steps import (
    Aggregate,
    And,
    AnyItem,
    Call,
    Compare,
    Compute,
    Condition,
    Constant,
    Count,
    Filter,
    GroupBy,
    In,
    Named,
    Order,
    Scalar,
    TopK,
    Unnest,
)

A_DAY = "2023-01-01"
POPULAR_HASHTAG = "jobs"
HOME = "USA"
MICROSECONDS_OF_AN_HOUR = 3_600_000_000
TEN = 10
"""The paper's queries list so many."""
THREE = 3
"""JSONBench's list so many."""


@dataclass(frozen=True)
class Example:
    """A query with its short name, the set of documents that it is for, and what it asks."""

    name: str
    dataset: str
    title: str
    plan: Plan


def _equal(path: str, value: Scalar, of: str = "") -> Compare:
    return Compare(field(path, of), "=", Constant(value))


def _highest(name: str, rows: int) -> TopK:
    return TopK((Order(name, descending=True),), rows)


_COUNT = Aggregate("count", "count")
_READINGS = Unnest(("readings",), "reading")
_HIGHEST_READING = Aggregate("highest", "max", field("value", "reading"))
_BY_SENSOR = GroupBy((Named("sensor_id", field("sensor_id")),), (_HIGHEST_READING,))

_METADATA = ("static_data", "fullrecord_metadata")
_ADDRESSES = (*_METADATA, "addresses", "address_name")
_SUBJECTS = (*_METADATA, "category_info", "subjects", "subject")
_COUNTRY = "address_spec.country"


def _countries(name: str) -> Unnest:
    return Unnest(_ADDRESSES, name, distinct=field(_COUNTRY, name))


_PAPER = (
    Example("cell-q1", "cell", "The number of records", Plan((Count(),))),
    Example(
        "cell-q2",
        "cell",
        "The top 10 callers with the longest call durations",
        Plan(
            (
                GroupBy((Named("caller", field("caller")),), (Aggregate("longest", "max", field("duration")),)),
                _highest("longest", TEN),
            )
        ),
    ),
    Example(
        "cell-q3",
        "cell",
        "The number of calls with durations > 600 seconds",
        Plan((Filter(Compare(field("duration"), ">", Constant(600))), Count())),
    ),
    Example("sensors-q1", "sensors", "The number of records", Plan((Count(),))),
    Example(
        "sensors-q2",
        "sensors",
        "The maximum reading ever recorded",
        Plan((_READINGS, GroupBy((), (_HIGHEST_READING,)))),
    ),
    Example(
        "sensors-q3",
        "sensors",
        "The IDs of the top 10 sensors with maximum readings",
        Plan((_READINGS, _BY_SENSOR, _highest("highest", TEN))),
    ),
    Example(
        "sensors-q4",
        "sensors",
        "As Q3, for readings of a given day",
        Plan((Filter(_equal("day", A_DAY)), _READINGS, _BY_SENSOR, _highest("highest", TEN))),
    ),
    Example("tweets-q1", "tweets", "The number of records", Plan((Count(),))),
    Example(
        "tweets-q2",
        "tweets",
        "The top 10 users who posted the longest tweets",
        Plan(
            (
                GroupBy(
                    (Named("user", field("user.name")),),
                    (Aggregate("longest", "max", Call("length", (field("text"),))),),
                ),
                _highest("longest", TEN),
            )
        ),
    ),
    Example(
        "tweets-q3",
        "tweets",
        "The top 10 users with the highest number of tweets that contain a popular hashtag",
        Plan(
            (
                Filter(AnyItem(("entities", "hashtags"), "tag", _equal("text", POPULAR_HASHTAG, "tag"))),
                GroupBy((Named("user", field("user.name")),), (_COUNT,)),
                _highest("count", TEN),
            )
        ),
    ),
    Example("wos-q1", "wos", "The number of records", Plan((Count(),))),
    Example(
        "wos-q2",
        "wos",
        "The top 10 scientific fields with the highest number of publications",
        Plan(
            (
                Unnest(_SUBJECTS, "subject"),
                Filter(_equal("ascatype", "extended", "subject")),
                GroupBy((Named("field", field("content", "subject")),), (_COUNT,)),
                _highest("count", TEN),
            )
        ),
    ),
    Example(
        "wos-q3",
        "wos",
        "The top ten countries that co-published the most with US-based institutes",
        Plan(
            (
                Filter(AnyItem(_ADDRESSES, "address", _equal(_COUNTRY, HOME, "address"))),
                _countries("other"),
                Filter(Compare(field(_COUNTRY, "other"), "!=", Constant(HOME))),
                GroupBy((Named("country", field(_COUNTRY, "other")),), (_COUNT,)),
                _highest("count", TEN),
            )
        ),
    ),
    Example(
        "wos-q4",
        "wos",
        "The top ten pairs of countries with the largest number of co-published articles",
        Plan(
            (
                _countries("first"),
                _countries("second"),
                Filter(Compare(field(_COUNTRY, "first"), "<", field(_COUNTRY, "second"))),
                GroupBy(
                    (Named("first", field(_COUNTRY, "first")), Named("second", field(_COUNTRY, "second"))), (_COUNT,)
                ),
                _highest("count", TEN),
            )
        ),
    ),
)

_EVENT = Named("event", field("commit.collection"))
_DID = Named("did", field("did"))
_CREATED: tuple[Condition, ...] = (_equal("kind", "commit"), _equal("commit.operation", "create"))
_POSTED = And((*_CREATED, _equal("commit.collection", "app.bsky.feed.post")))
_FIRST = Aggregate("first_time_us", "min", field("time_us"))
_FEED = ("app.bsky.feed.post", "app.bsky.feed.repost", "app.bsky.feed.like")
_HOUR_OF_DAY = Call(
    "modulo", (Call("floor_divide", (field("time_us"), Constant(MICROSECONDS_OF_AN_HOUR))), Constant(24))
)

_JSONBENCH = (
    Example(
        "events-q1",
        "bluesky-events",
        "Kinds of events and how often they occur",
        Plan((GroupBy((_EVENT,), (_COUNT,)), TopK((Order("count", descending=True),)))),
    ),
    Example(
        "events-q2",
        "bluesky-events",
        "Kinds of events, with the number of different users",
        Plan(
            (
                Filter(And(_CREATED)),
                GroupBy((_EVENT,), (_COUNT, Aggregate("users", "count_distinct", field("did")))),
                TopK((Order("count", descending=True),)),
            )
        ),
    ),
    Example(
        "events-q3",
        "bluesky-events",
        "When posts, reposts and likes are made, by hour of the day",
        Plan(
            (
                Filter(And((*_CREATED, In(field("commit.collection"), _FEED)))),
                GroupBy((_EVENT, Named("hour_of_day", _HOUR_OF_DAY)), (_COUNT,)),
                TopK((Order("hour_of_day"), Order("event"))),
            )
        ),
    ),
    Example(
        "events-q4",
        "bluesky-events",
        "The first three users who posted",
        Plan((Filter(_POSTED), GroupBy((_DID,), (_FIRST,)), TopK((Order("first_time_us"),), THREE))),
    ),
    Example(
        "events-q5",
        "bluesky-events",
        "The three users with the longest time between posts",
        Plan(
            (
                Filter(_POSTED),
                GroupBy((_DID,), (_FIRST, Aggregate("last_time_us", "max", field("time_us")))),
                Compute((Named("span_us", Call("minus", (field("last_time_us"), field("first_time_us")))),)),
                _highest("span_us", THREE),
            )
        ),
    ),
)

EXAMPLES: tuple[Example, ...] = _PAPER + _JSONBENCH
