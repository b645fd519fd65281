"""Lance's JSON columns keep the contract."""

from tests.contracts.documents import DocumentStoreContract


class TestLance(DocumentStoreContract):
    variant = "lance-json[engine=pylance]"
