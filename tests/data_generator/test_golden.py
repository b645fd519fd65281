"""Every machine makes the same bytes: the digests of small instances are stored here.

A digest that changes on purpose needs a new version of its generator, because users' caches hold the old bytes. `python
-m tests.data_generator.test_golden` writes them again.
"""

import json
from pathlib import Path

import pytest

from data_generator.catalogue import CATALOGUE, resolve
from data_generator.digest import TableDigest
from data_generator.errors import DataError

GOLDEN = Path(__file__).with_name("golden") / "digests.json"
MIXED = {"int": "1", "float": "1", "bool": "2", "str": "2"}

INSTANCES: list[tuple[str, dict[str, str], int]] = [
    *[
        (name, {}, 2_000)
        for name, entry in CATALOGUE.items()
        if name not in ("synthetic", "tpch-lineitem", "webface", "imagenet-like", "wide") and not entry.imports
    ],
    ("core", {}, 20_000),
    ("eq", {}, 1_048_576 + 100),
    ("synthetic", MIXED, 2_000),
    ("synthetic", {**MIXED, "strings": "varying", "length": "7", "nulls": "0.2"}, 2_000),
    ("synthetic", {**MIXED, "strings": "words", "nulls": "0.05"}, 2_000),
    ("tpch-lineitem", {"scale": "0.01"}, 2_000),
    ("values", {"bytes": "4", "kind": "fixed"}, 2_000),
    ("values", {"bytes": "64", "kind": "fixed"}, 2_000),
    ("wide", {"columns": "20", "rows": "8"}, 2_000),
    ("traits", {"distinct": "50", "run_length": "3", "nulls": "0.3", "width": "33"}, 2_000),
    ("webface", {}, 2_000),
    ("imagenet-like", {}, 60),
    ("sensors", {"readings": "random"}, 2_000),
]


def digest(name: str, parameters: dict[str, str], rows: int) -> str:
    dataset = resolve(name, parameters, rows=rows)
    made = TableDigest(dataset.schema)
    for batch in dataset.batches():
        made.update(batch)
    return made.hexdigest()


def key(name: str, parameters: dict[str, str], rows: int) -> str:
    dataset = resolve(name, parameters, rows=rows)
    return f"{dataset.name}, {rows} rows, version {dataset.version}"


def test_every_data_set_that_is_generated_is_pinned() -> None:
    assert {name for name, _, _ in INSTANCES} == {name for name, entry in CATALOGUE.items() if not entry.imports}
    assert {key(*instance) for instance in INSTANCES} == set(json.loads(GOLDEN.read_text()))


@pytest.mark.parametrize("instance", INSTANCES, ids=lambda instance: f"{instance[0]}-{instance[2]}")
def test_the_bytes_are_these_for_ever(instance: tuple[str, dict[str, str], int]) -> None:
    try:
        made = digest(*instance)
    except DataError as error:
        if "not installed" not in str(error):
            raise
        pytest.skip(str(error))
    assert made == json.loads(GOLDEN.read_text())[key(*instance)]


if __name__ == "__main__":
    pinned = {key(*instance): digest(*instance) for instance in INSTANCES}
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(json.dumps(pinned, indent=1) + "\n")
