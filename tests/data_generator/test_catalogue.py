"""The list of data sets: names, canonical spelling, messages, and a fast listing."""

import subprocess
import sys
from pathlib import Path

import pytest

from data_generator.catalogue import CATALOGUE, Parameter, resolve
from data_generator.errors import DataError


def test_defaults_are_left_out_of_the_name_and_the_order_is_the_catalogues() -> None:
    given = {"str": "1", "int": "05", "bool": "1", "strings": "fixed", "float": "1", "nulls": "0.0"}
    assert resolve("synthetic", given).name == "synthetic[int=5,float=1,bool=1,str=1]"
    assert resolve("synthetic", {"int": "1", "nulls": "0.10"}).name == "synthetic[int=1,nulls=0.1]"
    assert resolve("eq", {}).name == "eq"


def test_rows_replace_the_default() -> None:
    assert resolve("eq", {}).rows == 1_000_000
    assert resolve("eq", {}, rows=10).rows == 10
    assert resolve("webface", {}).rows == 10_000_000


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("synthetik", {}, r"the name 'synthetik' \(did you mean 'synthetic'\?\)\.\n  Choose among eq, int"),
        ("synthetic", {"lenght": "3"}, r"'lenght' \(did you mean 'length'\?\)\.\s+Allowed parameters: int"),
        ("synthetic", {"length": "201"}, r"length cannot be '201'\. Allowed: 1 to 200"),
        ("synthetic", {"length": "ten"}, r"length cannot be 'ten'"),
        ("synthetic", {"nulls": "nan"}, r"nulls cannot be 'nan'\. Allowed: 0.0 to 0.99"),
        ("synthetic", {"strings": "long"}, r"strings cannot be 'long'\. Allowed: fixed, varying, words"),
        ("eq", {"int": "3"}, r"eq has no parameter 'int'\. Allowed parameters: none"),
    ],
)
def test_a_wrong_name_or_value_says_what_there_is(name: str, parameters: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        resolve(name, parameters)


@pytest.mark.parametrize("rows", [0, -1])
def test_no_rows_are_refused(rows: int) -> None:
    with pytest.raises(DataError, match="rows must be a whole number of at least 1"):
        resolve("eq", {}, rows=rows)


@pytest.mark.parametrize("name", ["eq", "cifar-like", "imagenet-like"])
def test_a_file_is_refused_where_none_is_taken(name: str) -> None:
    with pytest.raises(DataError, match=rf"{name} does not read a file(.|\n)*webface, table, cifar10, imagenet100"):
        resolve(name, {}, source=Path("faces.h5"))


def test_numbers_are_spelled_shortest() -> None:
    share = Parameter("nulls", (0.0, 1.0), "0", "share")
    assert [share.canonical(text) for text in ("0.50", "0.0", "1e-3")] == ["0.5", "0", "0.001"]


def test_listing_imports_no_heavy_library() -> None:
    code = (
        "import sys, data_generator.catalogue as c; "
        "[(e.title, e.purpose, p.allowed_text()) for e in c.CATALOGUE.values() for p in e.parameters]; "
        "print(sorted({'numpy', 'pandas', 'pyarrow', 'h5py', 'platformdirs', 'PIL', 'datasets'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_data_set_says_what_it_is_for() -> None:
    for name, entry in CATALOGUE.items():
        assert entry.title, name
        assert entry.purpose, name
        assert all(parameter.meaning for parameter in entry.parameters), name
