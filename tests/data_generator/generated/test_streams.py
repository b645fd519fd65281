"""Random words and the values derived from them are pinned, because every machine must make the same."""

import numpy as np

from data_generator.generated import streams


def test_the_words_of_a_path_are_these_for_ever() -> None:
    assert [f"{word:016x}" for word in streams.raw_words(3, "eq", "int_1", 1, 0)] == PINNED


def test_paths_differ_even_when_their_texts_join_to_the_same() -> None:
    assert not np.array_equal(streams.raw_words(4, "ab", "c"), streams.raw_words(4, "a", "bc"))


def test_integers_include_both_ends_and_are_uniform() -> None:
    values = streams.integers(streams.raw_words(101_000, "t"), 0, 100)
    counts = np.bincount(values, minlength=101)
    assert values.min() == 0
    assert values.max() == 100
    assert counts.min() > 850
    assert counts.max() < 1150


def test_the_largest_word_stays_below_the_upper_end() -> None:
    largest = np.array([2**64 - 1], dtype=np.uint64)
    assert streams.integers(largest, 0, 100)[0] == 100
    assert streams.unit_floats(largest)[0] * 100 < 100


def test_letters_are_all_26_and_equally_likely() -> None:
    text = np.frombuffer(streams.letters(260_000, "t"), dtype=np.uint8)
    counts = np.bincount(text - ord("a"), minlength=26)
    assert len(counts) == 26
    # 256 is not a multiple of 26: without rejected bytes some letters are a tenth likelier (10 sigma here).
    assert counts.max() / counts.min() < 1.06


def test_letters_draw_again_when_too_many_bytes_are_refused(monkeypatch) -> None:
    drawn = []
    original = streams.raw_words

    def few_at_first(count: int, *path: object) -> streams.Words:
        drawn.append(path[-1])
        return original(1 if len(drawn) == 1 else count, *path)

    monkeypatch.setattr(streams, "raw_words", few_at_first)
    assert len(streams.letters(100, "t")) == 100
    assert drawn == [0, 1]


PINNED = ["b2e9fc71e60268fe", "f0b6170c82844f41", "a9880f2d44fcb376"]
