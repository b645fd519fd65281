"""The LSM tree: a log and a memtable in memory take new data; immutable components hold older data and are merged in
the background. The layouts define the components."""
