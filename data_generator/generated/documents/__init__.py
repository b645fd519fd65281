"""Documents that are made: seeded, as many as are asked for, shaped like the data sets of Alkowaileet and Carey (VLDB
2022, table 1) and like the events of JSONBench."""
