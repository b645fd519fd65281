"""Storage formats of tables: one module per format, listed in `formats.registry`."""
