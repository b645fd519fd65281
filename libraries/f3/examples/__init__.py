"""Encodings that a user could have added: an encoder in Python, a decoder in a few lines of C, and one call."""
