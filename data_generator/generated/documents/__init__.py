"""Documents generated from a seed, in any number, shaped like the data sets of Alkowaileet and Carey (VLDB 2022, table
1) and like the events of JSONBench."""
