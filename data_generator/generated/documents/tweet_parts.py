"""Make the parts of a tweet as JSON text, named and nested as in Twitter's API (version 1.1).

Most parts occur only in some tweets. A part may occur in the tweet itself, in a tweet that is retweeted, and in a tweet
that is quoted. A table with a column for each field therefore has hundreds of columns, and most columns are empty in
any one tweet.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from data_generator.generated.documents.random_values import Draws, chosen, code_of
from data_generator.generated.words import WORDS

USERS = 150_000
LANGUAGES = ("en", "ja", "es", "pt", "ar", "th", "ko", "fr", "tr", "und")

_TAGS = ("jobs", "love", "news", *(first + second for first in WORDS[::9] for second in WORDS[4::31]))
_CITIES = tuple(word.capitalize() for word in WORDS[::5])
_COUNTRIES = (("US", "United States"), ("BR", "Brasil"), ("GB", "United Kingdom"), ("JP", "Japan"), ("CZ", "Czechia"))
_SIZES = (("thumb", 150, 150, "crop"), ("small", 680, 383, "fit"), ("medium", 1200, 675, "fit"))
_SPREAD = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1
_BEGIN_2009_S = 1_230_768_000
_COLOURS = ("1DA1F2", "F5F8FA", "000000", "DDEEF6", "C0DEED", "333333", "FFFFFF", "9266CC")


def english_time(seconds: int) -> str:
    """Return seconds since 1970 as 'Tue Nov 24 13:05:11 +0000 2020'."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%a %b %d %H:%M:%S +0000 %Y")


def screen_name(number: int) -> str:
    """Return the screen name of user `number`."""
    return f"{WORDS[number % len(WORDS)]}_{WORDS[number // len(WORDS) % len(WORDS)]}{number % 97}"


def user(number: int, *, is_2016: bool) -> str:
    """Return user `number`, the same for each call. A third of the users have a location or a web page."""
    bits = (number + 1) * _SPREAD & _MASK
    name = screen_name(number)
    words = WORDS
    count = len(words)
    description = " ".join(words[(bits >> shift) % count] for shift in range(3, 3 + (bits & 31) + 4))
    location = f'"{_CITIES[bits % len(_CITIES)]}, {_COUNTRIES[bits >> 60 & 3][1]}"' if bits >> 20 & 1 else "null"
    page = f'"https://t.co/{code_of(number)[:10]}"' if bits >> 21 & 3 == 0 else "null"
    identity = 10_000 + number * 21_247
    picture = f"profile_images/{bits >> 24}/{code_of(number)[10:18]}_normal.jpg"
    colour = _COLOURS[bits >> 33 & 7]
    parts = [
        f'"id":{identity},"id_str":"{identity}","name":"{name[:4].capitalize()} {_CITIES[bits % len(_CITIES)]}",'
        f'"screen_name":"{name}","location":{location},"url":{page},"description":"{description}",'
        f'"protected":false,"verified":{"true" if bits >> 40 & 63 == 0 else "false"},'
        f'"followers_count":{(bits >> 30) % 50_000},"friends_count":{(bits >> 34) % 3_000},'
        f'"listed_count":{(bits >> 38) % 200},"favourites_count":{(bits >> 28) % 60_000},'
        f'"statuses_count":{(bits >> 26) % 200_000},'
        f'"created_at":"{english_time(_BEGIN_2009_S + (bits >> 32) % 220_000_000)}","utc_offset":null,"time_zone":null,'
        f'"geo_enabled":{"true" if bits >> 41 & 1 else "false"},"lang":null,"contributors_enabled":false,'
        f'"is_translator":false,"profile_background_color":"{colour}",'
        f'"profile_background_image_url":"http://abs.twimg.com/images/themes/theme{bits & 15}/bg.png",'
        f'"profile_background_image_url_https":"https://abs.twimg.com/images/themes/theme{bits & 15}/bg.png",'
        f'"profile_background_tile":false,"profile_link_color":"{colour}","profile_sidebar_border_color":"C0DEED",'
        '"profile_sidebar_fill_color":"DDEEF6","profile_text_color":"333333","profile_use_background_image":true,'
        f'"profile_image_url":"http://pbs.twimg.com/{picture}","profile_image_url_https":"https://pbs.twimg.com/{picture}"'
    ]
    if bits >> 43 & 3:
        parts.append(f'"profile_banner_url":"https://pbs.twimg.com/profile_banners/{identity}/{bits >> 33}"')
    if not is_2016:
        parts.append('"translator_type":"none"')
    parts.append(
        f'"default_profile":{"true" if bits >> 45 & 1 else "false"},"default_profile_image":false,'
        '"following":null,"follow_request_sent":null,"notifications":null'
    )
    return f"{{{','.join(parts)}}}"


def point(draws: Draws) -> str:
    """Return the position of a tweet as the fields `geo` (latitude first) and `coordinates` (longitude first)."""
    drawn = draws.bits()
    north, east = 24.0 + (drawn & 0xFFFF) / 2_621.44, -120.0 + (drawn >> 16) / 546.13
    return (
        f'"geo":{{"type":"Point","coordinates":[{north:.6f},{east:.6f}]}},'
        f'"coordinates":{{"type":"Point","coordinates":[{east:.6f},{north:.6f}]}}'
    )


