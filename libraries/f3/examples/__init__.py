"""Two examples of added encodings. Each is an encoder in Python, a decoder in a few lines of C, and a call of
`register`."""
