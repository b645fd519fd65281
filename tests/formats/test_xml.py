"""XML keeps the contract."""

import pytest

from tests.contracts.tabular import TabularFormatContract


class TestXml(TabularFormatContract):
    variant = "xml[engine=pandas]"


@pytest.mark.slow
class TestXmlByEtree(TabularFormatContract):
    variant = "xml[engine=pandas,parser=etree]"
