"""Merges of any components equal a dict, their columns equal those of the documents shredded together, and prefixes
that would skip the reading of keys are detected."""

import random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libraries.document_store.errors import CorruptError
from libraries.document_store.layouts import LAYOUTS, ComponentOptions, merge_components, open_component
from libraries.document_store.layouts.segments import Bounds, Copied, segments
from libraries.document_store.shredding import shred
from libraries.document_store.tests.layouts.components import (
    MemoryFile,
    alike,
    component_of,
    new_schema,
    newest,
    read_back,
    write,
)
from libraries.document_store.tests.random_documents import documents


def generations(layout, all_versions, text_keys=False, **options):
    """Return components of one store, newest first, as flushes would make them from versions, newest first."""
    components, schema = [], new_schema(text_keys)
    for versions in reversed(all_versions):
        file, schema = write(layout, versions, schema, text_keys, **options)
        components.insert(0, open_component(file))
    return components


def merged(components, drop_antimatter=False, **options):
    file = MemoryFile()
    info = merge_components(file, components, drop_antimatter, ComponentOptions(**options))
    assert info.size_bytes == file.size_bytes
    return open_component(file)


@st.composite
def histories(draw, text_keys):
    key = st.integers(0, 12)
    versions = []
    for _ in range(draw(st.integers(1, 4))):
        found = {}
        for document in draw(documents(8)):
            number = draw(key)
            name = f"{number:02}" if text_keys else number
            found[name] = None if draw(st.integers(0, 3)) == 0 else document | {"id": name}
        versions.append(found)
    return versions


@pytest.mark.parametrize("text_keys", [False, True])
def test_merges_are_what_a_dict_says(text_keys):
    @settings(max_examples=10, deadline=None)
    @given(histories(text_keys), st.integers(1, 4), st.integers(1, 6), st.data())
    def check(versions, leaf_records, merged_records, data):
        some = data.draw(st.integers(1, len(versions)))
        for layout in LAYOUTS:
            components = generations(layout, versions, text_keys, leaf_records=leaf_records)
            merges_as_a_dict(components, versions, some, merged_records)

    check()


def merges_as_a_dict(components, versions, some, leaf_records):
    """Merge some of the newest components, keeping anti-matter, then all."""
    alive = {key: document for key, document in newest(versions).items() if document is not None}
    younger = merged(components[:some], leaf_records=leaf_records)
    assert alike(read_back(younger), dict(sorted(newest(versions[:some]).items())))
    whole = merged([younger, *components[some:]], drop_antimatter=True, leaf_records=leaf_records)
    found = read_back(whole)
    assert list(found) == sorted(alive)
    assert alike(found, dict(sorted(alive.items())))
    if whole.info.layout == "amax":
        same_columns_as_shredded(whole, alive)


def same_columns_as_shredded(component, alive):
    """Check that late columns have the same tokens as if all documents had been shredded together."""
    for leaf in component.leaves:
        keys = leaf.keys()[0].tolist()
        rows = [msgspec.msgpack.encode(alive[key]) for key in keys]
        # A copied leaf has only the columns of its time.
        shredded = shred(rows, leaf.schema)
        assert shredded.schema == leaf.schema
        columns = leaf.columns(range(len(component.schema.leaves)))
        assert len(columns) == len(leaf.schema.leaves)
        for expected in shredded.columns:
            found = columns[expected.leaf.number]
            assert found.levels.tolist() == expected.levels.tolist(), expected.leaf
            assert repr(found.values.tolist()) == repr(expected.values.tolist())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_merging_leaves_of_many_keys(layout):
    chosen = random.Random(4)
    versions = [
        {
            key: None if chosen.random() < 0.2 else {"id": key, "generation": generation, "text": "t" * (key % 50)}
            for key in chosen.sample(range(60_000), 25_000)
        }
        for generation in range(3)
    ]
    components = generations(layout, versions)
    whole = merged(components, drop_antimatter=True)
    alive = {key: document for key, document in newest(versions).items() if document is not None}
    assert read_back(whole) == dict(sorted(alive.items()))
    if layout == "amax":
        assert [leaf.count for leaf in whole.leaves][:-1] == [15_000] * (len(whole.leaves) - 1)


