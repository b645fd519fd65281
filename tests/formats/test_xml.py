"""XML keeps the contract."""

import pyarrow as pa
import pytest

from formats.registry import FORMATS
from tests.contracts.tabular import TabularFormatContract, WholeTableContract


class TestXml(TabularFormatContract):
    variant = "xml[engine=pandas]"


@pytest.mark.slow
class TestXmlByEtree(WholeTableContract):
    variant = "xml[engine=pandas,parser=etree]"


@pytest.mark.parametrize(
    ("name", "fits"), [("amount", True), ("částka_2", True), ("Customer ID", False), ("2x", False)]
)
def test_a_column_whose_name_can_be_no_element_is_refused_beforehand(name: str, fits: bool) -> None:
    reason = FORMATS.build("xml").refusal(pa.schema([(name, pa.int64())]), 1)
    assert (reason is None) == fits
    assert fits or repr(name) in str(reason)
