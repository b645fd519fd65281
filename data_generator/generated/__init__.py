"""Data sets that are made here from a seed: synthetic and realistic tables, TPC-H, photographs."""