def place(draws: Draws) -> str:
    """Return a city with its bounding box, which is an array nested three levels deep."""
    drawn = draws.bits()
    city = _CITIES[drawn % len(_CITIES)]
    short, country = _COUNTRIES[drawn >> 30]
    west, south = -120.0 + (drawn >> 8 & 0xFFF) / 40.96, 25.0 + (drawn >> 20) / 200.0
    corners = ",".join(
        f"[{east:.6f},{north:.6f}]"
        for east, north in ((west, south), (west, south + 0.21), (west + 0.3, south + 0.21), (west + 0.3, south))
    )
    return (
        f'{{"id":"{code_of(drawn)[:16]}","url":"https://api.twitter.com/1.1/geo/id/{code_of(drawn)[:16]}.json",'
        f'"place_type":"city","name":"{city}","full_name":"{city}, {short}","country_code":"{short}",'
        f'"country":"{country}","bounding_box":{{"type":"Polygon","coordinates":[[{corners}]]}},"attributes":{{}}}}'
    )


def hashtags(draws: Draws) -> str:
    """Return one to four hashtags. The most frequent hashtag is 'jobs'."""
    return _several(draws, 3, lambda at: f'{{"text":"{chosen(draws.bits(), _TAGS)}","indices":[{at},{at + 9}]}}')


def urls(draws: Draws) -> str:
    """Return one or two links."""

    def link(at: int) -> str:
        page = f"{WORDS[draws.bits() % len(WORDS)]}.com/{draws.code(9)}"
        return (
            f'{{"url":"https://t.co/{draws.code(10)}","expanded_url":"https://www.{page}","display_url":"{page}",'
            f'"indices":[{at},{at + 23}]}}'
        )

    return _several(draws, 1, link)


def mentions(draws: Draws) -> str:
    """Return one to four users whom the tweet mentions."""

    def mention(at: int) -> str:
        number = draws.bits() % USERS
        name = screen_name(number)
        identity = 10_000 + number * 21_247
        return (
            f'{{"screen_name":"{name}","name":"{name[:4].capitalize()}","id":{identity},"id_str":"{identity}",'
            f'"indices":[{at},{at + len(name) + 1}]}}'
        )

    return _several(draws, 3, mention)


def symbols(draws: Draws) -> str:
    """Return one or two stock symbols."""
    return _several(draws, 1, lambda at: f'{{"text":"{draws.code(4).upper()}","indices":[{at},{at + 5}]}}')


def media(draws: Draws, *, is_extended: bool, is_2016: bool) -> str:
    """Return one picture. If `is_extended`, return one to four items, of which a quarter are films.

    Half of the items are taken from another tweet and name the author of that tweet.
    """

    def picture(at: int) -> str:
        return _medium(draws, at, is_film=is_extended and draws.bits() & 3 == 0, is_2016=is_2016)

    return _several(draws, 3 if is_extended else 0, picture)


def _medium(draws: Draws, at: int, *, is_film: bool, is_2016: bool) -> str:
    drawn = draws.bits()
    identity = 1_100_000_000_000_000_000 + drawn * 7_919
    path = f"pbs.twimg.com/media/{draws.code(15)}.jpg"
    short = draws.code(10)
    sizes = ",".join(f'"{name}":{{"w":{w},"h":{h},"resize":"{how}"}}' for name, w, h, how in _SIZES)
    parts = [
        f'"id":{identity},"id_str":"{identity}","indices":[{at},{at + 23}],"media_url":"http://{path}",'
        f'"media_url_https":"https://{path}","url":"https://t.co/{short}","display_url":"pic.twitter.com/{short}",'
        f'"expanded_url":"https://twitter.com/{screen_name(drawn % USERS)}/status/{identity - drawn}/photo/1",'
        f'"type":"{"video" if is_film else "photo"}","sizes":{{{sizes},'
        f'"large":{{"w":{600 + (drawn & 1023)},"h":{500 + (drawn >> 10 & 1023)},"resize":"fit"}}}}'
    ]
    if drawn >> 28 & 1:
        other = 20_000 + drawn
        parts.append(
            f'"source_status_id":{identity - 77},"source_status_id_str":"{identity - 77}",'
            f'"source_user_id":{other},"source_user_id_str":"{other}"'
        )
    if is_film:
        variants = ",".join(
            f'{{"bitrate":{rate},"content_type":"video/mp4","url":"https://video.twimg.com/vid/{draws.code(16)}.mp4"}}'
            for rate in (256_000, 832_000, 2_176_000)
        )
        parts.append(f'"video_info":{{"aspect_ratio":[16,9],"duration_millis":{drawn >> 14},"variants":[{variants}]}}')
    if not is_2016 and drawn >> 29 & 1:
        parts.append(
            f'"additional_media_info":{{"title":"{draws.words(3)}","description":"{draws.words(7)}",'
            f'"embeddable":true,"monetizable":{"true" if drawn & 1 else "false"}}}'
        )
    return f"{{{','.join(parts)}}}"


def _several(draws: Draws, more: int, make: Callable[[int], str]) -> str:
    """Return an array with one item and up to `more` further items. `make` makes the item for a given position in the
    text."""
    drawn = draws.bits()
    count = 1 + (drawn & 1) * (drawn >> 1) % (more + 1)
    return f"[{','.join(make(18 + 24 * number) for number in range(count))}]"
