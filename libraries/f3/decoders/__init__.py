"""Decoders: the sandbox for the Wasm module of a file, and the equivalent native library."""
