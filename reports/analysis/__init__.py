"""What samples mean: tables, comparisons, recommendations, codecs, calls. Figures alone, nothing of how they are
shown."""
