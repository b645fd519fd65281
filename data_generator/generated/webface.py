"""A table like WebFace10M: the results of a face analyser for ten million images, 33 columns.

The original is not public. The thesis behind this project (section 5.1, WebFace10M) gives the schema of the original
and, in table 6.5, its size as a file. This table has the same schema, and its bytes per row are within 20 % of the
original's: CSV 900, JSON Lines 1,270, Parquet without codec 460, Feather without codec 690. Rows of one subject are
adjacent. Scores are quantised or in single precision, as such programs return them. Identifiers and the long `ipt_str`
follow patterns. Therefore, zstd reduces this table to between a fifth and a quarter of its size, like the original
(0.21, table 6.8). In an HDF5 table, which pads strings to the longest, a row of the original took 2,440 bytes (table
6.5). Therefore, one row in 4,096 has a long `ipt_str`.

Only additions, multiplications and divisions of IEEE numbers are used, because library functions differ by machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from data_generator.dataset import Dataset, batch_sizes
from data_generator.generated import columns, streams
from data_generator.imported.tables.webface_file import open_file

VERSION = 2
_BATCH_ROWS = 262_144
"""Number of rows in a batch: a quarter of the usual number, because a row takes 700 bytes."""

_QUANTISED = {
    "background_uniformity_iface": (0.0, 1.0),
    "eye_status_left_iface": (0.0, 1.0),
    "eye_status_right_iface": (0.0, 1.0),
    "gender_iface": (-1.0, 1.0),
    "glasses_status_iface": (-1.0, 1.0),
    "heavy_frame_iface": (-1.0, 1.0),
    "mouth_status_iface": (0.0, 1.0),
}
"""Column -> (low, high), for scores of 8-bit classifiers. Scores have 256 levels, which print with 17 digits."""

_MEASURED = {
    "age_iface": (14.0, 71.0),
    "brightness_iface": (0.05, 0.95),
    "contrast_iface": (0.1, 0.9),
    "eye_distance_iface": (24.0, 96.0),
    "eye_gaze_iface": (-0.5, 0.5),
    "face_confidence_iface": (0.4, 1.0),
    "face_relative_area_iface": (0.1, 0.9),
    "face_size_iface": (40.0, 112.0),
    "pitch_angle_iface": (-35.0, 35.0),
    "roll_angle_iface": (-25.0, 25.0),
    "shadow_iface": (-1.0, 1.0),
    "sharpness_iface": (0.0, 1.0),
    "specularity_iface": (0.0, 1.0),
    "yaw_angle_iface": (-60.0, 60.0),
}
"""Column -> (low, high), for measures in single precision with a bell-shaped distribution from low to high."""

_SUBJECT_PAIR_ROWS = 84
"""Two subjects share 84 rows: 42 images each on average, as in the public WebFace."""
_CONTAINER_ROWS = 8_192
_CONTAINER = "/mnt/storage/biometrics/webface/webface10m/aligned_112x112/part_%02d/container_%05d.rec"

_BBOX = b"[###.#, ###.#, ###.#, ###.#]"
_BBOX_TENTHS = ((0, 279), (0, 279), (559, 1119), (559, 1119))
"""Left, top, width and height of a face in a crop of 112 by 112 pixels: (low, high) of each, in tenths of a pixel."""
_IMAGE_ID = b"webface10m_#########"
_SUBJECT = b"wf10m_subject_########"
_IPT = (
    b"iface_processing:version=5.12.0;detector=accurate_v7;landmarks=68;template=iface_standard;"
    b"crop=112x112;color=rgb;left_eye=##,##;right_eye=##,##;nose=##,##;mouth=##,##;"
    b"icao=brightness,contrast,sharpness,shadow;status=processed;errors=none;retries=0"
)
_LONG_ROWS = 4_096
"""Every 4,096th row has a long text, which lists repeated attempts to process the image."""
_RETRIES = b";retry=##,##,##,##" * 100
_DATABASES = ("webface_part_a", "webface_part_b", "webface_part_c", "webface_part_d")

SCHEMA = pa.schema(
    sorted(
        [(name, pa.float64()) for name in (*_QUANTISED, *_MEASURED)]
        + [
            (name, pa.int64())
            for name in (
                "face_index",
                "faces_count",
                "image_height",
                "image_width",
                "subject_number",
                "template_quality",
            )
        ]
        + [
            (name, pa.string())
            for name in ("bbox", "db_id", "image_container_path", "image_id", "ipt_str", "subject_id")
        ]
    )
)
"""The columns: 6 int64, 21 float64 and 6 strings. The string columns have the same names as in the original."""


def build(name: str, rows: int | None, parameters: Mapping[str, str], *, source: Path | None = None) -> Dataset:
    """Return at most `rows` rows of the user's file (`source`); without a file, rows of the generated table."""
    if source is not None:
        return open_file(source, rows)
    count = 10_000_000 if rows is None else rows

    def batches() -> Iterator[pa.RecordBatch]:
        start = 0
        for number, size in enumerate(batch_sizes(count, _BATCH_ROWS)):
            yield _Faces(name, number, np.arange(start, start + size)).batch()
            start += size

    return Dataset(name, count, SCHEMA, VERSION, batches)


