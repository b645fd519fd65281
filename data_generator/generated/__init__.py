"""Data sets generated from a seed: synthetic and realistic tables, TPC-H, documents and photographs."""