def test_components_of_two_stores_are_not_merged():
    first, second = component_of("amax", {1: {"id": 1, "a": 1}}), component_of("amax", {1: {"id": 1, "b": 1}})
    with pytest.raises(CorruptError, match="different stores"):
        merged([first, second])
    with pytest.raises(ValueError, match="same layout"):
        merged([first, component_of("open", {1: {"id": 1, "a": 1}})])


def matching(components, number, low, high, also_skip_keys=False):
    """Return the keys whose newest version has a value from low to high, as a filtered scan would."""
    seen, found = set(), []
    for component in components:
        for leaf in component.leaves:
            may_match = leaf.may_match(number, low, high)
            if also_skip_keys and not may_match:
                continue
            keys, gone = leaf.keys()
            records = np.flatnonzero(~gone)
            values = leaf.columns([number])[number].values.tolist() if may_match else None
            for ordinal, key in enumerate(keys.tolist()):
                if key in seen:
                    continue
                seen.add(key)
                if values is not None and not gone[ordinal]:
                    value = values[int(np.searchsorted(records, ordinal))]
                    found += [key] if low <= value <= high else []
    return sorted(found)


def test_skipping_keys_by_prefixes_would_bring_old_versions_back():
    old = {key: {"id": key, "age": key} for key in range(100)}
    new = {key: {"id": key, "age": 1000 + key} for key in range(40, 60)} | {61: None}
    components = generations("amax", [new, old])
    (number,) = (leaf.number for leaf in components[0].schema.leaves if str(leaf.path) == "age")
    right = [key for key, document in newest([new, old]).items() if document and 30 <= document["age"] <= 70]
    assert matching(components, number, 30, 70) == sorted(right)
    assert not components[0].leaves[0].may_match(number, 30, 70)
    assert matching(components, number, 30, 70, also_skip_keys=True) != sorted(right), (
        "the planted fault is not detected"
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_leaves_that_nothing_overlaps_are_copied(layout):
    """They are copied except for the checksum, which depends on the page's number; a leaf between is merged."""
    first = {key: {"id": key, "text": chr(97 + key % 26) * 700} for key in range(400)}
    second = {key: {"id": key, "late": "late" * 200} for key in range(1000, 1400)}
    third = {key: {"id": key, "text": "new"} for key in range(380, 384)} | {1200: None}
    components = generations(layout, [third, second, first], leaf_records=100, compression="none")
    whole = merged(components, drop_antimatter=True, leaf_records=100, compression="none")
    alive = {key: document for key, document in newest([third, second, first]).items() if document is not None}
    assert alike(read_back(whole), dict(sorted(alive.items())))
    stored = {bytes(whole._pages.stored(number)[0]) for number in range(whole._pages.count)}
    copied = [
        sum(bytes(component._pages.stored(number)[0]) in stored for number in range(component._pages.count))
        for component in components
    ]
    pages = [component._pages.count for component in components]
    assert copied[0] == 0
    assert copied[1] >= pages[1] // 2
    assert copied[2] >= pages[2] // 2
    again = merged(components, drop_antimatter=True, leaf_records=100, compression="zstd")
    assert alike(read_back(again), read_back(whole)), "another compression prevents copying"


def test_segments_cover_all_leaves_and_share_no_key():
    chosen = random.Random(5)
    for _ in range(300):
        components = []
        for _ in range(chosen.randrange(1, 5)):
            bounds = np.array(sorted(chosen.sample(range(40), 2 * chosen.randrange(6))), np.int64)
            kept = np.array([chosen.random() < 0.8 for _ in bounds[::2]], np.bool_)
            components.append(Bounds(bounds[::2], bounds[1::2], kept))
        before, seen = -1, []
        for segment in segments(components):
            if isinstance(segment, Copied):
                assert components[segment.component].is_kept[segment.leaf]
                leaves = [(segment.component, segment.leaf)]
            else:
                leaves = [(number, leaf) for number, own in enumerate(segment.leaves) for leaf in own]
            assert min(components[number].min_keys[leaf] for number, leaf in leaves) > before
            before = max(components[number].max_keys[leaf] for number, leaf in leaves)
            seen += leaves
        assert sorted(seen) == [
            (n, leaf) for n, bounds in enumerate(components) for leaf in range(len(bounds.min_keys))
        ]
