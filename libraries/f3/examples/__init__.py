"""Two examples of added encodings: an encoder in Python, a decoder in a few lines of C, and a call of `register`."""
