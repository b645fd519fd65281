"""A cache stays within its limit and drops the least recently used values."""

from dataclasses import dataclass

from libraries.near_storage.storing.recent import Recent


@dataclass(frozen=True)
class Thing:
    nbytes: int


class Loading:
    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.recent: Recent[Thing] = Recent(100)

    def get(self, key: str, nbytes: int = 40) -> Thing:
        def load() -> Thing:
            self.loaded.append(key)
            return Thing(nbytes)

        return self.recent.get(key, load)


def test_what_is_held_is_not_loaded_again():
    things = Loading()
    assert things.get("a") is things.get("a")
    assert things.loaded == ["a"]


def test_the_one_not_asked_for_goes_first():
    things = Loading()
    for key in ("a", "b", "a", "c", "a", "b"):
        things.get(key)
    assert things.loaded == ["a", "b", "c", "b"]


def test_what_is_larger_than_all_is_not_held_and_drives_nothing_out():
    things = Loading()
    things.get("a")
    things.get("large", 101)
    things.get("large", 101)
    things.get("a")
    assert things.loaded == ["a", "large", "large"]


def test_what_was_forgotten_is_loaded_again():
    things = Loading()
    things.get("a")
    things.recent.forget("a")
    things.recent.forget("never there")
    for key in ("b", "c", "a"):
        things.get(key, 30)
    things.get("b", 30)
    assert things.loaded == ["a", "b", "c", "a"]


def test_a_load_that_fails_leaves_nothing():
    things = Loading()
    for _ in range(2):
        try:
            things.recent.get("a", lambda: 1 / 0)
        except ZeroDivisionError:
            things.loaded.append("failed")
    things.get("a")
    assert things.loaded == ["failed", "failed", "a"]
