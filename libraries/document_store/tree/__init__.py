"""The LSM tree: a log and a memtable in front of immutable components, which are merged in the background.

The layouts define the components.
"""
