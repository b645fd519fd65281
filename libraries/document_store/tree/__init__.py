"""The LSM tree: a log and a memtable in front of immutable components, which are merged in the background.

It knows keys and rows, and of documents only what a secondary index needs. How components lie is the layouts' matter.
"""
