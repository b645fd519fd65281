"""Storage formats for tables. Each module has the adapters of one format, and `formats.registry` lists the formats."""
