"""Evaluate samples: tables, comparisons, recommendations, codecs, calls. Other packages of `reports` print them."""