@dataclass(frozen=True)
class _Faces:
    """Makes one batch: the rows of the table `name` with the given row numbers (int64)."""

    name: str
    number: int
    row: NDArray[np.int64]

    def batch(self) -> pa.RecordBatch:
        made = {**self._scores(), **self._numbers(), **self._texts()}
        return pa.RecordBatch.from_arrays([made[column] for column in SCHEMA.names], schema=SCHEMA)

    def _words(self, *purpose: object) -> streams.Words:
        return streams.raw_words(len(self.row), self.name, *purpose, VERSION, self.number)

    def _bell(self, purpose: str) -> NDArray[np.float64]:
        """Return bell-shaped values in [0, 1): the mean of four 16-bit numbers."""
        quarters = self._words(purpose).astype("<u8", copy=False).view(np.uint16).reshape(-1, 4)
        return quarters.sum(axis=1, dtype=np.int64) / (4 * 65_536.0)

    def _scores(self) -> dict[str, pa.Array]:
        made = {}
        for column, (low, high) in _QUANTISED.items():
            level = (self._bell(column) * 256).astype(np.int64)
            made[column] = columns.numbers(low + level / 255 * (high - low))
        for column, (low, high) in _MEASURED.items():
            value = (low + self._bell(column) * (high - low)).astype(np.float32)
            made[column] = columns.numbers(value.astype(np.float64))
        return made

    def _subject(self) -> NDArray[np.int64]:
        pair, place = np.divmod(self.row, _SUBJECT_PAIR_ROWS)
        # Rows of a pair before `cut` belong to the first subject. The cut (10 to 74) depends only on the pair's number,
        # so it is the same in every batch.
        cut = 10 + (pair * 2_654_435_761 % 4_294_967_296) * 65 // 4_294_967_296
        return 2 * pair + (place >= cut)

    def _numbers(self) -> dict[str, pa.Array]:
        crowd = streams.integers(self._words("faces_count"), 1, 16)
        faces = np.where(crowd > 4, 1, crowd)
        width = np.array([112, 112, 112, 250, 320, 480, 500, 640])[streams.integers(self._words("image_width"), 0, 7)]
        return {
            "face_index": columns.numbers(self.row % faces),
            "faces_count": columns.numbers(faces),
            "image_height": columns.numbers(width * 3 // 4 + width // 4 * (width == 112)),
            "image_width": columns.numbers(width),
            "subject_number": columns.numbers(self._subject()),
            "template_quality": columns.numbers((self._bell("template_quality") * 101).astype(np.int64)),
        }

    def _texts(self) -> dict[str, pa.Array]:
        container = self.row // _CONTAINER_ROWS
        paths = pa.array(
            [_CONTAINER % (index % 64, index) for index in range(int(container[0]), int(container[-1]) + 1)]
        )
        database = pa.array(_DATABASES).take(pa.array(container % len(_DATABASES)))
        return {
            "bbox": _filled(
                _BBOX,
                [streams.integers(self._words("bbox", side), *tenths) for side, tenths in enumerate(_BBOX_TENTHS)],
            ),
            "db_id": database,
            "image_container_path": paths.take(pa.array(container - container[0])),
            "image_id": _filled(_IMAGE_ID, [self.row]),
            "ipt_str": self._processing(),
            "subject_id": _filled(_SUBJECT, [self._subject()]),
        }

    def _processing(self) -> pa.Array:
        points = [streams.integers(self._words("ipt_str", point), 30, 45) for point in range(8)]
        long = self.row % _LONG_ROWS == 0
        texts = _filled(_IPT, points)
        if not long.any():
            return texts
        # The retries repeat the points of the row.
        retried = _filled(_IPT + _RETRIES, [points[place % 8][long] for place in range(8 + 4 * 100)])
        return pc.replace_with_mask(texts, pa.array(long), retried)


def _filled(template: bytes, numbers: list[NDArray[np.int64]]) -> pa.Array:
    """Return one string per row: the template with its '#' fields replaced by numbers with leading zeros.

    A '.' inside a field divides its digits, as in '###.#'.
    """
    rows = len(numbers[0])
    text = np.empty((rows, len(template)), dtype=np.uint8)
    text[:] = np.frombuffer(template, dtype=np.uint8)
    for (first, last), number in zip(_fields(template), numbers, strict=True):
        rest = number
        for place in range(last, first - 1, -1):
            if template[place] == ord("#"):
                rest, digit = np.divmod(rest, 10)
                text[:, place] = digit + ord("0")
    return columns.strings(text.data.cast("B"), np.full(rows, len(template)))


def _fields(template: bytes) -> Iterator[tuple[int, int]]:
    """Yield the indexes of the first and the last character of each field, which consists of '#' and '.'."""
    for match in re.finditer(rb"#[#.]*", template):
        yield match.start(), match.end() - 1
