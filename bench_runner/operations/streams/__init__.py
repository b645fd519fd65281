"""Data read or written in pieces: tables batch by batch, mini-batches of a training loop."""
