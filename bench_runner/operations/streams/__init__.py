"""Data that come and go in pieces: streams of a table, mini-batches of a training loop."""
