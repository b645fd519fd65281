"""How tables lie on the disk: one module per format, listed once, in `formats.registry`."""
