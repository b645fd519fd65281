"""How users name variants and operations: in full, by a known name, or by a regular expression."""

from __future__ import annotations

import pytest

from bench_runner.errors import PlanError
from bench_runner.plan import patterns
from bench_runner.plan.patterns import alternatives, matches, names_in
from bench_runner.plan.planning import make_plan
from bench_runner.registries import REGISTRIES
from bench_runner.request import Request
from bench_runner.suites import SUITES

PARQUET = "parquet[engine=pyarrow,codec=none]"
CSV = "csv[engine=pandas]"


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ((), []),
        (("",), []),
        (("csv",), ["csv"]),
        (("parquet|csv",), ["parquet", "csv"]),
        (("parquet|csv", "csv|xml"), ["parquet", "csv", "xml"]),
        (("csv|",), ["csv"]),
        (("^(csv|xml)",), ["^(csv|xml)"]),
        (("(a|b)|c",), ["(a|b)", "c"]),
        (("[|]|c",), ["[|]", "c"]),
        ((r"a\|b",), [r"a\|b"]),
        (("parquet,csv, xml",), ["parquet", "csv", "xml"]),
        (("pyarrow,codec=none",), ["pyarrow,codec=none"]),
        (("a{1,2},b",), ["a{1,2}", "b"]),
        ((f"{PARQUET},{CSV}",), [PARQUET, CSV]),
        ((f"{PARQUET}|{CSV}",), [PARQUET, CSV]),
    ],
)
def test_texts_are_split_at_each_bar_or_comma_outside_of_brackets(texts: tuple[str, ...], found: list[str]) -> None:
    assert patterns.alternatives(texts) == found


@pytest.mark.parametrize(
    ("text", "variant"),
    [
        ("parquet", PARQUET),
        ("^parquet", PARQUET),
        ("^parquet$", PARQUET),
        ("(csv|quet)$", PARQUET),
        ("par", PARQUET),
        ("pyarrow,codec=none", PARQUET),
        (PARQUET, PARQUET),
        ("parquet[codec=none]", PARQUET),
        ("parquet[engine=pyarrow]", "parquet[engine=pyarrow,codec=snappy]"),
        ("sqlite[engine=sqlite3]", "sqlite[engine=sqlite3]"),
        ("(csv|xml)", CSV),
    ],
)
def test_a_text_means_a_variant(text: str, variant: str) -> None:
    assert patterns.matches(text, variant)


@pytest.mark.parametrize(
    ("text", "variant"),
    [
        ("csv", "mycsv[engine=x]"),
        ("csv", "json[engine=csv]"),
        ("parquet", "image-parquet[engine=pyarrow]"),
        ("raw-io", "image-raw-io[engine=readinto]"),
        (PARQUET, "parquet[engine=pyarrow,codec=none,level=1]"),
        ("csv[engine=pandas]", "csv[engine=pandas,keep_default_na=false]"),
        ("parquet[codec=zstd]", PARQUET),
        # An invalid setting matches nothing, and the plan reports why.
        ("parquet[codec=nosuch]", PARQUET),
        ("^arquet", PARQUET),
        ("^csv$", "mycsv[engine=x]"),
        ("^hdf5$", "hdf5-table[engine=pandas]"),
    ],
)
def test_a_text_means_no_other_variant(text: str, variant: str) -> None:
    assert not patterns.matches(text, variant)


@pytest.mark.parametrize("text", [PARQUET, "lmdb[engine=lmdb]", "project[columns=4]"])
def test_a_known_name_with_settings_is_spelled(text: str) -> None:
    assert patterns.is_spelled(text)


@pytest.mark.parametrize("text", ["parquet", "parquet[abc]", "parque[engine=x]", "parquet[engine=x", "[engine=x]"])
def test_all_else_is_searched_for(text: str) -> None:
    assert not patterns.is_spelled(text)


@pytest.mark.parametrize(
    ("text", "guess"),
    [
        ("parket", " (did you mean 'parquet'?)"),
        ("^parket$", " (did you mean 'parquet'?)"),
        ("parket[codec=zstd]", " (did you mean 'parquet'?)"),
        ("zzz", ""),
    ],
)
def test_what_means_nothing_is_named_with_the_nearest_name_and_the_next_step(text: str, guess: str) -> None:
    with pytest.raises(PlanError) as raised:
        patterns.check_found("formats", ("csv", text), (PARQUET, CSV), ("parquet", "csv"))
    assert raised.value.problem == f"`formats`: {text!r} matches no variant{guess}."
    assert raised.value.next_step == "There are parquet, csv."
    assert (raised.value.parameter, raised.value.given) == ("formats", text)


def test_every_alternative_that_means_something_is_silent() -> None:
    patterns.check_found("formats", ("csv|par", PARQUET), (PARQUET, CSV), ())


@pytest.mark.parametrize("text", ["(", "csv|[", "*"])
def test_what_is_no_regular_expression_is_named(text: str) -> None:
    with pytest.raises(PlanError, match="is not a regular expression"):
        patterns.check("formats", (text,))


def test_a_spelling_needs_to_be_no_regular_expression() -> None:
    patterns.check("formats", ("vortex[engine=vortex-data]",))


@pytest.mark.parametrize("asked", [("jsn|csv",), ("csv", "jsn"), ("csv|jsn",)])
def test_one_typo_among_names_is_named(asked: tuple[str, ...]) -> None:
    with pytest.raises(PlanError, match=r"formats: 'jsn' matches no variant \(did you mean 'json'\?\)"):
        make_plan([SUITES["tabular"]], Request(rows=1000, formats=asked))


def test_a_name_that_is_like_no_other_is_named_with_what_there_is() -> None:
    with pytest.raises(PlanError, match=r"formats: 'nothing like it' matches no variant\.\n  There are avro, csv,"):
        make_plan([SUITES["tabular"]], Request(rows=1000, formats=("nothing like it|csv",)))


def test_what_is_not_wanted_must_exist_too() -> None:
    with pytest.raises(PlanError, match=r"formats_not: 'exel' matches no variant \(did you mean 'excel'\?\)"):
        make_plan([SUITES["tabular"]], Request(rows=1000, formats_not=("exel",)))


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["csv"], {"csv"}),
        (["^csv$|orc"], {"csv", "orc"}),
        (["parquet[engine=pyarrow,codec=zstd],^raw-io$"], {"parquet", "raw-io"}),
        (["^json"], {"json", "json-lines"}),
        (["^hdf5"], {"hdf5-fixed", "hdf5-pytables", "hdf5-table"}),
        (["csv", "codec=zstd"], None),
        (["csv", "^nosuch$"], {"csv"}),
        (["^c.v"], None),
        (["csv$"], None),
        ([], None),
    ],
)
def test_the_formats_that_a_text_can_mean(texts: list[str], names: set[str] | None) -> None:
    """The found formats must include all that a pattern matches, so that modules of other formats need not be
    imported."""
    found = names_in(texts)
    assert found == names
    for registry in REGISTRIES.values():
        for name in registry if found is not None else ():
            if any(matches(text, name) for text in alternatives(texts)):
                assert name in found
