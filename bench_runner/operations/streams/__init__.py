"""Data that are read or written in pieces: tables batch by batch, and mini-batches of a training loop."""
