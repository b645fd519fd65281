"""Compute what samples mean: tables, comparisons, recommendations, codecs, calls. Outputs are in the other packages."""
