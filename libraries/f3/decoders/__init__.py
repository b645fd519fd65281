"""Decoders: a sandbox that runs the Wasm modules of files, and an equivalent native library."""
