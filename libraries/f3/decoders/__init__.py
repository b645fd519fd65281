"""The code that decodes: the sandbox for the Wasm module of a file, and the native library that is its twin."""
