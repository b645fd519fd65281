"""Sensor reports: 16 columns, mostly integers, with an array of readings (`sensors` in table 1 of Alkowaileet and
Carey, VLDB 2022).

The readings of a report are a random walk: each reading differs from the previous reading by at most 3, like a
temperature that is read every second. With `readings=random`, the readings are random doubles, which no encoding makes
smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data_generator.dataset import Dataset
from data_generator.generated.documents.random_values import BLOCK, KEY_STEP, Draws, dataset, iso_time

VERSION = 3

_SENSORS = 10_000
_BEGIN_MS = 1_672_531_200_000
_REPORT_EVERY_MS = 20_000
_WALKED, _RANDOM = 97, 71
"""Number of readings per report, for similar and for random readings. Random readings are fewer, because their text is
longer."""
_STEP = 3
_KINDS = ("temperature", "humidity", "pressure", "vibration")
_DOCUMENT = (
    '{"id":%d,"sensor_id":%d,"kind":"%s","report_time":%d,"day":"%s",'
    '"connectivity":{"signal_dbm":%d,"latency_ms":%d,"retries":%d,"uptime_s":%d},'
    '"battery":{"level":%d,"voltage_mv":%d,"cycles":%d,"is_charging":%s},"firmware":%d,"readings":[%s]}'
)


def build(name: str, rows: int, parameters: Mapping[str, str]) -> Dataset:
    """Return `rows` reports, three a minute. Each report comes from one of 10,000 sensors."""
    readings = _random_readings if parameters["readings"] == "random" else _walked_readings
    return dataset(name, rows, "id", VERSION, partial(_reports, readings=readings))


def _reports(draws: Draws, first: int, *, readings: Callable[[Draws, list[int]], list[str]]) -> Iterator[str]:
    times = [_BEGIN_MS + (first + place) * _REPORT_EVERY_MS for place in range(BLOCK)]
    sensors = draws.integers("sensor", 0, _SENSORS - 1).tolist()
    level = draws.integers("level", 5, 100)
    columns = (
        range(KEY_STEP * first, KEY_STEP * (first + BLOCK), KEY_STEP),
        sensors,
        [_KINDS[sensor % len(_KINDS)] for sensor in sensors],
        times,
        [iso_time(time * 1000)[:10] for time in times],
        draws.integers("signal", -110, -50).tolist(),
        draws.integers("latency", 4, 900).tolist(),
        (draws.integers("retries", 0, 31) >> 3).tolist(),
        draws.integers("uptime", 0, 10_000_000).tolist(),
        level.tolist(),
        (3_100 + level * 11).tolist(),
        draws.integers("cycles", 0, 1_500).tolist(),
        [("false", "false", "false", "true")[number] for number in draws.integers("charging", 0, 3).tolist()],
        [200 + sensor % 7 for sensor in sensors],
        readings(draws, times),
    )
    return map(_DOCUMENT.__mod__, zip(*columns, strict=True))


def _walked_readings(draws: Draws, times: list[int]) -> list[str]:
    steps = draws.integers("steps", -_STEP, _STEP, BLOCK * _WALKED).reshape(BLOCK, _WALKED)
    steps[:, 0] = draws.integers("begin", 1_000, 9_000)
    walks = np.cumsum(steps, axis=1)
    return _texts('{"time":%d,"value":%d}', times, walks)


def _random_readings(draws: Draws, times: list[int]) -> list[str]:
    values = draws.unit_floats("values", BLOCK * _RANDOM).reshape(BLOCK, _RANDOM) * 1_000.0
    return _texts('{"time":%d,"value":%r}', times, values)


def _texts(reading: str, times: list[int], values: NDArray[Any]) -> list[str]:
    """Return the readings of each report as JSON text. There is one reading for each second before the report."""
    count = values.shape[1]
    made = []
    for time, row in zip(times, values.tolist(), strict=True):
        begin = time - count * 1_000
        made.append(",".join(map(reading.__mod__, zip(range(begin, time, 1_000), row, strict=True))))
    return made
