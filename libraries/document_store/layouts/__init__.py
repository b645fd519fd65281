"""Write, read and merge components, which are immutable files of sorted documents. Three layouts share one protocol.

`layout.py` defines the protocol. This module exports the names that the rest of the store uses.
"""

from libraries.document_store.layouts.component import StoredComponent, open_component
from libraries.document_store.layouts.component_merge import merge_components
from libraries.document_store.layouts.component_writer import write_component
from libraries.document_store.layouts.layout import (
    COMPRESSIONS,
    KEY_BYTES,
    LAYOUTS,
    Component,
    ComponentInfo,
    ComponentLeaf,
    ComponentOptions,
    CompressionName,
    KeyKind,
    Keys,
    LayoutName,
)
from libraries.document_store.layouts.pages import ReadCache

__all__ = [
    "COMPRESSIONS",
    "KEY_BYTES",
    "LAYOUTS",
    "Component",
    "ComponentInfo",
    "ComponentLeaf",
    "ComponentOptions",
    "CompressionName",
    "KeyKind",
    "Keys",
    "LayoutName",
    "ReadCache",
    "StoredComponent",
    "merge_components",
    "open_component",
    "write_component",
]
