"""Questions for document stores: the questions of table 2 in Alkowaileet and Carey, and the five questions of
JSONBench.

A question is one entry of QUESTIONS. It has a function that creates the steps of the question's query plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from libraries import document_queries as q

_A_DAY = "2023-01-01"
_POPULAR_HASHTAG = "jobs"
_HOME = "USA"
_MICROSECONDS_OF_AN_HOUR = 3_600_000_000
_TEN = 10
"""Number of rows in the answers to the questions of Alkowaileet and Carey."""
_THREE = 3
"""Number of rows in the answers to JSONBench's questions."""

CELL, SENSORS, TWEETS, WOS, EVENTS = "cell", "sensors", "tweets", "wos", "bluesky-events"


@dataclass(frozen=True)
class Question:
    """A question about one data set. Another data set may have a different question with the same name."""

    dataset: str
    name: str
    """The question's name in operations, such as q1 in `ask[query=q1]`."""
    title: str
    steps: Callable[[], tuple[Any, ...]]
    """Function that creates the steps of the question's query plan."""

    @property
    def plan(self) -> str:
        """The query plan as JSON text."""
        text: str = q.to_json(q.Plan(self.steps()))
        return text


def _equal(path: str, value: object, of: str = "") -> Any:
    return q.Compare(q.field(path, of), "=", q.Constant(value))


def _first(rows: int | None, name: str, descending: bool = True) -> Any:
    return q.TopK((q.Order(name, descending),), rows)


def _count() -> tuple[Any, ...]:
    return (q.Count(),)


# --- Alkowaileet and Carey, VLDB 2022, table 2 -----------------------------------------------------------------------

_METADATA = ("static_data", "fullrecord_metadata")
_ADDRESSES = (*_METADATA, "addresses", "address_name")
_SUBJECTS = (*_METADATA, "category_info", "subjects", "subject")
_COUNTRY = "address_spec.country"


def _by(name: str, field: Any, *figures: Any) -> Any:
    return q.GroupBy((q.Named(name, field),), figures or (q.Aggregate("count", "count"),))


def _longest(field: Any) -> Any:
    return q.Aggregate("longest", "max", field)


def _highest_reading() -> Any:
    return q.Aggregate("highest", "max", q.field("value", "reading"))


def _of_sensors() -> tuple[Any, ...]:
    by_sensor = _by("sensor_id", q.field("sensor_id"), _highest_reading())
    return (q.Unnest(("readings",), "reading"), by_sensor, _first(_TEN, "highest"))


def _countries(name: str) -> Any:
    return q.Unnest(_ADDRESSES, name, distinct=q.field(_COUNTRY, name))


def _pairs_of_countries() -> tuple[Any, ...]:
    first, second = q.field(_COUNTRY, "first"), q.field(_COUNTRY, "second")
    return (
        *(_countries("first"), _countries("second"), q.Filter(q.Compare(first, "<", second))),
        q.GroupBy((q.Named("first", first), q.Named("second", second)), (q.Aggregate("count", "count"),)),
        _first(_TEN, "count"),
    )


