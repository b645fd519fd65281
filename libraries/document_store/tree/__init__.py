"""The LSM tree: a log and a memtable in front of immutable components, which are merged in the background.

How components lie is the layouts' matter.
"""
