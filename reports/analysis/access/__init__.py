"""Sections about reading part of a table: the best format for each operation, copies that stay open, training loops,
and limits of the device."""
