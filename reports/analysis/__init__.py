"""Evaluate the samples of a run as tables, comparisons, recommendations and codec effects. Other packages of `reports`
print the results."""
