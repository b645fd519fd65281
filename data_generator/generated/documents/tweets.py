"""Tweets as documents: deep, sparse, mostly text (`tweet_1` and `tweet_2` in table 1 of Alkowaileet and Carey, VLDB
2022).

`tweets` are like those of 2020: they have longer texts, tweets nested in tweets, and more than 900 columns.
`tweets-2016` are half as large. They have an ascending time in milliseconds, so that updates of an index on the time
can be measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from data_generator.dataset import Dataset
from data_generator.generated.documents import tweet_parts as part
from data_generator.generated.documents.random_values import BLOCK, Draws, chosen, dataset

VERSION = 1

_SOURCES = tuple(
    f'<a href=\\"https://{where}\\" rel=\\"nofollow\\">Twitter {what}</a>'
    for where, what in (
        ("twitter.com/download/iphone", "for iPhone"),
        ("twitter.com/download/android", "for Android"),
        ("mobile.twitter.com", "Web App"),
        ("about.twitter.com/products/tweetdeck", "TweetDeck"),
    )
)


@dataclass(frozen=True)
class _Edition:
    """Parameters of the tweets of one year. Chances are out of 256."""

    is_2016: bool
    begin_ms: int
    first_id: int
    most_words: int
    repeats: int
    """Chance that a tweet repeats another tweet and therefore contains it."""
    quotes: int
    """Chance that a tweet quotes another tweet and therefore contains it."""
    extends: int
    """Chance that a tweet has a long text, which is stored in a separate part."""


_2020 = _Edition(False, 1_598_918_400_000, 1_300_000_000_000_000_000, 24, repeats=110, quotes=56, extends=72)
_2016 = _Edition(True, 1_459_468_800_000, 715_000_000_000_000_000, 16, repeats=36, quotes=0, extends=0)


def build(name: str, rows: int, parameters: Mapping[str, str]) -> Dataset:
    """Return `rows` tweets from September 2020 on."""
    return dataset(name, rows, "id", VERSION, partial(_tweets, _2020))


def build_2016(name: str, rows: int, parameters: Mapping[str, str]) -> Dataset:
    """Return `rows` tweets from April 2016 on."""
    return dataset(name, rows, "id", VERSION, partial(_tweets, _2016))


def _tweets(edition: _Edition, draws: Draws, first: int) -> Iterator[str]:
    for number in range(first, first + BLOCK):
        yield _tweet(edition, draws, number, "alone")


def _tweet(edition: _Edition, draws: Draws, number: int, held: Literal["alone", "repeated", "quoted"]) -> str:
    """Return a tweet as JSON text, together with the tweets that it repeats and quotes.

    Contained tweets are older, and their numbers are random. A quoted tweet contains no other tweets. `held` states
    whether this tweet is contained in another one.
    """
    bits = draws.bits
    chances = bits()
    time_ms = edition.begin_ms + number * 37
    identity = edition.first_id + number * 155_189_248 + (chances & 0xFFFF)
    writer = bits()
    parts = [
        f'"id":{identity},"created_at":"{part.english_time(time_ms // 1000)}","id_str":"{identity}",'
        f'"text":"{_text(edition, draws)}","source":"{chosen(bits(), _SOURCES)}","truncated":false',
        _answered(draws, is_answer=chances >> 28 == 0),
        # The square of a uniform number makes some users write more often than others.
        f'"user":{part.user(writer * writer * part.USERS >> 64, is_2016=edition.is_2016)}',
        part.point(draws) if _happens(bits(), 9) else '"geo":null,"coordinates":null',
        f'"place":{part.place(draws) if _happens(bits(), 14) else "null"},"contributors":null',
    ]
    if _happens(bits(), edition.extends):
        parts.append(f'"display_text_range":[0,140],"extended_tweet":{_long_text(edition, draws)}')
    if held == "alone" and _happens(bits(), edition.repeats):
        parts.append(f'"retweeted_status":{_tweet(edition, draws, _older(draws, number), "repeated")}')
    quotes = held != "quoted" and _happens(bits(), edition.quotes)
    if quotes:
        parts.append(_quotation(edition, draws, number))
    counts = "" if edition.is_2016 else f'"quote_count":{bits() >> 26},"reply_count":{bits() >> 25},'
    parts.append(
        f'"is_quote_status":{"true" if quotes else "false"},{counts}"retweet_count":{bits() >> 20},'
        f'"favorite_count":{bits() >> 18},"entities":{_entities(edition, draws)}'
    )
    if _happens(bits(), 40):
        pictures = part.media(draws, is_extended=True, is_2016=edition.is_2016)
        parts.append(f'"extended_entities":{{"media":{pictures}}},"possibly_sensitive":false')
    if _happens(bits(), 3):
        parts.append('"withheld_in_countries":["TR","DE"],"scopes":{"followers":false}')
    parts.append(f'"favorited":false,"retweeted":false,"filter_level":"low","lang":"{chosen(bits(), part.LANGUAGES)}"')
    if held == "alone":
        parts.append(f'"timestamp_ms":{time_ms}')
    return f"{{{','.join(parts)}}}"


def _happens(drawn: int, chance: int) -> bool:
    return drawn >> 24 < chance


def _older(draws: Draws, number: int) -> int:
    return draws.bits() * (number + 1) >> 32


def _text(edition: _Edition, draws: Draws) -> str:
    """Return random words as the content of a JSON string. Some have an ending with characters of several bytes or with
    JSON escapes."""
    drawn = draws.bits()
    words = draws.words(3 + drawn % edition.most_words)
    ending = ("", "", "", " \u2026", " \U0001f602", ' \\"quoted\\"', "\\nnext line", " \u65e5\u672c\u8a9e")
    return words + ending[drawn >> 29]


def _answered(draws: Draws, *, is_answer: bool) -> str:
    if not is_answer:
        return (
            '"in_reply_to_status_id":null,"in_reply_to_status_id_str":null,"in_reply_to_user_id":null,'
            '"in_reply_to_user_id_str":null,"in_reply_to_screen_name":null'
        )
    number = draws.bits() % part.USERS
    status, user = 1_200_000_000_000_000_000 + draws.bits() * 9_973, 10_000 + number * 21_247
    return (
        f'"in_reply_to_status_id":{status},"in_reply_to_status_id_str":"{status}","in_reply_to_user_id":{user},'
        f'"in_reply_to_user_id_str":"{user}","in_reply_to_screen_name":"{part.screen_name(number)}"'
    )


def _quotation(edition: _Edition, draws: Draws, number: int) -> str:
    older = _older(draws, number)
    identity = edition.first_id + older * 155_189_248
    short = draws.code(10)
    return (
        f'"quoted_status_id":{identity},"quoted_status_id_str":"{identity}",'
        f'"quoted_status":{_tweet(edition, draws, older, "quoted")},'
        f'"quoted_status_permalink":{{"url":"https://t.co/{short}","display":"twitter.com/{short}",'
        f'"expanded":"https://twitter.com/status/{identity}"}}'
    )


def _long_text(edition: _Edition, draws: Draws) -> str:
    pictures = ""
    if _happens(draws.bits(), 60):
        pictures = f',"extended_entities":{{"media":{part.media(draws, is_extended=True, is_2016=edition.is_2016)}}}'
    return (
        f'{{"full_text":"{draws.words(26 + draws.bits() % 16)}","display_text_range":[0,{150 + draws.bits() % 130}],'
        f'"entities":{_entities(edition, draws)}{pictures}}}'
    )


_Make = Callable[[Draws], str]
_NAMED: tuple[tuple[str, int, _Make], ...] = (
    ("hashtags", 60, part.hashtags),
    ("urls", 60, part.urls),
    ("user_mentions", 90, part.mentions),
    ("symbols", 8, part.symbols),
)
"""(Name of an entity, such as a hashtag; chance out of 256 that a text mentions such entities; function that makes
them)."""


def _entities(edition: _Edition, draws: Draws) -> str:
    """Return the arrays of entities, such as hashtags, as JSON text. Arrays may be empty, but an empty `media` is left
    out."""
    parts = [f'"{name}":{make(draws) if _happens(draws.bits(), chance) else "[]"}' for name, chance, make in _NAMED]
    if _happens(draws.bits(), 34):
        parts.append(f'"media":{part.media(draws, is_extended=False, is_2016=edition.is_2016)}')
    return f"{{{','.join(parts)}}}"
