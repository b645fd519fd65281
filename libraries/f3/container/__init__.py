"""The bytes of a file: header and postscript, metadata, units, and the sources and targets of I/O."""