_PAPER = (
    Question(CELL, "q1", "The number of records", _count),
    Question(
        *(CELL, "q2", "The top 10 callers with the longest call durations"),
        lambda: (_by("caller", q.field("caller"), _longest(q.field("duration"))), _first(_TEN, "longest")),
    ),
    Question(
        *(CELL, "q3", "The number of calls with durations > 600 seconds"),
        lambda: (q.Filter(q.Compare(q.field("duration"), ">", q.Constant(600))), q.Count()),
    ),
    Question(SENSORS, "q1", "The number of records", _count),
    Question(
        *(SENSORS, "q2", "The maximum reading ever recorded"),
        lambda: (q.Unnest(("readings",), "reading"), q.GroupBy((), (_highest_reading(),))),
    ),
    Question(SENSORS, "q3", "The IDs of the top 10 sensors with maximum readings", _of_sensors),
    Question(
        *(SENSORS, "q4", "As Q3, for readings of a given day"),
        lambda: (q.Filter(_equal("day", _A_DAY)), *_of_sensors()),
    ),
    Question(TWEETS, "q1", "The number of records", _count),
    Question(
        *(TWEETS, "q2", "The top 10 users who posted the longest tweets"),
        lambda: (
            _by("user", q.field("user.name"), _longest(q.Call("length", (q.field("text"),)))),
            _first(_TEN, "longest"),
        ),
    ),
    Question(
        *(TWEETS, "q3", "The top 10 users with the highest number of tweets that contain a popular hashtag"),
        lambda: (
            q.Filter(q.AnyItem(("entities", "hashtags"), "tag", _equal("text", _POPULAR_HASHTAG, "tag"))),
            *(_by("user", q.field("user.name")), _first(_TEN, "count")),
        ),
    ),
    Question(WOS, "q1", "The number of records", _count),
    Question(
        *(WOS, "q2", "The top 10 scientific fields with the highest number of publications"),
        lambda: (
            *(q.Unnest(_SUBJECTS, "subject"), q.Filter(_equal("ascatype", "extended", "subject"))),
            *(_by("field", q.field("content", "subject")), _first(_TEN, "count")),
        ),
    ),
    Question(
        *(WOS, "q3", "The top ten countries that co-published the most with US-based institutes"),
        lambda: (
            q.Filter(q.AnyItem(_ADDRESSES, "address", _equal(_COUNTRY, _HOME, "address"))),
            *(_countries("other"), q.Filter(q.Compare(q.field(_COUNTRY, "other"), "!=", q.Constant(_HOME)))),
            *(_by("country", q.field(_COUNTRY, "other")), _first(_TEN, "count")),
        ),
    ),
    Question(
        *(WOS, "q4", "The top ten pairs of countries with the largest number of co-published articles"),
        _pairs_of_countries,
    ),
)

# --- JSONBench -------------------------------------------------------------------------------------------------------

_FEED = ("app.bsky.feed.post", "app.bsky.feed.repost", "app.bsky.feed.like")


def _created(*conditions: Any) -> Any:
    return q.Filter(q.And((_equal("kind", "commit"), _equal("commit.operation", "create"), *conditions)))


def _posted() -> Any:
    return _created(_equal("commit.collection", "app.bsky.feed.post"))


def _by_event(*figures: Any) -> Any:
    return _by("event", q.field("commit.collection"), q.Aggregate("count", "count"), *figures)


def _time(name: str, function: str) -> Any:
    return q.Aggregate(name, function, q.field("time_us"))


def _hours() -> tuple[Any, ...]:
    event, hours = q.field("commit.collection"), q.Constant(_MICROSECONDS_OF_AN_HOUR)
    hour_of_day = q.Call("modulo", (q.Call("floor_divide", (q.field("time_us"), hours)), q.Constant(24)))
    keys = (q.Named("event", event), q.Named("hour_of_day", hour_of_day))
    return (
        _created(q.In(event, _FEED)),
        q.GroupBy(keys, (q.Aggregate("count", "count"),)),
        q.TopK((q.Order("hour_of_day"), q.Order("event"))),
    )


_JSONBENCH = (
    Question(*(EVENTS, "q1", "Kinds of events and how often they occur"), lambda: (_by_event(), _first(None, "count"))),
    Question(
        *(EVENTS, "q2", "Kinds of events, with the number of different users"),
        lambda: (
            *(_created(), _by_event(q.Aggregate("users", "count_distinct", q.field("did")))),
            _first(None, "count"),
        ),
    ),
    Question(EVENTS, "q3", "When posts, reposts and likes are made, by hour of the day", _hours),
    Question(
        *(EVENTS, "q4", "The first three users who posted"),
        lambda: (
            *(_posted(), _by("did", q.field("did"), _time("first_time_us", "min"))),
            _first(_THREE, "first_time_us", descending=False),
        ),
    ),
    Question(
        *(EVENTS, "q5", "The three users with the longest time between posts"),
        lambda: (
            *(_posted(), _by("did", q.field("did"), _time("first_time_us", "min"), _time("last_time_us", "max"))),
            q.Compute((q.Named("span_us", q.Call("minus", (q.field("last_time_us"), q.field("first_time_us")))),)),
            _first(_THREE, "span_us"),
        ),
    ),
)

QUESTIONS = _PAPER + _JSONBENCH
NAMES = tuple(dict.fromkeys(question.name for question in QUESTIONS))
"""The names of all questions, without duplicates."""


def questions_of(dataset: str) -> Mapping[str, Question]:
    """Return the questions about a data set, by name. If QUESTIONS has no question about the data set, return one
    question, which asks for the number of documents."""
    own = {question.name: question for question in QUESTIONS if question.dataset == dataset}
    return own or {NAMES[0]: Question(dataset, NAMES[0], "The number of documents", _count)}
